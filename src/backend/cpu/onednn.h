// The only door to oneDNN: descriptions in, kernels out, no oneDNN type outside onednn.cpp. Written for
// 2.6; 3.x differs in how primitives are described, which is all inside that one file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ops/op_def.h"
#include "runtime/backend.h"

namespace limber::onednn {

// Layouts of activations. The numbers are Layout ids; ids from kFirstPacked on are packed weights.
enum class Format : uint32_t { kPlain = 0, kChannelsLast = 1, kBlocked8 = 2, kBlocked16 = 3 };
inline constexpr uint32_t kFirstPacked = 16;

// What is applied to a result before it is stored: += dst (sum), then an activation.
struct PostOps {
  bool sum = false;
  Activation act;
};

enum class Pass : uint8_t { kForward, kBackwardData, kBackwardWeights };

// y = conv(x, w) + bias. Node inputs: x, w, bias?, residual? (which must be the memory of y). Backward, the
// fields mean the same convolution: from dy and w to dx, or from x and dy to dw and, with `bias`, dbias.
struct Convolution {
  Pass pass = Pass::kForward;
  std::vector<int64_t> src, weights,
      dst;  // weights as in the IR: [O, C/g, k..] or, transposed, [C, O/g, k..]
  std::vector<int64_t> strides, dilations, pad_begin, pad_end;
  int64_t groups = 1;
  bool bias = false, winograd = false, transposed = false;
  bool swapped_weights = false;  // a plain convolution whose weights lie as [C/g, O, k..] (a matrix product)
  Format src_format = Format::kPlain, dst_format = Format::kPlain;
  PostOps post;
};

// y = a b + bias over plain, possibly transposed operands of equal rank (batch dims broadcast).
// Node inputs: a, b, bias?[N], residual? (the memory of y).
struct MatMul {
  std::vector<int64_t> a, b, y;           // dims as multiplied: [.., M, K], [.., K, N], [.., M, N]
  bool trans_a = false, trans_b = false;  // how they lie in memory
  bool bias = false;
  bool pack_b = false;         // b is a weight: any layout
  bool inner_product = false;  // use the inner product primitive instead of matmul (2-D, packed)
  double alpha = 1;
  PostOps post;
};

struct Pooling {
  std::vector<int64_t> src, dst, kernel, strides, dilations, pad_begin, pad_end;
  bool maximum = true, include_padding = false;
  Format format = Format::kPlain;
};

// y = a (+|*) b with b broadcast where its dimension is 1.
struct Binary {
  std::vector<int64_t> a, b;
  OpKind op = OpKind::kAdd;
  Format format = Format::kPlain;
};

struct Concat {
  std::vector<std::vector<int64_t>> srcs;
  int axis = 1;
  Format format = Format::kPlain;
};

// Something oneDNN can do, and one of its implementations of it.
struct Compiled {
  std::shared_ptr<const Kernel> kernel;
  std::string impl;
  uint32_t weights_layout = 0;  // a Layout id: how the weights (or their gradient) are packed
  std::vector<size_t> input_bytes, output_bytes;  // by node input and output; 0 for absent
};

// Thread-safe. Exceptions of oneDNN stop inside. Packed layouts are known for as long as a kernel lives that
// reads or writes one. Of kernels that nobody uses, a bounded number is kept.
class Library {
 public:
  Library();
  ~Library();

  // Names of the implementations in oneDNN's own order of preference (reference ones left out). Cheap:
  // nothing is generated yet.
  std::vector<std::string> list(const Convolution& spec);
  std::vector<std::string> list(const MatMul& spec);
  // The index-th of list(). Generates code, remembers it under the description.
  Result<Compiled> create(const Convolution& spec, int index);
  Result<Compiled> create(const MatMul& spec, int index);
  Result<Compiled> create(const Pooling& spec);
  Result<Compiled> create(const Binary& spec);
  Result<Compiled> create(const Concat& spec);

  // Memory a tensor of this type takes in this layout (packed or format).
  size_t bytes(const TensorType& type, Layout layout) const;
  std::string layout_name(Layout layout) const;
  // Is every element in one place of its own, padding aside? Not so for Winograd.
  bool keeps_elements(Layout layout) const;
  bool can_reorder(const TensorType& type, Layout from, Layout to) const;
  // Remembered like what create() makes.
  Result<Compiled> reorder(const TensorType& type, Layout from, Layout to);

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

// A text that says all of a description: the key of tuning results.
std::string key(const Convolution& spec);
std::string key(const MatMul& spec);
std::string dims_text(const std::vector<int64_t>& dims);  // "1x3x224x224"

int preferred_block();  // 16 with AVX-512, 8 otherwise
std::string version();  // "oneDNN 2.6.3 (avx512_core_amx)"
// Can this activation be a post-op?
bool fusable(const Activation& act);

}  // namespace limber::onednn
