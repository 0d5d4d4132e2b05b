#include "tests/backend/ref/run_op.h"

namespace limber::test {
namespace {

constexpr double kNoThreshold = -std::numeric_limits<double>::infinity();

Attrs nms(int64_t max_boxes, double iou, double score = kNoThreshold, int64_t center = 0) {
  return {{"max_boxes", max_boxes},
          {"iou_threshold", iou},
          {"score_threshold", score},
          {"center_point_box", center}};
}

// Three pairs of boxes one above the other; the second of a pair overlaps the first by 9/11 or wholly.
Tensor six_boxes() {
  return f32({1, 6, 4}, {0, 0,  1, 1,  0, 0.1f,  1, 1.1f,  0, -0.1f, 1, 0.9f,
                         0, 10, 1, 11, 0, 10.1f, 1, 11.1f, 0, 100,   1, 101});
}
Tensor six_scores() { return f32({1, 1, 6}, {0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f}); }

TEST(RefNonMaxSuppression, KeepsTheBestOfOverlappingBoxes) {
  const auto y = run_all(OpKind::kNonMaxSuppression, {six_boxes(), six_scores()}, nms(3, 0.5, 0.0), 2);
  expect(y[0], {DType::kI64, {3, 3}}, {0, 0, 3, 0, 0, 0, 0, 0, 5});
  expect(y[1], {DType::kI64, {}}, {3});
}

TEST(RefNonMaxSuppression, PadsWithZeros) {
  const auto y = run_all(OpKind::kNonMaxSuppression, {six_boxes(), six_scores()}, nms(3, 0.5, 0.4), 2);
  expect(y[0], {DType::kI64, {3, 3}}, {0, 0, 3, 0, 0, 0, 0, 0, 0});
  expect(y[1], {DType::kI64, {}}, {2});
  const auto none = run_all(OpKind::kNonMaxSuppression, {six_boxes(), six_scores()}, nms(0, 0.5), 2);
  expect(none[0], {DType::kI64, {0, 3}}, {});
  expect(none[1], {DType::kI64, {}}, {0});
}

TEST(RefNonMaxSuppression, BreaksTiesByIndexAndTakesAnyCorners) {
  // The same box, its corners flipped; then one elsewhere.
  const Tensor boxes = f32({1, 3, 4}, {1, 1, 0, 0, 0, 0, 1, 1, 5, 6, 6, 5}),
               scores = f32({1, 1, 3}, {1, 1, 1});
  const auto y = run_all(OpKind::kNonMaxSuppression, {boxes, scores}, nms(10, 0.5), 2);
  expect(y[0], {DType::kI64, {3, 3}}, {0, 0, 0, 0, 0, 2, 0, 0, 0});
  expect(y[1], {DType::kI64, {}}, {2});
}

TEST(RefNonMaxSuppression, ReadsCenters) {
  const Tensor boxes = f32({1, 2, 4}, {0.5, 0.5, 1, 1, 0.5, 0.6f, 1, 1}),
               scores = f32({1, 1, 2}, {0.1f, 0.2f});
  const auto y = run_all(OpKind::kNonMaxSuppression, {boxes, scores}, nms(2, 0.5, kNoThreshold, 1), 2);
  expect(y[1], {DType::kI64, {}}, {1});
  expect(y[0], {DType::kI64, {2, 3}}, {0, 0, 1, 0, 0, 0});
}

TEST(RefNonMaxSuppression, GoesThroughBatchesAndClasses) {
  const Tensor boxes = f32({2, 1, 4}, {0, 0, 1, 1, 0, 0, 1, 1}),
               scores = f32({2, 2, 1}, {0.9f, 0.1f, 0.8f, 0.7f});
  const auto y = run_all(OpKind::kNonMaxSuppression, {boxes, scores}, nms(5, 0.5, 0.5), 2);
  expect(y[0], {DType::kI64, {4, 3}}, {0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0});
  expect(y[1], {DType::kI64, {}}, {3});
}

TEST(RefNonMaxSuppression, IgnoresNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor boxes = f32({1, 2, 4}, {0, 0, 1, 1, nan, nan, nan, nan}), scores = f32({1, 1, 2}, {nan, 1});
  const auto y = run_all(OpKind::kNonMaxSuppression, {boxes, scores}, nms(5, 0.5), 2);
  expect(y[1], {DType::kI64, {}}, {1});
}

TEST(RefNonZero, ListsHits) {
  const auto y = run_all(OpKind::kNonZero, {f32({2, 2}, {1, 0, -3, 4})}, {}, 2);
  expect(y[0], {DType::kI64, {4, 2}}, {0, 0, 1, 0, 1, 1, 0, 0});
  expect(y[1], {DType::kI64, {}}, {3});
  const auto b = run_all(OpKind::kNonZero, {bools({3}, {false, true, false})}, {}, 2);
  expect(b[0], {DType::kI64, {3, 1}}, {1, 0, 0});
  expect(b[1], {DType::kI64, {}}, {1});
}

}  // namespace
}  // namespace limber::test
