#include "ops/gradients.h"
#include "ops/window.h"

namespace limber {
namespace {

using namespace rules;

// Kernel sizes are the last axes of the weights; they must be known.
Status check_conv(const InferArgs& args) {
  const TensorType &x = args.input(0), &w = args.input(1);
  LIMBER_TRY(need_float(x, "x"));
  LIMBER_TRY(need_same_dtype(args));
  LIMBER_TRY(need_rank(x, 3, kMaxRank, "x"));
  LIMBER_TRY(need_rank(w, x.rank(), x.rank(), "weights"));
  for (int i = 2; i < w.rank(); ++i) {
    if (!w.shape[i].is_constant() || w.shape[i].value() < 1 || w.shape[i].value() > kMaxExtent) {
      return invalid("weights have type {}, expected kernel sizes from 1 to {}", w.to_string(), kMaxExtent);
    }
  }
  return check_window_attrs(args, x.rank() - 2);
}

Status check_channels(const TensorType& x, const TensorType& w, const Dim& expected, int64_t groups) {
  if (may_equal(x.shape[1], expected)) return {};
  return invalid("x has type {} and the weights {} with groups {}, expected x to have {} channels",
                 x.to_string(), w.to_string(), groups, expected.to_string());
}

Status check_divides(const Dim& channels, int64_t groups, std::string_view what) {
  if (!channels.is_constant() || channels.value() % groups == 0) return {};
  return invalid("{} {} do not divide into groups of {}", channels.to_string(), what, groups);
}

Result<Types> infer_conv(const InferArgs& args) {
  LIMBER_TRY(check_conv(args));
  LIMBER_TRY(check_activation(args.attrs));
  const TensorType &x = args.input(0), &w = args.input(1);
  LIMBER_ASSIGN(const int64_t groups, int_attr(args, "groups", 1, 1, kMaxExtent));
  LIMBER_ASSIGN(const Dim channels, expressible(mul(w.shape[1], groups), "the number of input channels"));
  LIMBER_TRY(check_channels(x, w, channels, groups));
  LIMBER_TRY(check_divides(w.shape[0], groups, "output channels"));
  LIMBER_TRY(need_vector(args, 2, w.shape[0], "bias"));

  TensorType y{x.dtype, {x.shape[0], w.shape[0]}};
  for (int i = 0; i < x.rank() - 2; ++i) {
    const Window window = window_at(args, x.rank() - 2, i, w.shape[2 + i].value());
    LIMBER_ASSIGN(const Dim size, window_count(x.shape[2 + i], window, i));
    y.shape.push_back(size);
  }
  if (args.has(3)) LIMBER_TRY(need_shape(args.input(3), y.shape, "residual"));
  return Types{std::move(y)};
}

// (size - 1) * stride + output_padding + extent - pads
Result<Dim> transposed_size(const Dim& size, const Window& window, int64_t output_padding, int spatial_axis) {
  const auto scaled = mul(size, window.stride);
  const int64_t rest = window.extent() - window.stride + output_padding - window.pad_begin - window.pad_end;
  LIMBER_ASSIGN(const Dim out, expressible(scaled ? add(*scaled, rest) : std::nullopt, "the output size"));
  if (out.is_constant() && out.value() < 1) {
    return invalid("spatial axis {} of size {} gives an output of size {}; pads {}+{} are too large",
                   spatial_axis, size.to_string(), out.value(), window.pad_begin, window.pad_end);
  }
  return out;
}

Result<Types> infer_conv_transpose(const InferArgs& args) {
  LIMBER_TRY(check_conv(args));
  const TensorType &x = args.input(0), &w = args.input(1);
  const int spatial = x.rank() - 2;
  LIMBER_TRY(check_ints(args, "output_padding", spatial, 0, kMaxExtent));
  LIMBER_ASSIGN(const int64_t groups, int_attr(args, "groups", 1, 1, kMaxExtent));
  LIMBER_TRY(check_channels(x, w, w.shape[0], groups));
  LIMBER_TRY(check_divides(w.shape[0], groups, "input channels"));
  LIMBER_ASSIGN(const Dim channels, expressible(mul(w.shape[1], groups), "the number of output channels"));
  LIMBER_TRY(need_vector(args, 2, channels, "bias"));

  TensorType y{x.dtype, {x.shape[0], channels}};
  for (int i = 0; i < spatial; ++i) {
    const Window window = window_at(args, spatial, i, w.shape[2 + i].value());
    const int64_t padding = args.attrs.ints("output_padding")[static_cast<size_t>(i)];
    LIMBER_ASSIGN(const Dim size, transposed_size(x.shape[2 + i], window, padding, i));
    y.shape.push_back(size);
  }
  return Types{std::move(y)};
}

// Multiply-adds per element of y (conv) or x (transposed): everything in the weights but axis 0.
double weights_per_channel(const Graph& graph, const Node& node) {
  const Shape& w = graph.type(node.inputs[1]).shape;
  double count = 1;
  for (int i = 1; i < w.rank(); ++i) count *= static_cast<double>(w.dim(i));
  return count;
}

double flops_conv(const Graph& graph, const Node& node) {
  return 2 * elements(graph, node.outputs[0]) * weights_per_channel(graph, node);
}
double flops_conv_transpose(const Graph& graph, const Node& node) {
  return 2 * elements(graph, node.inputs[0]) * weights_per_channel(graph, node);
}

constexpr AttrSpec kConvAttrs[] = {
    required("strides", AttrKind::kInts),   required("pads", AttrKind::kInts),
    required("dilations", AttrKind::kInts), optional("groups", AttrKind::kInt),
    optional("act", AttrKind::kString),     optional("act_alpha", AttrKind::kFloat),
    optional("act_beta", AttrKind::kFloat)};
constexpr AttrSpec kConvTransposeAttrs[] = {
    required("strides", AttrKind::kInts), required("pads", AttrKind::kInts),
    required("dilations", AttrKind::kInts), required("output_padding", AttrKind::kInts),
    optional("groups", AttrKind::kInt)};

}  // namespace

constinit const OpDef kConvOp =
    gradients::with({OpKind::kConv, 2, 4, 1, 1, kConvAttrs, infer_conv, flops_conv}, gradients::conv);
constinit const OpDef kConvTransposeOp = gradients::with(
    {OpKind::kConvTranspose, 2, 3, 1, 1, kConvTransposeAttrs, infer_conv_transpose, flops_conv_transpose},
    gradients::conv_transpose);

}  // namespace limber
