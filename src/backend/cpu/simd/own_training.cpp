// Gradients of activations, pools, softmax and LayerNorm, and the optimisers' steps.
#include <cmath>
#include <cstring>
#include <optional>

#include "backend/cpu/simd/channels.h"
#include "backend/cpu/simd/own_families.h"
#include "ops/op_def.h"

namespace limber::own {
namespace {

std::optional<SimdGradient> gradient_of(const Activation& act, bool from_output) {
  switch (act.op) {
    case OpKind::kRelu:
      return SimdGradient::kRelu;
    case OpKind::kLeakyRelu:
      return SimdGradient::kLeakyRelu;
    case OpKind::kClip:
      return SimdGradient::kClip;
    case OpKind::kHardSigmoid:
      return from_output ? SimdGradient::kHardSigmoidOfY : SimdGradient::kHardSigmoid;
    case OpKind::kHardSwish:
      return SimdGradient::kHardSwish;
    case OpKind::kSilu:
      return SimdGradient::kSilu;
    case OpKind::kGelu:
      return act.tanh_gelu ? SimdGradient::kGeluTanh : SimdGradient::kGelu;
    case OpKind::kMish:
      return SimdGradient::kMish;
    case OpKind::kSigmoid:
      return from_output ? std::optional(SimdGradient::kSigmoidOfY) : std::nullopt;
    case OpKind::kTanh:
      return from_output ? std::optional(SimdGradient::kTanhOfY) : std::nullopt;
    case OpKind::kElu:
      return from_output ? std::optional(SimdGradient::kEluOfY) : std::nullopt;
    case OpKind::kSoftplus:
      return from_output ? std::optional(SimdGradient::kSoftplusOfY) : std::nullopt;
    default:
      return std::nullopt;
  }
}

// nullopt for more than two spatial axes.
std::optional<PoolWindows> windows_of(const Node& node, const Shape& x, const Shape& y) {
  const int rank = x.rank() - 2;
  if (rank < 1 || rank > 2) return std::nullopt;
  PoolWindows w{{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 0};
  for (int i = 0; i < rank; ++i) {
    const int at = 2 - rank + i;
    const auto attr = [&](const char* name) { return node.attrs.ints(name)[static_cast<size_t>(i)]; };
    w.in[at] = x.dim(2 + i);
    w.out[at] = y.dim(2 + i);
    w.kernel[at] = attr("kernel");
    w.stride[at] = attr("strides");
    w.pad[at] = attr("pads");
    if (node.attrs.has("dilations")) w.dilation[at] = attr("dilations");
  }
  if (w.in[0] * w.in[1] >= INT32_MAX) return std::nullopt;
  return w;
}

// Padding counts, but not what ceil mode adds beyond it: only uniform windows have one number for all.
bool uniform_count(const Node& node, const PoolWindows& w, int rank) {
  for (int i = 0; i < rank; ++i) {
    const int at = 2 - rank + i;
    const int64_t end = node.attrs.ints("pads")[static_cast<size_t>(rank + i)];
    const int64_t reach = (w.out[at] - 1) * w.stride[at] + w.kernel[at];
    if (reach > w.in[at] + w.pad[at] + end) return false;
  }
  return true;
}

// Calls body(offset in x, offset in dy, channels side by side) for every panel and clears dx's part of it.
template <typename Body>
KernelPtr pool_kernel(const ChannelGroups& x, const ChannelGroups& y, const Body& body) {
  return make_kernel([=](const KernelIo& io) {
    parallel_for(x.images * x.groups(), row_grain(x.pixels * x.block), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / x.groups(), group = i % x.groups();
        const int64_t width = x.width(group), stride = x.stride();
        float* dx = io.out<float>(0) + x.offset(image, group);
        for (int64_t p = 0; p < x.pixels; ++p)
          std::memset(dx + p * stride, 0, static_cast<size_t>(width) * sizeof(float));
        body(io, x.offset(image, group), y.offset(image, group), stride, width);
      }
    });
  });
}

}  // namespace

KernelPtr make_activation_backward(const Graph& graph, const Node& node) {
  if (!all_f32(graph, node)) return nullptr;
  const Activation act = fused_activation(node.attrs);
  const auto op = gradient_of(act, node.attrs.i("from_output", 0) != 0);
  if (!op) return nullptr;
  const UnaryParams params{static_cast<float>(act.alpha), static_cast<float>(act.beta)};
  const int64_t n = output_type(graph, node).shape.elements();
  const auto loop = simd().gradient[static_cast<size_t>(*op)];
  return make_kernel([=](const KernelIo& io) {
    for_elements(n, kGrain, [&](int64_t begin, int64_t end) {
      loop(io.in<float>(0) + begin, io.in<float>(1) + begin, io.out<float>(0) + begin, end - begin, params);
    });
  });
}

KernelPtr make_max_pool_backward(const Graph& graph, const Node& node, ChannelOrder order) {
  const Shape &x = input_type(graph, node, 0).shape, &y = input_type(graph, node, 1).shape;
  const auto windows = windows_of(node, x, y);
  if (!windows) return nullptr;
  const SimdTable& table = simd();
  return pool_kernel(ChannelGroups(x, order), ChannelGroups(y, order),
                     [windows = *windows, &table](const KernelIo& io, int64_t at_x, int64_t at_y,
                                                  int64_t stride, int64_t width) {
                       table.max_pool_gradient(windows, io.in<float>(0) + at_x, io.in<float>(1) + at_y,
                                               io.out<float>(0) + at_x, stride, width);
                     });
}

KernelPtr make_average_pool_backward(const Graph& graph, const Node& node, ChannelOrder order) {
  const Shape &x = output_type(graph, node).shape, &y = input_type(graph, node, 0).shape;
  auto windows = windows_of(node, x, y);
  if (!windows) return nullptr;
  if (node.attrs.i("count_include_pad", 0) != 0) {
    if (!uniform_count(node, *windows, x.rank() - 2)) return nullptr;
    windows->whole_count = windows->kernel[0] * windows->kernel[1];
  }
  const SimdTable& table = simd();
  return pool_kernel(ChannelGroups(x, order), ChannelGroups(y, order),
                     [windows = *windows, &table](const KernelIo& io, int64_t at_x, int64_t at_y,
                                                  int64_t stride, int64_t width) {
                       table.average_pool_gradient(windows, io.in<float>(0) + at_y, io.out<float>(0) + at_x,
                                                   stride, width);
                     });
}

KernelPtr make_softmax_backward(const Graph& graph, const Node& node) {
  if (!all_f32(graph, node)) return nullptr;
  const Shape& shape = input_type(graph, node, 0).shape;
  if (node.attrs.i("axis") != shape.rank() - 1) return nullptr;
  const int64_t cols = shape.dim(shape.rank() - 1), rows = product(shape, 0, shape.rank() - 1);
  const SimdTable& table = simd();
  return make_kernel([=, &table](const KernelIo& io) {
    parallel_for(rows, row_grain(cols), [&](int64_t begin, int64_t end) {
      table.softmax_gradient(io.in<float>(0) + begin * cols, io.in<float>(1) + begin * cols,
                             io.out<float>(0) + begin * cols, end - begin, cols);
    });
  });
}

KernelPtr make_layer_norm_backward(const Graph& graph, const Node& node) {
  if (!all_f32(graph, node)) return nullptr;
  const Shape& shape = input_type(graph, node, 0).shape;
  const int axis = static_cast<int>(node.attrs.i("axis"));
  const int64_t rows = product(shape, 0, axis), cols = product(shape, axis, shape.rank());
  if (rows * cols == 0) return nullptr;
  const bool scale = has_input(node, 4), dx = has_output(node, 0), dscale = has_output(node, 1),
             dbias = has_output(node, 2);
  if (scale && input_type(graph, node, 4).shape.elements() != cols) return nullptr;
  // A fixed number of pieces, each with sums of its own: the result does not depend on the threads. Sixteen
  // keep as many threads busy, and adding up so many sums costs little.
  constexpr int64_t kPieces = 16;
  const int64_t piece = (rows + kPieces - 1) / kPieces, pieces = (rows + piece - 1) / piece;
  const SimdTable& table = simd();
  return make_kernel(
      [=, &table](const KernelIo& io) {
        auto* sums = static_cast<float*>(io.scratch);
        std::memset(sums, 0, static_cast<size_t>(pieces * 2 * cols) * sizeof(float));
        parallel_for(pieces, row_grain(piece * cols), [&](int64_t begin, int64_t end) {
          for (int64_t p = begin; p < end; ++p) {
            const int64_t first = p * piece, count = std::min(piece, rows - first), at = first * cols;
            table.layer_norm_gradient({.x = io.in<float>(0) + at,
                                       .dy = io.in<float>(1) + at,
                                       .rows = count,
                                       .cols = cols,
                                       .mean = io.in<float>(2) + first,
                                       .inv_std = io.in<float>(3) + first,
                                       .scale = scale ? io.in<float>(4) : nullptr,
                                       .dx = dx ? io.out<float>(0) + at : nullptr,
                                       .dscale = dscale ? sums + 2 * p * cols : nullptr,
                                       .dbias = dbias ? sums + (2 * p + 1) * cols : nullptr});
          }
        });
        const auto total = [&](int output, int64_t which) {
          for (int64_t j = 0; j < cols; ++j) {
            double sum = 0;
            for (int64_t p = 0; p < pieces; ++p) sum += static_cast<double>(sums[(2 * p + which) * cols + j]);
            io.out<float>(output)[j] = static_cast<float>(sum);
          }
        };
        if (dscale) total(1, 0);
        if (dbias) total(2, 1);
      },
      static_cast<size_t>(pieces * 2 * cols) * sizeof(float));
}

namespace {

template <typename Index>
KernelPtr gather_backward(int64_t outer, int64_t taken, int64_t size, int64_t inner) {
  return make_kernel([=](const KernelIo& io) {
    const Index* indices = io.in<Index>(1);
    parallel_for(outer, row_grain(size * inner), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        float* dx = io.out<float>(0) + o * size * inner;
        std::memset(dx, 0, static_cast<size_t>(size * inner) * sizeof(float));
        const float* dy = io.in<float>(0) + o * taken * inner;
        for (int64_t t = 0; t < taken; ++t, dy += inner) {
          const int64_t index = static_cast<int64_t>(indices[t]);
          const int64_t at = index < 0 ? index + size : index;
          if (at < 0 || at >= size) continue;  // taken from nowhere
          float* target = dx + at * inner;
          for (int64_t i = 0; i < inner; ++i) target[i] += dy[i];
        }
      }
    });
  });
}

}  // namespace

KernelPtr make_gather_backward(const Graph& graph, const Node& node) {
  if (input_type(graph, node, 0).dtype != DType::kF32) return nullptr;
  const TensorType& indices = input_type(graph, node, 1);
  const Shape& x = output_type(graph, node).shape;
  const int axis = static_cast<int>(node.attrs.i("axis"));
  const int64_t outer = product(x, 0, axis), inner = product(x, axis + 1, x.rank());
  const int64_t taken = indices.shape.elements(), size = x.dim(axis);
  if (indices.dtype == DType::kI64) return gather_backward<int64_t>(outer, taken, size, inner);
  if (indices.dtype == DType::kI32) return gather_backward<int32_t>(outer, taken, size, inner);
  return nullptr;
}

namespace {

// The new values may be written over the old ones.
void take_over(const KernelIo& io, int output, int input, int64_t begin, int64_t end) {
  if (io.outputs[static_cast<size_t>(output)] == io.inputs[static_cast<size_t>(input)]) return;
  std::memcpy(io.out<float>(output) + begin, io.in<float>(input) + begin,
              static_cast<size_t>(end - begin) * sizeof(float));
}

// Calls step(begin, end, effect) on blocks of the elements, on several threads. Each block has sums of its
// own in the scratch memory; their order, and so the result, does not depend on the number of threads.
class UpdateBlocks {
 public:
  UpdateBlocks(const Node& node, int effect, int64_t n) : n_(n) {
    const auto at = static_cast<size_t>(effect);
    if (at < node.outputs.size() && node.outputs[at] != kNoValue) effect_ = effect;
  }

  size_t scratch_bytes() const {
    return effect_ < 0 ? 0 : static_cast<size_t>(blocks() * kUpdateEffects) * sizeof(float);
  }

  template <typename Step>
  void run(const KernelIo& io, const Step& step) const {
    auto* sums = effect_ < 0 ? nullptr : static_cast<float*>(io.scratch);
    parallel_for(blocks(), 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b)
        step(b * kGrain, std::min(n_, (b + 1) * kGrain),
             sums == nullptr ? nullptr : sums + b * kUpdateEffects);
    });
    if (sums == nullptr) return;
    for (int64_t e = 0; e < kUpdateEffects; ++e) {
      double total = 0;
      for (int64_t b = 0; b < blocks(); ++b) total += static_cast<double>(sums[b * kUpdateEffects + e]);
      io.out<float>(effect_)[e] = static_cast<float>(total);
    }
  }

 private:
  int64_t blocks() const { return (n_ + kGrain - 1) / kGrain; }

  int64_t n_;
  int effect_ = -1;  // output
};

}  // namespace

KernelPtr make_sgd(const Graph& graph, const Node& node) {
  if (!all_f32(graph, node)) return nullptr;
  const int64_t n = input_type(graph, node, 0).shape.elements();
  const auto f = [&](std::string_view name) { return static_cast<float>(node.attrs.f(name, 0)); };
  const SgdStep fixed{0,
                      1,
                      f("momentum"),
                      f("dampening"),
                      f("decay"),
                      node.attrs.i("nesterov", 0) != 0,
                      node.attrs.i("decoupled", 0) != 0};
  const bool velocity = has_input(node, 3), factor = has_input(node, 4);
  const SimdTable& table = simd();
  const UpdateBlocks blocks(node, 2, n);
  return make_kernel(
      [=, &table](const KernelIo& io) {
        SgdStep step = fixed;
        step.rate = *io.in<float>(2);
        if (factor) step.factor = *io.in<float>(4);
        blocks.run(io, [&](int64_t begin, int64_t end, float* effect) {
          take_over(io, 0, 0, begin, end);
          if (velocity) take_over(io, 1, 3, begin, end);
          table.sgd(step, io.out<float>(0) + begin, io.in<float>(1) + begin,
                    velocity ? io.out<float>(1) + begin : nullptr, end - begin, effect);
        });
      },
      blocks.scratch_bytes());
}

KernelPtr make_adam(const Graph& graph, const Node& node) {
  if (!all_f32(graph, node)) return nullptr;
  const int64_t n = input_type(graph, node, 0).shape.elements();
  const auto f = [&](std::string_view name) { return static_cast<float>(node.attrs.f(name, 0)); };
  const AdamStep fixed{
      0, 1, f("beta1"), f("beta2"), f("epsilon"), f("decay"), 1, 1, node.attrs.i("decoupled", 1) != 0};
  const double beta1 = node.attrs.f("beta1"), beta2 = node.attrs.f("beta2");
  const bool factor = has_input(node, 6);
  const SimdTable& table = simd();
  const UpdateBlocks blocks(node, 4, n);
  return make_kernel(
      [=, &table](const KernelIo& io) {
        AdamStep step = fixed;
        const float count = *io.in<float>(5) + 1;
        step.rate = *io.in<float>(2);
        if (factor) step.factor = *io.in<float>(6);
        step.correction1 = static_cast<float>(1 / (1 - std::pow(beta1, static_cast<double>(count))));
        step.correction2 = static_cast<float>(1 / (1 - std::pow(beta2, static_cast<double>(count))));
        blocks.run(io, [&](int64_t begin, int64_t end, float* effect) {
          for (const auto& [output, input] : {std::pair{0, 0}, std::pair{1, 3}, std::pair{2, 4}})
            take_over(io, output, input, begin, end);
          table.adam(step, io.out<float>(0) + begin, io.in<float>(1) + begin, io.out<float>(1) + begin,
                     io.out<float>(2) + begin, end - begin, effect);
        });
        *io.out<float>(3) = count;
      },
      blocks.scratch_bytes());
}

}  // namespace limber::own
