// Element-wise operators.
#include <array>
#include <cmath>
#include <limits>

#include "io/importer.h"

namespace limber::onnx_io {
namespace {

template <OpKind kOp>
Status unary(NodeContext& c) {
  return c.lower(kOp, {c.in(0)});
}

Status identity(NodeContext& c) {
  const Binding* input = c.binding(0);
  c.set(0, input->id, input->rows, input->row_major);
  return {};
}

template <OpKind kOp>
Status with_alpha(NodeContext& c, double fallback) {
  return c.lower(kOp, {c.in(0)}, {{"alpha", c.f("alpha", fallback)}});
}
Status leaky_relu(NodeContext& c) { return with_alpha<OpKind::kLeakyRelu>(c, 0.01); }
Status elu(NodeContext& c) { return with_alpha<OpKind::kElu>(c, 1); }
Status celu(NodeContext& c) { return with_alpha<OpKind::kCelu>(c, 1); }
Status thresholded_relu(NodeContext& c) { return with_alpha<OpKind::kThresholdedRelu>(c, 1); }

Status selu(NodeContext& c) {
  const bool old = c.version < 6;
  const double alpha = c.f("alpha", old ? 1.6732 : 1.67326319217681884765625);
  const double gamma = c.f("gamma", old ? 1.0507 : 1.05070102214813232421875);
  return c.lower(OpKind::kSelu, {c.in(0)}, {{"alpha", alpha}, {"gamma", gamma}});
}

Status hard_sigmoid(NodeContext& c) {
  return c.lower(OpKind::kHardSigmoid, {c.in(0)}, {{"alpha", c.f("alpha", 0.2)}, {"beta", c.f("beta", 0.5)}});
}

Status shrink(NodeContext& c) {
  return c.lower(OpKind::kShrink, {c.in(0)}, {{"lambd", c.f("lambd", 0.5)}, {"bias", c.f("bias", 0)}});
}

Status gelu(NodeContext& c) {
  const std::string approximate = c.s("approximate", "none");
  if (approximate != "none" && approximate != "tanh") return corrupt("approximate is '{}'", approximate);
  return c.lower(OpKind::kGelu, {c.in(0)}, {{"approximate", approximate}});
}

Status is_inf(NodeContext& c) {
  return c.lower(
      OpKind::kIsInf, {c.in(0)},
      {{"detect_negative", c.i("detect_negative", 1)}, {"detect_positive", c.i("detect_positive", 1)}});
}

// Bounds as numbers when they are known, as Max and Min when they are computed.
Status clip(NodeContext& c) {
  Attrs attrs;
  if (c.version < 11) {
    if (c.has_attr("min")) attrs.set("min", c.f("min", 0));
    if (c.has_attr("max")) attrs.set("max", c.f("max", 0));
    return c.lower(OpKind::kClip, {c.in(0)}, attrs);
  }
  const auto numeric = [&](int i) { return !c.has(i) || c.known(c.in(i)) != nullptr; };
  if (numeric(1) && numeric(2)) {
    for (const int i : {1, 2}) {
      if (!c.has(i)) continue;
      const char* name = i == 1 ? "min" : "max";
      LIMBER_ASSIGN(const auto bound, c.floats(i, name));
      if (bound.size() != 1) return corrupt("{} has {} elements, expected one", name, bound.size());
      attrs.set(name, bound[0]);
    }
    return c.lower(OpKind::kClip, {c.in(0)}, attrs);
  }
  ValueId y = c.in(0);
  if (c.has(1)) {
    LIMBER_ASSIGN(y, c.emit(OpKind::kMax, {y, c.in(1)}));
  }
  if (c.has(2)) {
    LIMBER_ASSIGN(y, c.emit(OpKind::kMin, {y, c.in(2)}));
  }
  c.set(0, y);
  return {};
}

Status cast_to(NodeContext& c, DType dtype) {
  const Binding* input = c.binding(0);
  LIMBER_ASSIGN(const ValueId y,
                c.emit(OpKind::kCast, {input->id}, {{"to", std::string(dtype_name(dtype))}}));
  c.set(0, y, input->rows, input->row_major);
  return {};
}

Status cast(NodeContext& c) {
  // Before opset 6 the type was written as a name.
  if (c.version < 6) {
    onnx::TensorProto::DataType type = onnx::TensorProto::UNDEFINED;
    const std::string name = c.s("to", "");
    onnx::TensorProto::DataType_Parse(name, &type);
    const auto dtype = dtype_from_onnx(type);
    return dtype ? cast_to(c, *dtype) : unsupported("a cast to {}", name);
  }
  const int64_t to = c.i("to", 0);
  const auto dtype = dtype_from_onnx(to);
  if (!dtype) return unsupported("a cast to {}", onnx_type_name(to));
  return cast_to(c, *dtype);
}

Status cast_like(NodeContext& c) { return cast_to(c, c.type(1).dtype); }

// Before opset 7, the second operand was placed at an axis of the first when "broadcast" was set.
Result<ValueId> old_broadcast(NodeContext& c) {
  const ValueId b = c.in(1);
  if (c.version >= 7 || c.i("broadcast", 0) == 0) return b;
  const int missing = c.rank(0) - c.rank(1);
  LIMBER_ASSIGN(const int64_t axis, normal_axis(c.i("axis", missing), c.rank(0) + 1));
  const int64_t trailing = missing - axis;
  if (trailing < 0 || c.rank(1) == 0) return b;
  Shape shape = c.type(b).shape;
  for (int64_t i = 0; i < trailing; ++i) shape.push_back(Dim(1));
  return c.reshape(b, shape);
}

template <OpKind kOp>
Status binary(NodeContext& c) {
  LIMBER_ASSIGN(const ValueId b, old_broadcast(c));
  return c.lower(kOp, {c.in(0), b});
}

Status mod(NodeContext& c) { return c.lower(OpKind::kMod, {c.in(0), c.in(1)}, {{"fmod", c.i("fmod", 0)}}); }

Status bit_shift(NodeContext& c) {
  const std::string direction = c.s("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") return corrupt("direction is '{}'", direction);
  return c.lower(OpKind::kBitShift, {c.in(0), c.in(1)}, {{"left", int64_t{direction == "LEFT"}}});
}

Result<ValueId> chain(NodeContext& c, OpKind op) {
  ValueId y = c.in(0);
  for (int i = 1; i < c.inputs(); ++i) {
    if (!c.has(i)) return corrupt("input {} is missing", i);
    LIMBER_ASSIGN(y, c.emit(op, {y, c.in(i)}));
  }
  return y;
}

template <OpKind kOp>
Status variadic(NodeContext& c) {
  LIMBER_ASSIGN(const ValueId y, chain(c, kOp));
  c.set(0, y);
  return {};
}

Status mean(NodeContext& c) {
  LIMBER_ASSIGN(ValueId y, chain(c, OpKind::kAdd));
  if (c.inputs() > 1) {
    LIMBER_ASSIGN(y, c.emit(OpKind::kDiv, {y, c.scalar(c.inputs(), c.type(y).dtype)}));
  }
  c.set(0, y);
  return {};
}

// Before opset 7 a slope per channel had one axis.
Status prelu(NodeContext& c) {
  ValueId slope = c.in(1);
  const Shape& x = c.type(0).shape;
  const bool per_channel = c.rank(1) == 1 && x.rank() > 2 && c.type(slope).shape[0] == x[1];
  if (c.version < 7 && per_channel) {
    Shape shape{x[1]};
    for (int i = 2; i < x.rank(); ++i) shape.push_back(Dim(1));
    LIMBER_ASSIGN(slope, c.reshape(slope, shape));
  }
  return c.lower(OpKind::kPRelu, {c.in(0), slope});
}

Status where(NodeContext& c) { return c.lower(OpKind::kWhere, {c.in(0), c.in(1), c.in(2)}); }

// In training mode elements are dropped at random, which no test of an inference engine can ask for.
Status dropout(NodeContext& c) {
  bool training = c.version < 7 && c.has_attr("is_test") && c.i("is_test", 0) == 0;
  if (c.has(2)) {
    LIMBER_ASSIGN(const StaticValue* mode, c.require(2, "training_mode"));
    training = mode->elements.size() == 1 && mode->elements[0] != StaticElement(Dim(0));
  }
  if (training && c.has(1)) {
    LIMBER_ASSIGN(const auto ratio, c.floats(1, "ratio"));
    training = ratio.size() != 1 || ratio[0] != 0;
  }
  if (training) return unsupported("dropout in training mode");
  c.set(0, c.in(0));
  if (c.wants(1)) {
    const bool flag = c.version >= 10;
    const Shape& shape = c.type(0).shape;
    const DType dtype = flag ? DType::kBool : c.type(0).dtype;
    LIMBER_ASSIGN(const ValueId mask, c.emit(OpKind::kExpand, {c.scalar(1, dtype)}, {{"shape", shape}}));
    c.set(1, mask);
  }
  return {};
}

constexpr auto kElementwiseTable = std::to_array<Converter>({
    {"Abs", 1, 1, 1, 1, kAny, unary<OpKind::kAbs>},
    {"Acos", 1, 1, 1, 7, kAny, unary<OpKind::kAcos>},
    {"Acosh", 1, 1, 1, 9, kAny, unary<OpKind::kAcosh>},
    {"Add", 2, 2, 1, 1, kAny, binary<OpKind::kAdd>},
    {"And", 2, 2, 1, 1, kAny, binary<OpKind::kAnd>},
    {"Asin", 1, 1, 1, 7, kAny, unary<OpKind::kAsin>},
    {"Asinh", 1, 1, 1, 9, kAny, unary<OpKind::kAsinh>},
    {"Atan", 1, 1, 1, 7, kAny, unary<OpKind::kAtan>},
    {"Atanh", 1, 1, 1, 9, kAny, unary<OpKind::kAtanh>},
    {"BitShift", 2, 2, 1, 11, kAny, bit_shift},
    {"Cast", 1, 1, 1, 1, kAny, cast},
    {"CastLike", 2, 2, 1, 15, kAny, cast_like},
    {"Ceil", 1, 1, 1, 1, kAny, unary<OpKind::kCeil>},
    {"Celu", 1, 1, 1, 12, kAny, celu},
    {"Clip", 1, 3, 1, 1, kAny, clip},
    {"Cos", 1, 1, 1, 7, kAny, unary<OpKind::kCos>},
    {"Cosh", 1, 1, 1, 9, kAny, unary<OpKind::kCosh>},
    {"Div", 2, 2, 1, 1, kAny, binary<OpKind::kDiv>},
    {"Dropout", 1, 3, 2, 1, kAny, dropout},
    {"Elu", 1, 1, 1, 1, kAny, elu},
    {"Equal", 2, 2, 1, 1, kAny, binary<OpKind::kEqual>},
    {"Erf", 1, 1, 1, 9, kAny, unary<OpKind::kErf>},
    {"Exp", 1, 1, 1, 1, kAny, unary<OpKind::kExp>},
    {"Floor", 1, 1, 1, 1, kAny, unary<OpKind::kFloor>},
    {"Gelu", 1, 1, 1, 20, kAny, gelu},
    {"Greater", 2, 2, 1, 1, kAny, binary<OpKind::kGreater>},
    {"GreaterOrEqual", 2, 2, 1, 12, kAny, binary<OpKind::kGreaterOrEqual>},
    {"HardSigmoid", 1, 1, 1, 1, kAny, hard_sigmoid},
    {"HardSwish", 1, 1, 1, 14, kAny, unary<OpKind::kHardSwish>},
    {"Identity", 1, 1, 1, 1, kAny, identity},
    {"IsInf", 1, 1, 1, 10, kAny, is_inf},
    {"IsNaN", 1, 1, 1, 9, kAny, unary<OpKind::kIsNaN>},
    {"LeakyRelu", 1, 1, 1, 1, kAny, leaky_relu},
    {"Less", 2, 2, 1, 1, kAny, binary<OpKind::kLess>},
    {"LessOrEqual", 2, 2, 1, 12, kAny, binary<OpKind::kLessOrEqual>},
    {"Log", 1, 1, 1, 1, kAny, unary<OpKind::kLog>},
    {"Max", 1, -1, 1, 1, kAny, variadic<OpKind::kMax>},
    {"Mean", 1, -1, 1, 1, kAny, mean},
    {"Min", 1, -1, 1, 1, kAny, variadic<OpKind::kMin>},
    {"Mish", 1, 1, 1, 18, kAny, unary<OpKind::kMish>},
    {"Mod", 2, 2, 1, 10, kAny, mod},
    {"Mul", 2, 2, 1, 1, kAny, binary<OpKind::kMul>},
    {"Neg", 1, 1, 1, 1, kAny, unary<OpKind::kNeg>},
    {"Not", 1, 1, 1, 1, kAny, unary<OpKind::kNot>},
    {"Or", 2, 2, 1, 1, kAny, binary<OpKind::kOr>},
    {"PRelu", 2, 2, 1, 1, kAny, prelu},
    {"Pow", 2, 2, 1, 1, kAny, binary<OpKind::kPow>},
    {"Reciprocal", 1, 1, 1, 1, kAny, unary<OpKind::kReciprocal>},
    {"Relu", 1, 1, 1, 1, kAny, unary<OpKind::kRelu>},
    {"Round", 1, 1, 1, 11, kAny, unary<OpKind::kRound>},
    {"Selu", 1, 1, 1, 1, kAny, selu},
    {"Shrink", 1, 1, 1, 9, kAny, shrink},
    {"Sigmoid", 1, 1, 1, 1, kAny, unary<OpKind::kSigmoid>},
    {"Sign", 1, 1, 1, 9, kAny, unary<OpKind::kSign>},
    {"Sin", 1, 1, 1, 7, kAny, unary<OpKind::kSin>},
    {"Sinh", 1, 1, 1, 9, kAny, unary<OpKind::kSinh>},
    {"Softplus", 1, 1, 1, 1, kAny, unary<OpKind::kSoftplus>},
    {"Softsign", 1, 1, 1, 1, kAny, unary<OpKind::kSoftsign>},
    {"Sqrt", 1, 1, 1, 1, kAny, unary<OpKind::kSqrt>},
    {"Sub", 2, 2, 1, 1, kAny, binary<OpKind::kSub>},
    {"Sum", 1, -1, 1, 1, kAny, variadic<OpKind::kAdd>},
    {"Tan", 1, 1, 1, 7, kAny, unary<OpKind::kTan>},
    {"Tanh", 1, 1, 1, 1, kAny, unary<OpKind::kTanh>},
    {"ThresholdedRelu", 1, 1, 1, 1, kAny, thresholded_relu},
    {"Where", 3, 3, 1, 9, kAny, where},
    {"Xor", 2, 2, 1, 1, kAny, binary<OpKind::kXor>},
});

}  // namespace

std::span<const Converter> elementwise_converters() { return kElementwiseTable; }

}  // namespace limber::onnx_io
