#include <algorithm>
#include <cmath>

#include "ops/rules.h"

namespace limber {
namespace {

using namespace rules;

// min(boxes, limit), when it does not depend on a symbol.
std::optional<Dim> selected_per_class(const Dim& boxes, int64_t limit) {
  if (boxes.is_constant()) return Dim(std::min(boxes.value(), limit));
  if (limit >= kMaxElements) return boxes;
  if (limit <= boxes.scale() + boxes.offset()) return Dim(limit);  // symbols are at least 1
  return std::nullopt;
}

Status check_boxes(const TensorType& boxes, const TensorType& scores) {
  LIMBER_TRY(need_float(boxes, "boxes"));
  LIMBER_TRY(need_rank(boxes, 3, 3, "boxes"));
  LIMBER_TRY(need_rank(scores, 3, 3, "scores"));
  LIMBER_TRY(need_shape(boxes, Shape{scores.shape[0], scores.shape[2], 4}, "boxes"));
  return {};
}

Result<Types> infer_non_max_suppression(const InferArgs& args) {
  const TensorType &boxes = args.input(0), &scores = args.input(1);
  LIMBER_TRY(need_same_dtype(args));
  LIMBER_TRY(check_boxes(boxes, scores));
  LIMBER_TRY(flag_attr(args, "center_point_box", false).status());
  LIMBER_TRY(check_finite(args, "iou_threshold"));
  if (std::isnan(args.attrs.f("score_threshold")))
    return invalid("attribute 'score_threshold' is not a number");
  LIMBER_ASSIGN(const int64_t limit, int_attr(args, "max_boxes", std::nullopt, 0, INT64_MAX));
  auto rows = selected_per_class(boxes.shape[1], limit);
  for (int i = 0; i < 2 && rows; ++i) rows = mul(*rows, scores.shape[i]);
  LIMBER_ASSIGN(const Dim total, expressible(rows, "the largest number of selected boxes"));
  return Types{{DType::kI64, {total, 3}}, {DType::kI64, {}}};
}

Result<Types> infer_non_zero(const InferArgs& args) {
  const TensorType& x = args.input(0);
  std::optional<Dim> rows = Dim(1);
  for (int i = 0; i < x.rank() && rows; ++i) rows = mul(*rows, x.shape[i]);
  LIMBER_ASSIGN(const Dim total, expressible(rows, "the number of elements"));
  return Types{{DType::kI64, {total, x.rank()}}, {DType::kI64, {}}};
}

double flops_nms(const Graph& graph, const Node& node) {
  return elements(graph, node.inputs[0]) + elements(graph, node.inputs[1]);
}

constexpr AttrSpec kNmsAttrs[] = {
    optional("center_point_box", AttrKind::kInt), required("max_boxes", AttrKind::kInt),
    required("iou_threshold", AttrKind::kFloat), required("score_threshold", AttrKind::kFloat)};

}  // namespace

constinit const OpDef kNonMaxSuppressionOp = {OpKind::kNonMaxSuppression, 2,        2, 2, 2, kNmsAttrs,
                                              infer_non_max_suppression,  flops_nms};
constinit const OpDef kNonZeroOp = {OpKind::kNonZero, 1, 1, 2, 2, {}, infer_non_zero, flops_of_inputs};

}  // namespace limber
