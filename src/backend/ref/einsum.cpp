// Einsum: the equation becomes loops, one per label and one per dimension the ellipsis stands for;
// every operand reads with its own strides (those of a repeated label add up: the diagonal).
#include "ops/einsum.h"

#include "backend/ref/element.h"
#include "backend/ref/factory.h"

namespace limber::ref {
namespace {

constexpr size_t kMaxOperands = 8;  // of one node; loops have a place for each
constexpr int kMaxLoops = 24;       // letters of an equation, of all operands together

// Loops [0, output_rank) give the output index, the rest are summed over.
struct Loops {
  int count = 0, output_rank = 0;
  std::array<int64_t, kMaxLoops> sizes{};
  std::array<std::array<int64_t, kMaxLoops>, kMaxOperands> strides{};
};

// One loop per label: those of the output in its order, then the others.
Result<Loops> loops_of(const NodeView& v, const EinsumAxes& axes) {
  std::string labels = axes.output;
  for (const std::string& input : axes.inputs) {
    for (char c : input) {
      if (labels.find(c) == std::string::npos) labels += c;
    }
  }
  if (labels.size() > kMaxLoops || axes.inputs.size() > kMaxOperands) {
    return unsupported("Einsum '{}': {} inputs and {} labels; the reference backend has up to {} and {}",
                       v.node.name, axes.inputs.size(), labels.size(), kMaxOperands, kMaxLoops);
  }
  Loops loops;
  loops.count = static_cast<int>(labels.size());
  loops.output_rank = static_cast<int>(axes.output.size());
  loops.sizes.fill(1);
  for (size_t i = 0; i < axes.inputs.size(); ++i) {
    const Dims dims = v.in_dims(static_cast<int>(i)), strides = strides_for(dims);
    for (int axis = 0; axis < dims.rank; ++axis) {
      if (dims[axis] == 1) continue;
      const size_t loop = labels.find(axes.inputs[i][static_cast<size_t>(axis)]);
      loops.sizes[loop] = dims[axis];
      loops.strides[i][loop] += strides[axis];
    }
  }
  return loops;
}

// Calls f() for every index of loops [begin, end), moving `at` along. Allocates nothing.
template <typename F>
void nest(const Loops& l, size_t operands, int begin, int end, std::array<int64_t, kMaxOperands>& at, F& f) {
  if (begin == end) {
    f();
    return;
  }
  const auto loop = static_cast<size_t>(begin);
  for (int64_t i = 0; i < l.sizes[loop]; ++i) {
    nest(l, operands, begin + 1, end, at, f);
    for (size_t k = 0; k < operands; ++k) at[k] += l.strides[k][loop];
  }
  for (size_t k = 0; k < operands; ++k) at[k] -= l.strides[k][loop] * l.sizes[loop];
}

template <typename C>
KernelResult make_einsum_kernel(const Loops& l, size_t operands, DType dtype) {
  const auto elem = access<C>(dtype);
  return make_kernel([=](const KernelIo& io) {
    std::array<int64_t, kMaxOperands> at{};
    int64_t position = 0;
    C sum = 0;
    auto add_product = [&] {
      C product = 1;
      for (size_t k = 0; k < operands; ++k) product = wrapping_mul(product, elem.load(io.inputs[k], at[k]));
      sum = wrapping_add(sum, product);
    };
    auto sum_up = [&] {
      sum = 0;
      nest(l, operands, l.output_rank, l.count, at, add_product);
      elem.store(io.outputs[0], position++, sum);
    };
    nest(l, operands, 0, l.output_rank, at, sum_up);
  });
}

KernelResult make_einsum(const NodeView& v) {
  const DType dtype = v.in(0).dtype;
  std::vector<int> ranks;
  for (ValueId input : v.node.inputs) {
    const TensorType& type = v.graph.type(input);
    if (type.dtype != dtype) return no_kernel(v, type.dtype);
    ranks.push_back(type.rank());
  }
  if (dtype == DType::kBool) return no_kernel(v, dtype);
  LIMBER_ASSIGN(const EinsumAxes axes, parse_einsum(v.attrs().s("equation"), ranks));
  LIMBER_ASSIGN(const Loops loops, loops_of(v, axes));
  return with_domain(
      dtype, [&](auto zero) { return make_einsum_kernel<decltype(zero)>(loops, axes.inputs.size(), dtype); });
}

}  // namespace

LIMBER_REF_KERNEL(Einsum, make_einsum(v))

}  // namespace limber::ref
