// Moving data, detection.
#include <cmath>

#include "io/exporter.h"
#include "io/importer.h"

namespace limber::onnx_io {
namespace {

// Axes that stay are written as 0 and one that differs as -1, so that the file needs no shape arithmetic.
Status reshape(Exporter& e, const Node& node) {
  const Shape &from = e.type(node.inputs[0]).shape, &to = node.attrs.dims("shape");
  std::vector<int64_t> simple;
  int open = 0;
  bool zero = false;
  for (int i = 0; i < to.rank(); ++i) {
    zero = zero || to[i] == Dim(0);
    if (to[i].is_constant()) {
      simple.push_back(to[i].value());
    } else if (i < from.rank() && from[i] == to[i]) {
      simple.push_back(0);
    } else {
      simple.push_back(-1);
      ++open;
    }
  }
  const bool direct = to.is_constant() || (open <= 1 && !zero);
  std::string shape;
  if (direct) {
    shape = e.ints(simple);
  } else {
    LIMBER_ASSIGN(shape, e.dims(to));
  }
  const Attrs attrs = zero ? Attrs{{"allowzero", int64_t{1}}} : Attrs{};
  e.write("Reshape", {e.name(node.inputs[0]), shape}, e.names(node.outputs), attrs);
  return {};
}

Status expand(Exporter& e, const Node& node) {
  LIMBER_ASSIGN(const std::string shape, e.dims(node.attrs.dims("shape")));
  e.write("Expand", {e.name(node.inputs[0]), shape}, e.names(node.outputs));
  return {};
}

Status slice(Exporter& e, const Node& node) {
  const Attrs& a = node.attrs;
  e.write("Slice",
          {e.name(node.inputs[0]), e.ints(a.ints("starts")), e.ints(a.ints("ends")), e.ints(a.ints("axes")),
           e.ints(a.ints("steps"))},
          e.names(node.outputs));
  return {};
}

Status split(Exporter& e, const Node& node) {
  Names outputs;
  for (ValueId v : node.outputs) outputs.push_back(e.name(v));
  e.write("Split", {e.name(node.inputs[0]), e.ints(node.attrs.ints("sizes"))}, outputs,
          {{"axis", node.attrs.i("axis")}});
  return {};
}

Status scatter(Exporter& e, const Node& node) {
  const std::string reduction = node.attrs.s("reduction", "none");
  if ((reduction == "max" || reduction == "min") && e.opset() < 18) {
    return unsupported("reduction '{}' needs opset 18", reduction);
  }
  e.write(op_name(node.op), e.names(node.inputs), e.names(node.outputs), node.attrs);
  return {};
}

Status pad(Exporter& e, const Node& node) {
  const std::string mode = node.attrs.s("mode", "constant");
  if (mode == "wrap") return unsupported("mode 'wrap' needs opset 19");
  const DType dtype = e.type(node.inputs[0]).dtype;
  e.write(
      "Pad",
      {e.name(node.inputs[0]), e.ints(node.attrs.ints("pads")), e.number(node.attrs.f("value", 0), dtype)},
      e.names(node.outputs), {{"mode", mode}});
  return {};
}

// Whether floor(dim * scale) gives the wanted size, as a reader of the file will compute it.
bool scales_give(const Shape& from, const Shape& to, const std::vector<double>& scales) {
  for (int i = 0; i < from.rank(); ++i) {
    const auto scale = static_cast<double>(static_cast<float>(scales[static_cast<size_t>(i)]));
    if (from[i].is_constant() && to[i].is_constant()) {
      if (std::floor(static_cast<double>(from[i].value()) * scale) != static_cast<double>(to[i].value()))
        return false;
    } else if (scale != std::trunc(scale) || mul(from[i], Dim(static_cast<int64_t>(scale))) != to[i]) {
      return false;
    }
  }
  return true;
}

Status resize(Exporter& e, const Node& node) {
  const Attrs& a = node.attrs;
  const std::string coordinates = a.s("coordinates", "half_pixel");
  const int64_t antialias = a.i("antialias", 0);
  if (coordinates == "half_pixel_symmetric") return unsupported("half_pixel_symmetric needs opset 19");
  if (antialias != 0 && e.opset() < 18) return unsupported("antialias needs opset 18");
  Attrs attrs{{"mode", a.s("mode", "nearest")},
              {"coordinate_transformation_mode", coordinates},
              {"nearest_mode", a.s("nearest", "round_prefer_floor")},
              {"cubic_coeff_a", a.f("cubic_coeff", -0.75)},
              {"exclude_outside", a.i("exclude_outside", 0)},
              {"extrapolation_value", a.f("extrapolation", 0)}};
  if (antialias != 0) attrs.set("antialias", antialias);
  const auto floats = [&](const std::vector<double>& values) {
    const std::vector<float> narrow(values.begin(), values.end());
    return e.constant(
        Tensor::from(std::span<const float>(narrow), Shape{static_cast<int64_t>(narrow.size())}));
  };
  const std::string roi = a.has("roi") && !a.floats("roi").empty() ? floats(a.floats("roi")) : "";
  const Shape& to = a.dims("shape");
  if (roi.empty() && scales_give(e.type(node.inputs[0]).shape, to, a.floats("scales"))) {
    e.write("Resize", {e.name(node.inputs[0]), roi, floats(a.floats("scales"))}, e.names(node.outputs),
            attrs);
    return {};
  }
  LIMBER_ASSIGN(const std::string sizes, e.dims(to));
  e.write("Resize", {e.name(node.inputs[0]), roi, "", sizes}, e.names(node.outputs), attrs);
  return {};
}

Status one_hot(Exporter& e, const Node& node) {
  const std::string depth = e.number(static_cast<double>(node.attrs.i("depth")), DType::kI64);
  e.write("OneHot", {e.name(node.inputs[0]), depth, e.name(node.inputs[1])}, e.names(node.outputs),
          {{"axis", node.attrs.i("axis")}});
  return {};
}

Status trilu(Exporter& e, const Node& node) {
  const std::string k = e.number(static_cast<double>(node.attrs.i("k")), DType::kI64);
  e.write("Trilu", {e.name(node.inputs[0]), k}, e.names(node.outputs), {{"upper", node.attrs.i("upper")}});
  return {};
}

Status eye_like(Exporter& e, const Node& node) {
  const auto dtype = parse_dtype(node.attrs.s("to"));
  LIMBER_ASSERT(dtype.has_value());
  e.write("EyeLike", e.names(node.inputs), e.names(node.outputs),
          {{"k", node.attrs.i("k")}, {"dtype", int64_t{dtype_to_onnx(*dtype)}}});
  return {};
}

// In ONNX the result has as many rows as there are hits; their number is its first dimension.
void count_rows(Exporter& e, const Node& node, const std::string& rows) {
  if (node.outputs.size() < 2 || node.outputs[1] == kNoValue) return;
  e.write("Gather", {e.node("Shape", {rows}), e.number(0, DType::kI64)}, {e.name(node.outputs[1])},
          {{"axis", int64_t{0}}});
}

Status non_max_suppression(Exporter& e, const Node& node) {
  const Attrs& a = node.attrs;
  Names inputs = e.names(node.inputs);
  inputs.push_back(e.ints({a.i("max_boxes")}));
  const auto threshold = [&](const char* name) {
    const auto value = static_cast<float>(a.f(name));
    return e.constant(Tensor::from({value}, Shape{1}));
  };
  inputs.push_back(threshold("iou_threshold"));
  if (!std::isinf(a.f("score_threshold"))) inputs.push_back(threshold("score_threshold"));
  const std::string rows = e.name(node.outputs[0]);
  e.write("NonMaxSuppression", inputs, {rows}, {{"center_point_box", a.i("center_point_box", 0)}});
  count_rows(e, node, rows);
  return {};
}

Status non_zero(Exporter& e, const Node& node) {
  const std::string rows = e.name(node.outputs[0]);
  e.write("Transpose", {e.node("NonZero", e.names(node.inputs))}, {rows},
          {{"perm", std::vector<int64_t>{1, 0}}});
  count_rows(e, node, rows);
  return {};
}

}  // namespace

Status export_movement(Exporter& e, const Node& node, bool* done) {
  switch (node.op) {
    case OpKind::kReshape:
      return reshape(e, node);
    case OpKind::kExpand:
      return expand(e, node);
    case OpKind::kTile:
      e.write("Tile", {e.name(node.inputs[0]), e.ints(node.attrs.ints("repeats"))}, e.names(node.outputs));
      return {};
    case OpKind::kSlice:
      return slice(e, node);
    case OpKind::kSplit:
      return split(e, node);
    case OpKind::kScatterElements:
    case OpKind::kScatterND:
      return scatter(e, node);
    case OpKind::kPad:
      return pad(e, node);
    case OpKind::kResize:
      return resize(e, node);
    case OpKind::kOneHot:
      return one_hot(e, node);
    case OpKind::kTrilu:
      return trilu(e, node);
    case OpKind::kEyeLike:
      return eye_like(e, node);
    case OpKind::kShapeOf:
      e.write("Shape", e.names(node.inputs), e.names(node.outputs));
      return {};
    case OpKind::kNonMaxSuppression:
      return non_max_suppression(e, node);
    case OpKind::kNonZero:
      return non_zero(e, node);
    case OpKind::kTranspose:
    case OpKind::kConcat:
    case OpKind::kGather:
    case OpKind::kGatherElements:
    case OpKind::kGatherND:
    case OpKind::kDepthToSpace:
    case OpKind::kSpaceToDepth:
    case OpKind::kReverseSequence:
      e.write(op_name(node.op), e.names(node.inputs), e.names(node.outputs), node.attrs);
      return {};
    default:
      *done = false;
      return {};
  }
}

}  // namespace limber::onnx_io
