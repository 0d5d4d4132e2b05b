#include "ops/gradients.h"
#include "ops/rules.h"

namespace limber {
namespace {

using namespace rules;

Shape without_axes(const Shape& shape, const std::vector<int64_t>& axes, bool keepdims) {
  Shape out;
  size_t next = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool reduced = next < axes.size() && axes[next] == i;
    if (reduced) ++next;
    if (!reduced) out.push_back(shape[i]);
    if (reduced && keepdims) out.push_back(1);
  }
  return out;
}

template <auto kNeed>
Result<Types> infer_reduce(const InferArgs& args) {
  const TensorType& x = args.input(0);
  LIMBER_TRY(kNeed(x, "x"));
  LIMBER_ASSIGN(const bool keepdims, flag_attr(args, "keepdims"));
  const auto& axes = args.attrs.ints("axes");
  int64_t previous = -1;
  for (int64_t axis : axes) {
    if (axis <= previous || axis >= x.rank()) {
      return invalid("attribute 'axes' holds {}, expected sorted, different axes in [0, {})", axis, x.rank());
    }
    previous = axis;
  }
  return Types{{x.dtype, without_axes(x.shape, axes, keepdims)}};
}

Result<Types> infer_arg(const InferArgs& args) {
  const TensorType& x = args.input(0);
  LIMBER_TRY(need_numeric(x, "x"));
  LIMBER_ASSIGN(const int axis, axis_attr(args, "axis", x.rank()));
  LIMBER_ASSIGN(const bool keepdims, flag_attr(args, "keepdims"));
  LIMBER_TRY(flag_attr(args, "select_last", false).status());
  if (x.shape[axis] == Dim(0))
    return invalid("x has type {}, expected at least one element on axis {}", x.to_string(), axis);
  return Types{{DType::kI64, without_axes(x.shape, {axis}, keepdims)}};
}

Result<Types> infer_softmax(const InferArgs& args) {
  LIMBER_TRY(need_float(args.input(0), "x"));
  LIMBER_TRY(axis_attr(args, "axis", args.input(0).rank()).status());
  return Types{args.input(0)};
}

Result<Types> infer_top_k(const InferArgs& args) {
  const TensorType& x = args.input(0);
  LIMBER_TRY(need_numeric(x, "x"));
  LIMBER_ASSIGN(const int axis, axis_attr(args, "axis", x.rank()));
  LIMBER_ASSIGN(const int64_t k, int_attr(args, "k", std::nullopt, 0, kMaxElements));
  for (const char* name : {"largest", "sorted"}) LIMBER_TRY(flag_attr(args, name, true).status());
  if (x.shape[axis].is_constant() && k > x.shape[axis].value()) {
    return invalid("attribute 'k' is {}, expected at most {}, the size of axis {}", k, x.shape[axis].value(),
                   axis);
  }
  Shape shape = x.shape;
  shape[axis] = k;
  return Types{{x.dtype, shape}, {DType::kI64, shape}};
}

Result<Types> infer_cum_sum(const InferArgs& args) {
  LIMBER_TRY(need_numeric(args.input(0), "x"));
  LIMBER_TRY(axis_attr(args, "axis", args.input(0).rank()).status());
  for (const char* name : {"exclusive", "reverse"}) LIMBER_TRY(flag_attr(args, name, false).status());
  return Types{args.input(0)};
}

constexpr AttrSpec kReduceAttrs[] = {required("axes", AttrKind::kInts), required("keepdims", AttrKind::kInt)};
constexpr AttrSpec kArgAttrs[] = {required("axis", AttrKind::kInt), required("keepdims", AttrKind::kInt),
                                  optional("select_last", AttrKind::kInt)};
constexpr AttrSpec kAxis[] = {required("axis", AttrKind::kInt)};
constexpr AttrSpec kTopKAttrs[] = {required("axis", AttrKind::kInt), required("k", AttrKind::kInt),
                                   optional("largest", AttrKind::kInt), optional("sorted", AttrKind::kInt)};
constexpr AttrSpec kCumSumAttrs[] = {required("axis", AttrKind::kInt), optional("exclusive", AttrKind::kInt),
                                     optional("reverse", AttrKind::kInt)};

constexpr OpDef reduction(OpKind op, InferFn infer, gradients::Rule* gradient) {
  return {op, 1, 1, 1, 1, kReduceAttrs, infer, flops_of_inputs, OpFamily::kReduction, gradient};
}
// max, subtract, exponential, sum and division: five per element.
constexpr OpDef softmax(OpKind op, gradients::Rule* gradient) {
  return {op, 1, 1, 1, 1, kAxis, infer_softmax, flops_per_element<5>, OpFamily::kOther, gradient};
}

}  // namespace

constinit const OpDef kReduceSumOp =
    reduction(OpKind::kReduceSum, infer_reduce<need_numeric>, gradients::reduce_sum);
constinit const OpDef kReduceMeanOp =
    reduction(OpKind::kReduceMean, infer_reduce<need_numeric>, gradients::reduce_mean);
constinit const OpDef kReduceMaxOp =
    reduction(OpKind::kReduceMax, infer_reduce<need_numeric>, gradients::reduce_extreme);
constinit const OpDef kReduceMinOp =
    reduction(OpKind::kReduceMin, infer_reduce<need_numeric>, gradients::reduce_extreme);
constinit const OpDef kReduceProdOp =
    reduction(OpKind::kReduceProd, infer_reduce<need_numeric>, gradients::reduce_prod);
constinit const OpDef kReduceL1Op =
    reduction(OpKind::kReduceL1, infer_reduce<need_numeric>, gradients::reduce_l1);
constinit const OpDef kReduceL2Op =
    reduction(OpKind::kReduceL2, infer_reduce<need_numeric>, gradients::reduce_l2);
constinit const OpDef kReduceLogSumOp =
    reduction(OpKind::kReduceLogSum, infer_reduce<need_float>, gradients::reduce_log_sum);
constinit const OpDef kReduceLogSumExpOp =
    reduction(OpKind::kReduceLogSumExp, infer_reduce<need_float>, gradients::reduce_log_sum_exp);
constinit const OpDef kReduceSumSquareOp =
    reduction(OpKind::kReduceSumSquare, infer_reduce<need_numeric>, gradients::reduce_sum_square);
constinit const OpDef kArgMaxOp = {OpKind::kArgMax, 1, 1, 1, 1, kArgAttrs, infer_arg, flops_of_inputs};
constinit const OpDef kArgMinOp = {OpKind::kArgMin, 1, 1, 1, 1, kArgAttrs, infer_arg, flops_of_inputs};
constinit const OpDef kSoftmaxOp = softmax(OpKind::kSoftmax, gradients::softmax);
constinit const OpDef kLogSoftmaxOp = softmax(OpKind::kLogSoftmax, gradients::log_softmax);
constinit const OpDef kHardmaxOp = softmax(OpKind::kHardmax, gradients::zero);
constinit const OpDef kTopKOp =
    gradients::with({OpKind::kTopK, 1, 1, 2, 2, kTopKAttrs, infer_top_k, flops_of_inputs}, gradients::top_k);
constinit const OpDef kCumSumOp = gradients::with(
    {OpKind::kCumSum, 1, 1, 1, 1, kCumSumAttrs, infer_cum_sum, flops_of_inputs}, gradients::cum_sum);

}  // namespace limber
