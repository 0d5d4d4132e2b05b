#include "ops/gradients.h"
#include "ops/rules.h"

namespace limber {
namespace {

using namespace rules;

// --- one input ------------------------------------------------------------------------------------------

template <auto kNeed>
Result<Types> infer_same(const InferArgs& args) {
  LIMBER_TRY(kNeed(args.input(0), "x"));
  return Types{args.input(0)};
}

Result<Types> infer_gelu(const InferArgs& args) {
  LIMBER_TRY(choice_attr(args, "approximate", "none", {"none", "tanh"}).status());
  return infer_same<need_float>(args);
}

Result<Types> infer_test(const InferArgs& args) {
  LIMBER_TRY(need_float(args.input(0), "x"));
  for (const char* name : {"detect_negative", "detect_positive"})
    LIMBER_TRY(flag_attr(args, name, true).status());
  return Types{{DType::kBool, args.input(0).shape}};
}

Result<Types> infer_cast(const InferArgs& args) {
  LIMBER_ASSIGN(const DType to, dtype_attr(args, "to"));
  return Types{{to, args.input(0).shape}};
}

using Gradient = gradients::Rule*;

constexpr OpDef unary(OpKind op, InferFn infer, Gradient gradient, std::span<const AttrSpec> attrs = {},
                      FlopsFn flops = flops_of_outputs) {
  return {op, 1, 1, 1, 1, attrs, infer, flops, OpFamily::kUnary, gradient};
}

constexpr AttrSpec kApproximate[] = {optional("approximate", AttrKind::kString)};
constexpr AttrSpec kAlpha[] = {required("alpha", AttrKind::kFloat)};
constexpr AttrSpec kAlphaGamma[] = {required("alpha", AttrKind::kFloat), required("gamma", AttrKind::kFloat)};
constexpr AttrSpec kAlphaBeta[] = {required("alpha", AttrKind::kFloat), required("beta", AttrKind::kFloat)};
constexpr AttrSpec kShrink[] = {required("lambd", AttrKind::kFloat), required("bias", AttrKind::kFloat)};
constexpr AttrSpec kMinMax[] = {optional("min", AttrKind::kFloat), optional("max", AttrKind::kFloat)};
constexpr AttrSpec kDetect[] = {optional("detect_negative", AttrKind::kInt),
                                optional("detect_positive", AttrKind::kInt)};
constexpr AttrSpec kTo[] = {required("to", AttrKind::kString)};

// --- several inputs ---------------------------------------------------------------------------------------

Result<Shape> broadcast_inputs(const InferArgs& args, int first) {
  Shape shape = args.input(first).shape;
  for (int i = first + 1; i < static_cast<int>(args.inputs.size()); ++i) {
    const auto joined = broadcast(shape, args.input(i).shape);
    if (!joined) {
      return invalid("input {} has type {}, which does not broadcast with [{}]", i, args.input(i).to_string(),
                     shape.to_string());
    }
    shape = *joined;
  }
  return shape;
}

template <auto kNeed>
Result<Types> infer_binary(const InferArgs& args) {
  LIMBER_TRY(kNeed(args.input(0), "a"));
  LIMBER_TRY(need_same_dtype(args));
  LIMBER_ASSIGN(Shape shape, broadcast_inputs(args, 0));
  return Types{{args.input(0).dtype, std::move(shape)}};
}

template <auto kNeed>
Result<Types> infer_compare(const InferArgs& args) {
  LIMBER_ASSIGN(Types types, infer_binary<kNeed>(args));
  types[0].dtype = DType::kBool;
  return types;
}

Result<Types> infer_pow(const InferArgs& args) {
  LIMBER_TRY(need_numeric(args.input(0), "a"));
  LIMBER_TRY(need_numeric(args.input(1), "b"));
  LIMBER_ASSIGN(Shape shape, broadcast_inputs(args, 0));
  return Types{{args.input(0).dtype, std::move(shape)}};
}

Result<Types> infer_mod(const InferArgs& args) {
  LIMBER_TRY(flag_attr(args, "fmod", false).status());
  return infer_binary<need_numeric>(args);
}

Result<Types> infer_bit_shift(const InferArgs& args) {
  LIMBER_TRY(flag_attr(args, "left").status());
  return infer_binary<need_integer>(args);
}

Result<Types> infer_prelu(const InferArgs& args) {
  LIMBER_TRY(need_numeric(args.input(0), "x"));
  LIMBER_TRY(need_same_dtype(args));
  LIMBER_TRY(need_broadcast_to(args.input(1), args.input(0).shape, "slope"));
  return Types{args.input(0)};
}

Result<Types> infer_where(const InferArgs& args) {
  LIMBER_TRY(need_bool(args.input(0), "condition"));
  if (args.input(1).dtype != args.input(2).dtype) {
    return invalid("a has type {} and b {}, expected the same dtype", args.input(1).to_string(),
                   args.input(2).to_string());
  }
  LIMBER_ASSIGN(Shape shape, broadcast_inputs(args, 0));
  return Types{{args.input(1).dtype, std::move(shape)}};
}

constexpr InPlace kOverFirst[] = {{0, 0}};

constexpr OpDef binary(OpKind op, InferFn infer, Gradient gradient, std::span<const AttrSpec> attrs = {}) {
  return {op, 2, 2, 1, 1, attrs, infer, flops_of_outputs, OpFamily::kBinary, gradient, kOverFirst};
}
constexpr OpDef comparison(OpKind op, InferFn infer) {
  return {op, 2, 2, 1, 1, {}, infer, flops_of_outputs, OpFamily::kComparison};
}

constexpr AttrSpec kFmod[] = {optional("fmod", AttrKind::kInt)};
constexpr AttrSpec kLeft[] = {required("left", AttrKind::kInt)};

}  // namespace

constinit const OpDef kIdentityOp =
    unary(OpKind::kIdentity, infer_same<need_any>, gradients::identity, {}, no_flops);
constinit const OpDef kAbsOp = unary(OpKind::kAbs, infer_same<need_numeric>, gradients::abs);
constinit const OpDef kNegOp = unary(OpKind::kNeg, infer_same<need_signed>, gradients::neg);
constinit const OpDef kSignOp = unary(OpKind::kSign, infer_same<need_numeric>, gradients::zero);
constinit const OpDef kReciprocalOp =
    unary(OpKind::kReciprocal, infer_same<need_float>, gradients::reciprocal);
constinit const OpDef kFloorOp = unary(OpKind::kFloor, infer_same<need_float>, gradients::zero);
constinit const OpDef kCeilOp = unary(OpKind::kCeil, infer_same<need_float>, gradients::zero);
constinit const OpDef kRoundOp = unary(OpKind::kRound, infer_same<need_float>, gradients::zero);
constinit const OpDef kSqrtOp = unary(OpKind::kSqrt, infer_same<need_float>, gradients::sqrt);
constinit const OpDef kExpOp = unary(OpKind::kExp, infer_same<need_float>, gradients::exp);
constinit const OpDef kLogOp = unary(OpKind::kLog, infer_same<need_float>, gradients::log);
constinit const OpDef kErfOp = unary(OpKind::kErf, infer_same<need_float>, gradients::erf);
constinit const OpDef kSinOp = unary(OpKind::kSin, infer_same<need_float>, gradients::sin);
constinit const OpDef kCosOp = unary(OpKind::kCos, infer_same<need_float>, gradients::cos);
constinit const OpDef kTanOp = unary(OpKind::kTan, infer_same<need_float>, gradients::tan);
constinit const OpDef kAsinOp = unary(OpKind::kAsin, infer_same<need_float>, gradients::asin);
constinit const OpDef kAcosOp = unary(OpKind::kAcos, infer_same<need_float>, gradients::acos);
constinit const OpDef kAtanOp = unary(OpKind::kAtan, infer_same<need_float>, gradients::atan);
constinit const OpDef kSinhOp = unary(OpKind::kSinh, infer_same<need_float>, gradients::sinh);
constinit const OpDef kCoshOp = unary(OpKind::kCosh, infer_same<need_float>, gradients::cosh);
constinit const OpDef kTanhOp = unary(OpKind::kTanh, infer_same<need_float>, gradients::activation);
constinit const OpDef kAsinhOp = unary(OpKind::kAsinh, infer_same<need_float>, gradients::asinh);
constinit const OpDef kAcoshOp = unary(OpKind::kAcosh, infer_same<need_float>, gradients::acosh);
constinit const OpDef kAtanhOp = unary(OpKind::kAtanh, infer_same<need_float>, gradients::atanh);
constinit const OpDef kReluOp = unary(OpKind::kRelu, infer_same<need_numeric>, gradients::activation);
constinit const OpDef kSigmoidOp = unary(OpKind::kSigmoid, infer_same<need_float>, gradients::activation);
constinit const OpDef kSiluOp = unary(OpKind::kSilu, infer_same<need_float>, gradients::activation);
constinit const OpDef kHardSwishOp = unary(OpKind::kHardSwish, infer_same<need_float>, gradients::activation);
constinit const OpDef kMishOp = unary(OpKind::kMish, infer_same<need_float>, gradients::activation);
constinit const OpDef kSoftplusOp = unary(OpKind::kSoftplus, infer_same<need_float>, gradients::activation);
constinit const OpDef kSoftsignOp = unary(OpKind::kSoftsign, infer_same<need_float>, gradients::softsign);
constinit const OpDef kGeluOp = unary(OpKind::kGelu, infer_gelu, gradients::activation, kApproximate);
constinit const OpDef kLeakyReluOp =
    unary(OpKind::kLeakyRelu, infer_same<need_float>, gradients::activation, kAlpha);
constinit const OpDef kEluOp = unary(OpKind::kElu, infer_same<need_float>, gradients::activation, kAlpha);
constinit const OpDef kCeluOp = unary(OpKind::kCelu, infer_same<need_float>, gradients::celu, kAlpha);
constinit const OpDef kSeluOp = unary(OpKind::kSelu, infer_same<need_float>, gradients::selu, kAlphaGamma);
constinit const OpDef kThresholdedReluOp =
    unary(OpKind::kThresholdedRelu, infer_same<need_float>, gradients::thresholded_relu, kAlpha);
constinit const OpDef kHardSigmoidOp =
    unary(OpKind::kHardSigmoid, infer_same<need_float>, gradients::activation, kAlphaBeta);
constinit const OpDef kShrinkOp =
    unary(OpKind::kShrink, infer_same<need_numeric>, gradients::shrink, kShrink);
constinit const OpDef kClipOp =
    unary(OpKind::kClip, infer_same<need_numeric>, gradients::activation, kMinMax);
constinit const OpDef kNotOp = unary(OpKind::kNot, infer_same<need_bool>, nullptr);
constinit const OpDef kIsNaNOp = unary(OpKind::kIsNaN, infer_test, nullptr);
constinit const OpDef kIsInfOp = unary(OpKind::kIsInf, infer_test, nullptr, kDetect);
constinit const OpDef kCastOp = unary(OpKind::kCast, infer_cast, gradients::cast, kTo);

constinit const OpDef kAddOp = binary(OpKind::kAdd, infer_binary<need_numeric>, gradients::add);
constinit const OpDef kSubOp = binary(OpKind::kSub, infer_binary<need_numeric>, gradients::sub);
constinit const OpDef kMulOp = binary(OpKind::kMul, infer_binary<need_numeric>, gradients::mul);
constinit const OpDef kDivOp = binary(OpKind::kDiv, infer_binary<need_numeric>, gradients::div);
constinit const OpDef kPowOp = binary(OpKind::kPow, infer_pow, gradients::pow);
constinit const OpDef kModOp = binary(OpKind::kMod, infer_mod, gradients::mod, kFmod);
constinit const OpDef kMinOp = binary(OpKind::kMin, infer_binary<need_numeric>, gradients::min);
constinit const OpDef kMaxOp = binary(OpKind::kMax, infer_binary<need_numeric>, gradients::max);
constinit const OpDef kPReluOp = binary(OpKind::kPRelu, infer_prelu, gradients::prelu);
constinit const OpDef kBitShiftOp = binary(OpKind::kBitShift, infer_bit_shift, nullptr, kLeft);
constinit const OpDef kAndOp = binary(OpKind::kAnd, infer_binary<need_bool>, nullptr);
constinit const OpDef kOrOp = binary(OpKind::kOr, infer_binary<need_bool>, nullptr);
constinit const OpDef kXorOp = binary(OpKind::kXor, infer_binary<need_bool>, nullptr);
constinit const OpDef kEqualOp = comparison(OpKind::kEqual, infer_compare<need_any>);
constinit const OpDef kLessOp = comparison(OpKind::kLess, infer_compare<need_numeric>);
constinit const OpDef kLessOrEqualOp = comparison(OpKind::kLessOrEqual, infer_compare<need_numeric>);
constinit const OpDef kGreaterOp = comparison(OpKind::kGreater, infer_compare<need_numeric>);
constinit const OpDef kGreaterOrEqualOp = comparison(OpKind::kGreaterOrEqual, infer_compare<need_numeric>);
constinit const OpDef kWhereOp = {
    OpKind::kWhere, 3, 3, 1, 1, {}, infer_where, flops_of_outputs, OpFamily::kOther, gradients::where};

}  // namespace limber
