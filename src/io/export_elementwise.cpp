#include <cmath>

#include "io/exporter.h"
#include "io/importer.h"

namespace limber::onnx_io {
namespace {

// x * sigmoid(x)
void silu(Exporter& e, const std::string& x, const std::string& out) {
  e.write("Mul", {x, e.node("Sigmoid", {x})}, {out});
}

// x * tanh(softplus(x))
void mish(Exporter& e, const std::string& x, const std::string& out) {
  e.write("Mul", {x, e.node("Tanh", {e.node("Softplus", {x})})}, {out});
}

// 0.5 * x * (1 + erf(x / sqrt 2)), or 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
void gelu(Exporter& e, bool approximate, const std::string& x, DType dtype, const std::string& out) {
  const auto number = [&](double v) { return e.number(v, dtype); };
  std::string inner;
  if (approximate) {
    const std::string cube = e.node("Mul", {x, e.node("Mul", {x, x})});
    const std::string sum = e.node("Add", {x, e.node("Mul", {cube, number(0.044715)})});
    inner = e.node("Tanh", {e.node("Mul", {sum, number(std::sqrt(2 / M_PI))})});
  } else {
    inner = e.node("Erf", {e.node("Div", {x, number(std::sqrt(2.0))})});
  }
  const std::string half = e.node("Mul", {x, number(0.5)});
  e.write("Mul", {half, e.node("Add", {inner, number(1)})}, {out});
}

void clip(Exporter& e, double low, double high, const std::string& x, DType dtype, const std::string& out) {
  Names inputs = {x, std::isinf(low) ? "" : e.number(low, dtype)};
  if (!std::isinf(high)) inputs.push_back(e.number(high, dtype));
  if (inputs.back().empty()) inputs.pop_back();
  e.write("Clip", inputs, {out});
}

Attrs cast_attrs(const Attrs& attrs, const char* name) {
  const auto dtype = parse_dtype(attrs.s("to"));
  LIMBER_ASSERT(dtype.has_value());
  return {{name, int64_t{dtype_to_onnx(*dtype)}}};
}

void unary(Exporter& e, OpKind op, const Attrs& attrs, const std::string& x, DType dtype,
           const std::string& out) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case OpKind::kSilu:
      return silu(e, x, out);
    case OpKind::kMish:
      return mish(e, x, out);
    case OpKind::kGelu:
      return gelu(e, attrs.s("approximate", "none") == "tanh", x, dtype, out);
    case OpKind::kClip:
      return clip(e, attrs.f("min", -kInfinity), attrs.f("max", kInfinity), x, dtype, out);
    case OpKind::kCast:
      return e.write("Cast", {x}, {out}, cast_attrs(attrs, "to"));
    // The others have ONNX's names, and attributes with ONNX's names.
    default:
      return e.write(op_name(op), {x}, {out}, attrs);
  }
}

}  // namespace

void export_activation(Exporter& e, const Activation& activation, const std::string& x, DType dtype,
                       const std::string& out) {
  Attrs attrs;
  switch (activation.op) {
    case OpKind::kLeakyRelu:
    case OpKind::kElu:
      attrs.set("alpha", activation.alpha);
      break;
    case OpKind::kHardSigmoid:
      attrs.set("alpha", activation.alpha).set("beta", activation.beta);
      break;
    case OpKind::kClip:
      attrs.set("min", activation.alpha).set("max", activation.beta);
      break;
    case OpKind::kGelu:
      attrs.set("approximate", std::string(activation.tanh_gelu ? "tanh" : "none"));
      break;
    default:
      break;
  }
  unary(e, activation.op, attrs, x, dtype, out);
}

Status export_elementwise(Exporter& e, const Node& node, bool* done) {
  const Names inputs = e.names(node.inputs), outputs = e.names(node.outputs);
  if (is_unary(node.op)) {
    unary(e, node.op, node.attrs, inputs[0], e.type(node.inputs[0]).dtype, outputs[0]);
    return {};
  }
  switch (node.op) {
    case OpKind::kBitShift:
      e.write("BitShift", inputs, outputs,
              {{"direction", std::string(node.attrs.i("left") != 0 ? "LEFT" : "RIGHT")}});
      return {};
    case OpKind::kWhere:
    case OpKind::kPRelu:
      e.write(op_name(node.op), inputs, outputs);
      return {};
    default:
      break;
  }
  *done = is_binary(node.op);
  if (*done) e.write(op_name(node.op), inputs, outputs, node.attrs);
  return {};
}

}  // namespace limber::onnx_io
