// Convolution, matrix products, normalisation, pooling.
#include <algorithm>
#include <array>
#include <cmath>

#include "io/importer.h"

namespace limber::onnx_io {
namespace {

// A sliding window: one entry per spatial axis; pads are all begins, then all ends.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads;
};

Status check_positive(std::vector<int64_t>& values, const char* name, size_t spatial) {
  if (values.empty()) values.assign(spatial, 1);
  if (values.size() != spatial)
    return corrupt("{} has {} entries, expected {}", name, values.size(), spatial);
  for (int64_t v : values) {
    if (v < 1 || v > kMaxWindow) return corrupt("{} is {}, expected at least 1", name, v);
  }
  return {};
}

// Padding of one axis such that the output is ceil(input / stride).
Result<int64_t> same_padding(NodeContext& c, const Dim& input, int64_t kernel, int64_t stride,
                             int64_t dilation) {
  const int64_t reach = (kernel - 1) * dilation + 1;
  if (stride == 1) return reach - 1;
  LIMBER_ASSIGN(const int64_t n, c.constant_dim(input, "the input size (auto_pad)"));
  const int64_t last = (n + stride - 1) / stride - 1;
  return std::max<int64_t>(last * stride + reach - n, 0);
}

Status auto_pads(NodeContext& c, const Shape& x, const std::string& mode, Window& w) {
  const size_t spatial = w.kernel.size();
  w.pads.assign(2 * spatial, 0);
  if (mode == "VALID") return {};
  for (size_t i = 0; i < spatial; ++i) {
    LIMBER_ASSIGN(const int64_t total,
                  same_padding(c, x[static_cast<int>(i) + 2], w.kernel[i], w.strides[i], w.dilations[i]));
    const int64_t small = total / 2;
    w.pads[i] = mode == "SAME_UPPER" ? small : total - small;
    w.pads[spatial + i] = total - w.pads[i];
  }
  return {};
}

Result<std::string> auto_pad_mode(NodeContext& c) {
  const std::string mode = c.s("auto_pad", "NOTSET");
  for (const char* known : {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", ""}) {
    if (mode == known) return mode.empty() ? std::string("NOTSET") : mode;
  }
  return corrupt("auto_pad is '{}'", mode);
}

// Strides, dilations and pads of a window of the given size over c.in(0).
Result<Window> read_window(NodeContext& c, std::vector<int64_t> kernel) {
  const Shape& x = c.type(0).shape;
  if (x.rank() < 3) return corrupt("its input is {}, expected [N, C, spatial..]", c.type(0).to_string());
  const auto spatial = static_cast<size_t>(x.rank() - 2);
  Window w{std::move(kernel), c.ints("strides"), c.ints("dilations"), c.ints("pads")};
  if (w.kernel.size() != spatial)
    return corrupt("kernel_shape has {} entries, expected {}", w.kernel.size(), spatial);
  LIMBER_TRY(check_positive(w.kernel, "kernel_shape", spatial));
  LIMBER_TRY(check_positive(w.strides, "strides", spatial));
  LIMBER_TRY(check_positive(w.dilations, "dilations", spatial));
  LIMBER_ASSIGN(const std::string mode, auto_pad_mode(c));
  if (mode != "NOTSET") {
    LIMBER_TRY(auto_pads(c, x, mode, w));
    return w;
  }
  if (w.pads.empty()) w.pads.assign(2 * spatial, 0);
  if (w.pads.size() != 2 * spatial)
    return corrupt("pads has {} entries, expected {}", w.pads.size(), 2 * spatial);
  for (int64_t p : w.pads) {
    if (p < 0 || p > kMaxWindow) return corrupt("pads holds {}, expected at least 0", p);
  }
  return w;
}

// The kernel's spatial size, from the weights' shape; kernel_shape, where given, must agree.
Result<std::vector<int64_t>> kernel_of_weights(NodeContext& c) {
  const Shape& w = c.type(1).shape;
  if (w.rank() != c.rank(0))
    return corrupt("weights are {}, input is {}", c.type(1).to_string(), c.type(0).to_string());
  if (w.rank() < 3) return corrupt("weights are {}, expected [O, C, kernel..]", c.type(1).to_string());
  std::vector<int64_t> kernel;
  for (int axis = 2; axis < w.rank(); ++axis) {
    LIMBER_ASSIGN(const int64_t size, c.constant_dim(w[axis], "the kernel's size"));
    kernel.push_back(size);
  }
  if (c.has_attr("kernel_shape") && c.ints("kernel_shape") != kernel) {
    return corrupt("kernel_shape does not match weights of {}", c.type(1).to_string());
  }
  return kernel;
}

Status conv(NodeContext& c) {
  LIMBER_ASSIGN(auto kernel, kernel_of_weights(c));
  LIMBER_ASSIGN(const Window w, read_window(c, std::move(kernel)));
  const Attrs attrs{
      {"strides", w.strides}, {"pads", w.pads}, {"dilations", w.dilations}, {"groups", c.i("group", 1)}};
  return c.lower(OpKind::kConv, {c.in(0), c.in(1), c.in(2)}, attrs);
}

// Pads that give the asked output size; where padding would be negative, the output is padded instead.
Status pads_for_output(NodeContext& c, const std::vector<int64_t>& output, bool upper, Window& w,
                       std::vector<int64_t>& output_padding) {
  const size_t spatial = w.kernel.size();
  w.pads.assign(2 * spatial, 0);
  for (size_t i = 0; i < spatial; ++i) {
    LIMBER_ASSIGN(const int64_t n,
                  c.constant_dim(c.type(0).shape[static_cast<int>(i) + 2], "the input size"));
    if (output[i] < 0 || output[i] > kMaxWindow || n > kMaxWindow)
      return corrupt("output_shape is {}", output[i]);
    const int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    const int64_t total = w.strides[i] * (n - 1) + output_padding[i] + reach - output[i];
    if (total < 0) {
      output_padding[i] -= total;
      continue;
    }
    w.pads[i] = upper ? total / 2 : total - total / 2;
    w.pads[spatial + i] = total - w.pads[i];
  }
  return {};
}

Status conv_transpose(NodeContext& c) {
  LIMBER_ASSIGN(auto kernel, kernel_of_weights(c));
  LIMBER_ASSIGN(const std::string mode, auto_pad_mode(c));
  LIMBER_ASSIGN(Window w, read_window(c, std::move(kernel)));
  const size_t spatial = w.kernel.size();
  std::vector<int64_t> output_padding = c.ints("output_padding");
  if (output_padding.empty()) output_padding.assign(spatial, 0);
  if (output_padding.size() != spatial)
    return corrupt("output_padding has {} entries", output_padding.size());
  for (int64_t p : output_padding) {
    if (p < 0 || p > kMaxWindow) return corrupt("output_padding holds {}", p);
  }
  std::vector<int64_t> output = c.ints("output_shape");
  if (output.size() > spatial)
    output.erase(output.begin(), output.end() - static_cast<std::ptrdiff_t>(spatial));
  if (output.empty() && (mode == "SAME_UPPER" || mode == "SAME_LOWER")) {
    for (size_t i = 0; i < spatial; ++i) {
      LIMBER_ASSIGN(const int64_t n,
                    c.constant_dim(c.type(0).shape[static_cast<int>(i) + 2], "the input size"));
      if (n > kMaxWindow) return corrupt("an input dimension of {}", n);
      output.push_back(n * w.strides[i]);
    }
  }
  if (!output.empty()) {
    if (output.size() != spatial)
      return corrupt("output_shape has {} entries, expected {}", output.size(), spatial);
    LIMBER_TRY(pads_for_output(c, output, mode == "SAME_UPPER", w, output_padding));
  }
  const Attrs attrs{{"strides", w.strides},
                    {"pads", w.pads},
                    {"dilations", w.dilations},
                    {"output_padding", output_padding},
                    {"groups", c.i("group", 1)}};
  return c.lower(OpKind::kConvTranspose, {c.in(0), c.in(1), c.in(2)}, attrs);
}

Status gemm(NodeContext& c) {
  const Attrs attrs{{"alpha", c.f("alpha", 1)},
                    {"beta", c.f("beta", 1)},
                    {"trans_a", int64_t{c.i("transA", 0) != 0}},
                    {"trans_b", int64_t{c.i("transB", 0) != 0}}};
  return c.lower(OpKind::kGemm, {c.in(0), c.in(1), c.in(2)}, attrs);
}

Status mat_mul(NodeContext& c) { return c.lower(OpKind::kMatMul, {c.in(0), c.in(1)}); }

Status einsum(NodeContext& c) {
  std::vector<ValueId> inputs;
  for (int i = 0; i < c.inputs(); ++i) {
    if (!c.has(i)) return corrupt("input {} is missing", i);
    inputs.push_back(c.in(i));
  }
  return c.lower(OpKind::kEinsum, inputs, {{"equation", c.s("equation", "")}});
}

// --- normalisation --------------------------------------------------------------------------------------

bool batch_norm_trains(NodeContext& c) {
  if (c.version >= 14) return c.i("training_mode", 0) != 0;
  if (c.version < 7) return c.i("is_test", 0) == 0 && c.outputs() > 1;
  return c.outputs() > 1;
}

Status batch_norm(NodeContext& c) {
  if (c.i("spatial", 1) == 0) return unsupported("statistics per element (spatial=0)");
  const std::vector<ValueId> inputs = {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)};
  const double epsilon = c.f("epsilon", 1e-5);
  if (!batch_norm_trains(c)) {
    LIMBER_ASSIGN(const ValueId y, c.emit(OpKind::kBatchNorm, inputs, {{"epsilon", epsilon}}));
    c.set(0, y);
    return {};
  }
  const Attrs attrs{{"epsilon", epsilon}, {"momentum", c.f("momentum", 0.9)}};
  LIMBER_ASSIGN(const auto results, c.emit_all(OpKind::kBatchNormTraining, inputs, attrs, 3));
  for (int i = 0; i < 3; ++i) c.set(i, results[static_cast<size_t>(i)]);
  return {};
}

Status layer_norm(NodeContext& c) {
  LIMBER_ASSIGN(const int64_t axis, normal_axis(c.i("axis", -1), c.rank(0)));
  return c.lower(OpKind::kLayerNorm, {c.in(0), c.in(1), c.in(2)},
                 {{"axis", axis}, {"epsilon", c.f("epsilon", 1e-5)}});
}

Status instance_norm(NodeContext& c) {
  return c.lower(OpKind::kInstanceNorm, {c.in(0), c.in(1), c.in(2)}, {{"epsilon", c.f("epsilon", 1e-5)}});
}

// A value per group as one per channel.
Result<ValueId> per_channel(NodeContext& c, ValueId v, int64_t groups, int64_t channels) {
  LIMBER_ASSIGN(ValueId x, c.reshape(v, Shape{groups, 1}));
  LIMBER_ASSIGN(x, c.emit(OpKind::kExpand, {x}, {{"shape", Shape{groups, channels / groups}}}));
  return c.reshape(x, Shape{channels});
}

Status group_norm(NodeContext& c) {
  const int64_t groups = c.i("num_groups", 0);
  if (c.rank(0) < 3) return corrupt("its input is {}, expected [N, C, spatial..]", c.type(0).to_string());
  LIMBER_ASSIGN(const int64_t channels, c.constant_dim(c.type(0).shape[1], "the number of channels"));
  if (groups < 1 || channels % groups != 0) return corrupt("{} groups of {} channels", groups, channels);
  ValueId scale = c.in(1), bias = c.in(2);
  if (c.version < 21) {
    LIMBER_ASSIGN(scale, per_channel(c, scale, groups, channels));
    LIMBER_ASSIGN(bias, per_channel(c, bias, groups, channels));
  }
  return c.lower(OpKind::kGroupNorm, {c.in(0), scale, bias},
                 {{"groups", groups}, {"epsilon", c.f("epsilon", 1e-5)}});
}

Status lrn(NodeContext& c) {
  return c.lower(OpKind::kLRN, {c.in(0)},
                 {{"size", c.i("size", 0)},
                  {"alpha", c.f("alpha", 1e-4)},
                  {"beta", c.f("beta", 0.75)},
                  {"bias", c.f("bias", 1)}});
}

Status lp_norm(NodeContext& c) {
  LIMBER_ASSIGN(const int64_t axis, normal_axis(c.i("axis", -1), c.rank(0)));
  return c.lower(OpKind::kLpNorm, {c.in(0)}, {{"axis", axis}, {"p", c.i("p", 2)}});
}

// --- pooling --------------------------------------------------------------------------------------------

bool all_ones(const std::vector<int64_t>& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t v) { return v == 1; });
}

Status max_pool(NodeContext& c) {
  LIMBER_ASSIGN(const Window w, read_window(c, c.ints("kernel_shape")));
  const Attrs attrs{{"kernel", w.kernel},
                    {"strides", w.strides},
                    {"pads", w.pads},
                    {"dilations", w.dilations},
                    {"ceil_mode", int64_t{c.i("ceil_mode", 0) != 0}},
                    {"storage_order", int64_t{c.i("storage_order", 0) != 0}}};
  return c.lower(OpKind::kMaxPool, {c.in(0)}, attrs);
}

Status average_pool(NodeContext& c) {
  LIMBER_ASSIGN(const Window w, read_window(c, c.ints("kernel_shape")));
  if (!all_ones(w.dilations)) return unsupported("average pooling with dilations");
  const Attrs attrs{{"kernel", w.kernel},
                    {"strides", w.strides},
                    {"pads", w.pads},
                    {"ceil_mode", int64_t{c.i("ceil_mode", 0) != 0}},
                    {"count_include_pad", int64_t{c.i("count_include_pad", 0) != 0}}};
  return c.lower(OpKind::kAveragePool, {c.in(0)}, attrs);
}

// Opset 1 wrote the power as a float.
Result<int64_t> power(NodeContext& c) {
  if (c.version >= 2) return c.i("p", 2);
  const double p = c.f("p", 2);
  if (!(std::abs(p) <= kMaxWindow)) return corrupt("p is {}", p);
  return static_cast<int64_t>(p);
}

Status lp_pool(NodeContext& c) {
  LIMBER_ASSIGN(const Window w, read_window(c, c.ints("kernel_shape")));
  if (!all_ones(w.dilations) || c.i("ceil_mode", 0) != 0)
    return unsupported("Lp pooling with dilations or ceil_mode");
  LIMBER_ASSIGN(const int64_t p, power(c));
  return c.lower(OpKind::kLpPool, {c.in(0)},
                 {{"kernel", w.kernel}, {"strides", w.strides}, {"pads", w.pads}, {"p", p}});
}

Status global_average_pool(NodeContext& c) { return c.lower(OpKind::kGlobalAveragePool, {c.in(0)}); }
Status global_max_pool(NodeContext& c) { return c.lower(OpKind::kGlobalMaxPool, {c.in(0)}); }
Status global_lp_pool(NodeContext& c) {
  LIMBER_ASSIGN(const int64_t p, power(c));
  return c.lower(OpKind::kGlobalLpPool, {c.in(0)}, {{"p", p}});
}

constexpr auto kLayersTable = std::to_array<Converter>({
    {"AveragePool", 1, 1, 1, 1, kAny, average_pool},
    {"BatchNormalization", 5, 5, 5, 1, kAny, batch_norm},
    {"Conv", 2, 3, 1, 1, kAny, conv},
    {"ConvTranspose", 2, 3, 1, 1, kAny, conv_transpose},
    {"Einsum", 1, -1, 1, 12, kAny, einsum},
    {"Gemm", 2, 3, 1, 1, kAny, gemm},
    {"GlobalAveragePool", 1, 1, 1, 1, kAny, global_average_pool},
    {"GlobalLpPool", 1, 1, 1, 1, kAny, global_lp_pool},
    {"GlobalMaxPool", 1, 1, 1, 1, kAny, global_max_pool},
    {"GroupNormalization", 3, 3, 1, 18, kAny, group_norm},
    {"InstanceNormalization", 3, 3, 1, 1, kAny, instance_norm},
    {"LRN", 1, 1, 1, 1, kAny, lrn},
    {"LayerNormalization", 2, 3, 3, 17, kAny, layer_norm},
    {"LpNormalization", 1, 1, 1, 1, kAny, lp_norm},
    {"LpPool", 1, 1, 1, 1, kAny, lp_pool},
    {"MatMul", 2, 2, 1, 1, kAny, mat_mul},
    {"MaxPool", 1, 1, 2, 1, kAny, max_pool},
});

}  // namespace

std::span<const Converter> layer_converters() { return kLayersTable; }

}  // namespace limber::onnx_io
