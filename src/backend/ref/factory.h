// What every family of kernels in this folder is made of: one factory per operator, declared here
// from the operator list, so that a missing one is a link error.
#pragma once

#include <memory>

#include "backend/ref/walk.h"
#include "ir/graph.h"
#include "runtime/kernel.h"

namespace limber::ref {

using KernelResult = Result<std::unique_ptr<Kernel>>;

// A node with the types around it. REQUIRES: constant shapes, ranks up to kMaxRank
struct NodeView {
  const Graph& graph;
  const Node& node;

  bool has_in(int i) const { return present(node.inputs, i); }
  bool has_out(int i) const { return present(node.outputs, i); }
  // REQUIRES: present
  const TensorType& in(int i) const { return graph.type(node.inputs[static_cast<size_t>(i)]); }
  const TensorType& out(int i) const { return graph.type(node.outputs[static_cast<size_t>(i)]); }
  Dims in_dims(int i) const { return dims_of(in(i).shape); }
  Dims out_dims(int i) const { return dims_of(out(i).shape); }
  const Attrs& attrs() const { return node.attrs; }

 private:
  static bool present(const std::vector<ValueId>& ids, int i) {
    return static_cast<size_t>(i) < ids.size() && ids[static_cast<size_t>(i)] != kNoValue;
  }
};

// "the reference backend has no Conv for i32"
Status no_kernel(const NodeView& v, DType dtype);
// Fails unless every present input and output has a floating type.
Status check_floats(const NodeView& v);

// Copies one element of `size` bytes from index `from` of src to index `to` of dst.
inline void copy_element(void* dst, int64_t to, const void* src, int64_t from, size_t size) {
  std::memcpy(static_cast<std::byte*>(dst) + static_cast<size_t>(to) * size,
              static_cast<const std::byte*>(src) + static_cast<size_t>(from) * size, size);
}

// Either a kernel or, for types that this backend does not compute in, kUnsupported.
template <OpKind op>
KernelResult make(const NodeView& v);

#define LIMBER_OP(name) \
  template <>           \
  KernelResult make<OpKind::k##name>(const NodeView& v);
#include "ir/op_list.inc"
#undef LIMBER_OP

// Defines the factory of one operator as a call of `expr`, which may use `v`.
#define LIMBER_REF_KERNEL(name, expr)                     \
  template <>                                             \
  KernelResult make<OpKind::k##name>(const NodeView& v) { \
    return expr;                                          \
  }

}  // namespace limber::ref
