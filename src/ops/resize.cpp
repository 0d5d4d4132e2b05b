#include <cmath>

#include "ops/gradients.h"
#include "ops/rules.h"

namespace limber {
namespace {

using namespace rules;

Status check_resize_modes(const InferArgs& args) {
  LIMBER_TRY(choice_attr(args, "mode", "", {"nearest", "linear", "cubic"}).status());
  LIMBER_TRY(choice_attr(args, "coordinates", "",
                         {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                          "half_pixel_symmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"})
                 .status());
  LIMBER_TRY(choice_attr(args, "nearest", "round_prefer_floor",
                         {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
                 .status());
  for (const char* name : {"exclude_outside", "antialias"}) LIMBER_TRY(flag_attr(args, name, false).status());
  return check_finite(args, "cubic_coeff");
}

Status check_resize_numbers(const InferArgs& args) {
  const size_t rank = static_cast<size_t>(args.input(0).rank());
  const auto& scales = args.attrs.floats("scales");
  if (scales.size() != rank)
    return invalid("attribute 'scales' has {} values, expected {}", scales.size(), rank);
  for (double scale : scales) {
    if (!std::isfinite(scale) || scale <= 0)
      return invalid("attribute 'scales' holds {}, expected a positive number", scale);
  }
  const size_t roi = args.attrs.has("roi") ? args.attrs.floats("roi").size() : 0;
  const bool needs_roi = args.attrs.s("coordinates") == "tf_crop_and_resize";
  if (roi != 2 * rank && (roi != 0 || needs_roi)) {
    return invalid("attribute 'roi' has {} values, expected {}", roi, 2 * rank);
  }
  for (size_t i = 0; i < roi; ++i) {
    const double value = args.attrs.floats("roi")[i];
    if (!std::isfinite(value)) return invalid("attribute 'roi' holds {}, expected a finite number", value);
  }
  return {};
}

Result<Types> infer_resize(const InferArgs& args) {
  const TensorType& x = args.input(0);
  LIMBER_TRY(need_numeric(x, "x"));
  LIMBER_TRY(check_resize_modes(args));
  LIMBER_TRY(check_resize_numbers(args));
  TensorType y{x.dtype, args.attrs.dims("shape")};
  LIMBER_TRY(check_type(y));
  if (y.rank() != x.rank())
    return invalid("attribute 'shape' is [{}], expected rank {}", y.shape.to_string(), x.rank());
  for (int i = 0; i < x.rank(); ++i) {
    if (x.shape[i] == Dim(0) && y.shape[i] != Dim(0))
      return invalid("axis {} of {} is empty and cannot be resized", i, x.to_string());
  }
  return Types{std::move(y)};
}

Result<Types> infer_resize_backward(const InferArgs& args) {
  const TensorType& dy = args.input(0);
  LIMBER_TRY(need_float(dy, "dy"));
  LIMBER_TRY(check_resize_modes(args));
  LIMBER_TRY(check_resize_numbers(args));
  TensorType x{dy.dtype, args.attrs.dims("shape")};
  LIMBER_TRY(check_type(x));
  if (x.rank() != dy.rank())
    return invalid("attribute 'shape' is [{}], expected rank {}", x.shape.to_string(), dy.rank());
  return Types{std::move(x)};
}

Result<Types> infer_depth_to_space(const InferArgs& args) {
  TensorType y = args.input(0);
  LIMBER_TRY(need_rank(y, 4, 4, "x"));
  LIMBER_TRY(choice_attr(args, "mode", "DCR", {"DCR", "CRD"}).status());
  LIMBER_ASSIGN(const int64_t block, int_attr(args, "blocksize", std::nullopt, 1, 1 << 20));
  const auto channels = div_exact(y.shape[1], Dim(block * block));
  if (!channels) return invalid("x has type {}, expected channels that divide by {}^2", y.to_string(), block);
  y.shape[1] = *channels;
  for (int i = 2; i < 4; ++i) {
    LIMBER_ASSIGN(y.shape[i], expressible(mul(y.shape[i], block), "the output size"));
  }
  return Types{std::move(y)};
}

Result<Types> infer_space_to_depth(const InferArgs& args) {
  TensorType y = args.input(0);
  LIMBER_TRY(need_rank(y, 4, 4, "x"));
  LIMBER_ASSIGN(const int64_t block, int_attr(args, "blocksize", std::nullopt, 1, 1 << 20));
  LIMBER_ASSIGN(y.shape[1], expressible(mul(y.shape[1], block * block), "the number of channels"));
  for (int i = 2; i < 4; ++i) {
    const auto size = div_exact(y.shape[i], Dim(block));
    if (!size && y.shape[i].is_constant()) {
      return invalid("x has type {}, expected height and width that divide by {}", args.input(0).to_string(),
                     block);
    }
    LIMBER_ASSIGN(y.shape[i], expressible(size, "the output size"));
  }
  return Types{std::move(y)};
}

// An axis that keeps its size has one tap.
double resize_taps(const Node& node) {
  const std::string& mode = node.attrs.s("mode");
  double taps = 1;
  for (double scale : node.attrs.floats("scales")) {
    if (scale != 1 && mode != "nearest") taps *= mode == "cubic" ? 4 : 2;
  }
  return taps;
}

// Two per tap; nearest only copies.
double flops_resize(const Graph& graph, const Node& node) {
  return node.attrs.s("mode") == "nearest" ? 0 : 2 * resize_taps(node) * elements(graph, node.outputs[0]);
}
double flops_resize_backward(const Graph& graph, const Node& node) {
  return 2 * resize_taps(node) * elements(graph, node.inputs[0]);
}

constexpr AttrSpec kResizeAttrs[] = {
    required("shape", AttrKind::kDims),          required("scales", AttrKind::kFloats),
    required("mode", AttrKind::kString),         required("coordinates", AttrKind::kString),
    optional("nearest", AttrKind::kString),      optional("cubic_coeff", AttrKind::kFloat),
    optional("exclude_outside", AttrKind::kInt), optional("extrapolation", AttrKind::kFloat),
    optional("roi", AttrKind::kFloats),          optional("antialias", AttrKind::kInt)};
constexpr AttrSpec kDepthToSpaceAttrs[] = {required("blocksize", AttrKind::kInt),
                                           optional("mode", AttrKind::kString)};
constexpr AttrSpec kSpaceToDepthAttrs[] = {required("blocksize", AttrKind::kInt)};

}  // namespace

constinit const OpDef kResizeOp = gradients::with(
    {OpKind::kResize, 1, 1, 1, 1, kResizeAttrs, infer_resize, flops_resize}, gradients::resize);
constinit const OpDef kResizeBackwardOp = {
    OpKind::kResizeBackward, 1, 1, 1, 1, kResizeAttrs, infer_resize_backward, flops_resize_backward};
constinit const OpDef kDepthToSpaceOp =
    gradients::with({OpKind::kDepthToSpace, 1, 1, 1, 1, kDepthToSpaceAttrs, infer_depth_to_space, no_flops},
                    gradients::depth_to_space);
constinit const OpDef kSpaceToDepthOp =
    gradients::with({OpKind::kSpaceToDepth, 1, 1, 1, 1, kSpaceToDepthAttrs, infer_space_to_depth, no_flops},
                    gradients::space_to_depth);

}  // namespace limber
