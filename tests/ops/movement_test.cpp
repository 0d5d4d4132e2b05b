// Moving data, resizing, detection.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/slice.h"
#include "tests/ops/type_case.h"

namespace limber::testing {
namespace {

constexpr OpKind kReshape = OpKind::kReshape, kTranspose = OpKind::kTranspose, kExpand = OpKind::kExpand,
                 kTile = OpKind::kTile, kConcat = OpKind::kConcat, kSplit = OpKind::kSplit,
                 kSlice = OpKind::kSlice, kPad = OpKind::kPad;

Attrs shape(std::string_view text) { return {{"shape", dims(text)}}; }
Attrs axis(int64_t value) { return {{"axis", value}}; }
Attrs split(int64_t axis, Ints sizes) { return {{"axis", axis}, {"sizes", sizes}}; }
Attrs slice(Ints axes, Ints starts, Ints ends, Ints steps) {
  return {{"axes", axes}, {"starts", starts}, {"ends", ends}, {"steps", steps}};
}
Attrs pad(Ints pads, std::string_view mode = "constant") { return {{"pads", pads}, {"mode", text(mode)}}; }
Attrs perm(Ints values) { return {{"perm", values}}; }
Attrs repeats(Ints values) { return {{"repeats", values}}; }

TEST(MovementTypes, Reshape) {
  expect_types({
      {kReshape, {"f32[N,512,1,1]"}, shape("N,512"), {"f32[N,512]"}},
      {kReshape, {"f32[N,197,192]"}, shape("N,197,3,64"), {"f32[N,197,3,64]"}},
      {kReshape, {"f32[N,6]"}, shape("6N"), {"f32[6N]"}},
      {kReshape, {"f32[2N,3]"}, shape("N,6"), {"f32[N,6]"}},
      {kReshape, {"f32[2N+2,3]"}, shape("N+1,6"), {"f32[N+1,6]"}},
      {kReshape, {"f32[N,H,4]"}, shape("H,4N"), {"f32[H,4N]"}},
      {kReshape, {"f32[1]"}, shape(""), {"f32[]"}},
      {kReshape, {"f32[0,3]"}, shape("7,0"), {"f32[7,0]"}},
      {kReshape, {"f32[N,3]"}, shape("M,3"), {"f32[M,3]"}},
      {kReshape, {"f32[N,3]"}, shape("6"), {"f32[6]"}},
  });
  expect_failures({
      {kReshape, {"f32[N,3]"}, shape("N,4"), "the numbers of elements differ"},
      {kReshape, {"f32[2,3]"}, shape("7"), "the numbers of elements differ"},
      {kReshape, {"f32[N,3]"}, shape("7"), "the numbers of elements differ"},
      {kReshape, {"f32[2,3]"}, shape("-1"), "negative dimension"},
      {kReshape, {"f32[2,3]"}, shape("9223372036854775807,9223372036854775807"), "more than 2^40 elements"},
      {kReshape, {"f32[1]"}, shape("1,1,1,1,1,1,1,1,1"), "expected at most 8"},
      {kReshape, {"f32[N,0]"}, shape("5"), "the numbers of elements differ"},
  });
}

TEST(MovementTypes, PermuteAndRepeat) {
  expect_types({
      {kTranspose, {"f32[N,3,8,9]"}, perm({0, 2, 3, 1}), {"f32[N,8,9,3]"}},
      {kTranspose, {"f32[]"}, perm({}), {"f32[]"}},
      {kExpand, {"f32[1,1,192]"}, shape("N,1,192"), {"f32[N,1,192]"}},
      {kExpand, {"f32[]"}, shape("2,3"), {"f32[2,3]"}},
      {kTile, {"f32[N,3]"}, repeats({2, 1}), {"f32[2N,3]"}},
      {kTile, {"f32[2,3]"}, repeats({0, 1}), {"f32[0,3]"}},
      {OpKind::kTrilu, {"i64[N,4,4]"}, {{"k", num(-1)}, {"upper", num(0)}}, {"i64[N,4,4]"}},
      {OpKind::kReverseSequence,
       {"f32[4,N]", "i64[N]"},
       {{"batch_axis", num(1)}, {"time_axis", num(0)}},
       {"f32[4,N]"}},
  });
  expect_failures({
      {kTranspose, {"f32[2,3]"}, perm({0, 0}), "expected a permutation"},
      {kTranspose, {"f32[2,3]"}, perm({0, 2}), "'perm' holds 2"},
      {kTranspose, {"f32[2,3]"}, perm({0, -1}), "'perm' holds -1"},
      {kTranspose, {"f32[2,3]"}, perm({0}), "'perm' has 1 values, expected 2"},
      {kExpand, {"f32[2]"}, shape("3"), "does not broadcast to [3]"},
      {kExpand, {"f32[2,3]"}, shape("3"), "does not broadcast to [3]"},
      {kExpand, {"f32[1]"}, shape("1099511627777"), "more than 2^40"},
      {kTile, {"f32[2,3]"}, repeats({1, -1}), "'repeats' holds -1"},
      {kTile, {"f32[1048576,3]"}, repeats({1099511627776, 1}), "more than 2^40"},
      {kTile, {"f32[1099511627776]"}, repeats({1099511627776}), "overflows"},
      {OpKind::kTrilu, {"f32[4]"}, {{"k", num(0)}, {"upper", num(0)}}, "expected rank 2"},
      {OpKind::kReverseSequence,
       {"f32[4,5]", "i64[5]"},
       {{"batch_axis", num(1)}, {"time_axis", num(1)}},
       "are both 1"},
      {OpKind::kReverseSequence,
       {"f32[4,5]", "i32[5]"},
       {{"batch_axis", num(1)}, {"time_axis", num(0)}},
       "lengths has type i32[5], expected i64"},
      {OpKind::kReverseSequence,
       {"f32[4,5]", "i64[4]"},
       {{"batch_axis", num(1)}, {"time_axis", num(0)}},
       "lengths has type i64[4]"},
  });
}

TEST(MovementTypes, ConcatAndSplit) {
  expect_types({
      {kConcat, {"f32[N,1,192]", "f32[N,196,192]"}, axis(1), {"f32[N,197,192]"}},
      {kConcat, {"f32[N,3]", "f32[N,3]", "f32[4,3]"}, axis(0), {"f32[2N+4,3]"}},
      {kConcat, {"f32[N,3]", "f32[4,3]"}, axis(1), {"f32[4,6]"}},
      {kConcat, {"bool[2]"}, axis(0), {"bool[2]"}},
      {kSplit, {"f32[N,6]"}, split(1, {2, 4}), {"f32[N,2]", "f32[N,4]"}},
      {kSplit, {"f32[N,6]"}, split(0, {1, 2}), {"f32[1,6]", "f32[2,6]"}},
  });
  expect_failures({
      {kConcat, {"f32[N,3]", "f32[M,3]"}, axis(0), "cannot be expressed"},
      {kConcat, {"f32[2,3]", "f32[2,4]"}, axis(0), "on every axis but 0"},
      {kConcat, {"f32[2,3]", "f32[2]"}, axis(0), "input 1 has type f32[2], expected rank 2"},
      {kConcat, {"f32[2]", "i32[2]"}, axis(0), "expected the dtype of input 0"},
      {kConcat, {"f32[2]", "f32[2]"}, axis(1), "expected an axis in [0, 1)"},
      {kConcat, {"f32[]", "f32[]"}, axis(0), "expected an axis in [0, 0)"},
      {kConcat, {"f32[1099511627776]", "f32[1]"}, axis(0), "more than 2^40"},
      {kSplit, {"f32[6]"}, split(0, {2, 3}), "sums to 5, expected 6", 2},
      {kSplit, {"f32[6]"}, split(0, {2, 4}), "'sizes' has 2 values, expected 3", 3},
      {kSplit, {"f32[6]"}, split(0, {-2, 8}), "'sizes' holds -2", 2},
  });
}

TEST(MovementTypes, Slice) {
  expect_types({
      {kSlice, {"f32[N,10]"}, slice({1}, {2}, {INT64_MAX}, {3}), {"f32[N,3]"}},
      {kSlice, {"f32[N,10]"}, slice({1}, {-3}, {INT64_MAX}, {1}), {"f32[N,3]"}},
      {kSlice, {"f32[N,10]"}, slice({1}, {-1}, {INT64_MIN}, {-1}), {"f32[N,10]"}},
      {kSlice, {"f32[N,10]"}, slice({1}, {5}, {2}, {1}), {"f32[N,0]"}},
      {kSlice, {"f32[N,10]"}, slice({1}, {INT64_MAX}, {INT64_MIN}, {INT64_MIN}), {"f32[N,1]"}},
      {kSlice, {"f32[N,10]"}, slice({0}, {0}, {INT64_MAX}, {1}), {"f32[N,10]"}},
      {kSlice, {"f32[N,10]"}, slice({0}, {0}, {1}, {1}), {"f32[1,10]"}},
      {kSlice, {"f32[N,10]"}, slice({0}, {1}, {INT64_MAX}, {1}), {"f32[N-1,10]"}},
      {kSlice, {"f32[N+1,10]"}, slice({0}, {-1}, {INT64_MAX}, {1}), {"f32[1,10]"}},
      {kSlice, {"f32[2N,10]"}, slice({0}, {1}, {INT64_MAX}, {2}), {"f32[N,10]"}},
      {kSlice, {"f32[N,10]"}, slice({0}, {-1}, {INT64_MIN}, {-1}), {"f32[N,10]"}},
      {kSlice, {"f32[5,10]"}, slice({1, 0}, {0, 1}, {5, 3}, {1, 1}), {"f32[2,5]"}},
      {kSlice, {"f32[]"}, slice({}, {}, {}, {}), {"f32[]"}},
  });
  expect_failures({
      {kSlice, {"f32[5]"}, slice({0}, {0}, {1}, {0}), "'steps' holds 0"},
      {kSlice, {"f32[5]"}, slice({1}, {0}, {1}, {1}), "'axes' holds 1"},
      {kSlice, {"f32[5,5]"}, slice({1, 1}, {0, 0}, {1, 1}, {1, 1}), "'axes' holds 1 twice"},
      {kSlice, {"f32[5]"}, slice({0}, {0, 0}, {1}, {1}), "'starts' has 2 values, expected 1"},
      {kSlice, {"f32[5]"}, slice({0, 0}, {0, 0}, {1, 1}, {1, 1}), "'axes' has 2 values"},
      {kSlice, {"f32[N]"}, slice({0}, {0}, {5}, {1}), "cannot be expressed"},
      {kSlice, {"f32[N]"}, slice({0}, {0}, {INT64_MAX}, {2}), "cannot be expressed"},
  });
}

TEST(MovementTypes, SliceRangesFollowPython) {
  struct Case {
    int64_t size, start, end, step, first, count;
  };
  for (const Case& c : std::vector<Case>{
           {10, 0, 10, 1, 0, 10},
           {10, -4, -1, 2, 6, 2},
           {10, 100, -100, -3, 9, 4},
           {10, 3, INT64_MIN, -1, 3, 4},
           {10, INT64_MIN, INT64_MAX, INT64_MAX, 0, 1},
           {0, 0, 5, 1, 0, 0},
           {0, -1, INT64_MIN, -1, 0, 0},
           {5, 4, 4, -1, 0, 0},
       }) {
    const SliceRange range = slice_range(c.size, c.start, c.end, c.step);
    EXPECT_EQ(range.count, c.count) << c.size << ' ' << c.start << ' ' << c.end << ' ' << c.step;
    EXPECT_EQ(range.start, c.first) << c.size << ' ' << c.start << ' ' << c.end << ' ' << c.step;
  }
}

TEST(MovementTypes, Pad) {
  expect_types({
      {kPad, {"f32[N,3,8,8]"}, pad({0, 0, 1, 2, 0, 0, 3, 4}), {"f32[N,3,12,14]"}},
      {kPad, {"f32[N,3]"}, pad({1, 0, 0, 0}), {"f32[N+1,3]"}},
      {kPad, {"f32[5]"}, pad({-2, -1}), {"f32[2]"}},
      {kPad, {"f32[5]"}, pad({4, 4}, "reflect"), {"f32[13]"}},
      {kPad, {"f32[0]"}, pad({2, 0}), {"f32[2]"}},
      {kPad, {"f32[2]"}, pad({7, 7}, "wrap"), {"f32[16]"}},
  });
  expect_failures({
      {kPad, {"f32[5]"}, pad({5, 0}, "reflect"), "reflect more than axis 0"},
      {kPad, {"f32[5]"}, pad({-6, 6}), "crop more than axis 0"},
      {kPad, {"f32[5]"}, pad({-3, -3}), "crop more than axis 0"},
      {kPad, {"f32[5]"}, pad({1}), "'pads' has 1 values, expected 2"},
      {kPad, {"f32[5]"}, pad({INT64_MAX, INT64_MAX}), "'pads' holds 9223372036854775807"},
      {kPad, {"f32[5]"}, pad({INT64_MIN, 0}), "'pads' holds -9223372036854775808"},
      {kPad, {"f32[5]"}, pad({1, 1}, "mirror"), "'mode' is 'mirror'"},
      {kPad, {"f32[0]"}, pad({1, 1}, "edge"), "no element to pad from"},
  });
}

Attrs resize(std::string_view to, Floats scales, std::string_view mode, std::string_view coordinates) {
  return shape(to).set("scales", scales).set("mode", text(mode)).set("coordinates", text(coordinates));
}

TEST(MovementTypes, Resize) {
  constexpr OpKind kResize = OpKind::kResize;
  expect_types({
      {kResize,
       {"f32[N,3,8,8]"},
       resize("N,3,16,16", {1, 1, 2, 2}, "linear", "half_pixel"),
       {"f32[N,3,16,16]"}},
      {kResize,
       {"u8[1,3,H,8]"},
       resize("1,3,2H,16", {1, 1, 2, 2}, "nearest", "asymmetric"),
       {"u8[1,3,2H,16]"}},
      {kResize,
       {"f32[8]"},
       resize("4", {0.5}, "cubic", "tf_crop_and_resize").set("roi", Floats{0.1, 0.9}),
       {"f32[4]"}},
      {OpKind::kDepthToSpace,
       {"f32[N,12,4,5]"},
       {{"blocksize", num(2)}, {"mode", text("CRD")}},
       {"f32[N,3,8,10]"}},
      {OpKind::kSpaceToDepth, {"f32[N,3,2H,10]"}, {{"blocksize", num(2)}}, {"f32[N,12,H,5]"}},
  });
  expect_failures({
      {kResize, {"f32[8]"}, resize("4", {0.5}, "area", "half_pixel"), "'mode' is 'area'"},
      {kResize, {"f32[8]"}, resize("4", {0.5}, "linear", "corner"), "'coordinates' is 'corner'"},
      {kResize,
       {"f32[8]"},
       resize("4", {0.5, 1}, "linear", "half_pixel"),
       "'scales' has 2 values, expected 1"},
      {kResize, {"f32[8]"}, resize("4", {-0.5}, "linear", "half_pixel"), "expected a positive number"},
      {kResize, {"f32[8]"}, resize("4,1", {0.5}, "linear", "half_pixel"), "expected rank 1"},
      {kResize,
       {"f32[8]"},
       resize("4", {0.5}, "linear", "tf_crop_and_resize"),
       "'roi' has 0 values, expected 2"},
      {kResize, {"f32[0]"}, resize("4", {0.5}, "linear", "half_pixel"), "cannot be resized"},
      {kResize, {"f32[8]"}, resize("-4", {0.5}, "linear", "half_pixel"), "negative dimension"},
      {OpKind::kDepthToSpace, {"f32[1,10,4,4]"}, {{"blocksize", num(2)}}, "divide by 2^2"},
      {OpKind::kDepthToSpace, {"f32[1,4,4,4]"}, {{"blocksize", num(0)}}, "'blocksize' is 0"},
      {OpKind::kSpaceToDepth, {"f32[1,4,5,4]"}, {{"blocksize", num(2)}}, "divide by 2"},
      {OpKind::kSpaceToDepth, {"f32[1,4,H,4]"}, {{"blocksize", num(2)}}, "cannot be expressed"},
      {OpKind::kSpaceToDepth, {"f32[1,4,4]"}, {{"blocksize", num(2)}}, "expected rank 4"},
  });
}

TEST(MovementTypes, Indices) {
  const Attrs axis1 = axis(1);
  expect_types({
      {OpKind::kGather, {"f32[N,197,192]", "i64[]"}, axis1, {"f32[N,192]"}},
      {OpKind::kGather, {"f32[N,5]", "i32[2,3]"}, axis1, {"f32[N,2,3]"}},
      {OpKind::kGatherElements, {"f32[4,5]", "i64[3,9]"}, axis1, {"f32[3,9]"}},
      {OpKind::kGatherND, {"f32[2,3,4]", "i64[5,2]"}, {}, {"f32[5,4]"}},
      {OpKind::kGatherND, {"f32[N,3,4]", "i64[N,1]"}, {{"batch_dims", num(1)}}, {"f32[N,4]"}},
      {OpKind::kScatterElements, {"f32[4,5]", "i64[4,2]", "f32[4,2]"}, axis1, {"f32[4,5]"}},
      {OpKind::kScatterND,
       {"f32[4,5,6]", "i64[2,1]", "f32[2,5,6]"},
       {{"reduction", text("add")}},
       {"f32[4,5,6]"}},
      {OpKind::kOneHot, {"i64[N]", "f32[2]"}, {{"axis", num(1)}, {"depth", num(10)}}, {"f32[N,10]"}},
      {OpKind::kOneHot, {"f32[N]", "i32[2]"}, {{"axis", num(0)}, {"depth", num(10)}}, {"i32[10,N]"}},
      {OpKind::kEyeLike, {"f32[N,4]"}, {{"k", num(1)}, {"to", text("i64")}}, {"i64[N,4]"}},
      {OpKind::kShapeOf, {"bool[N,4,5]"}, {}, {"i64[3]"}},
      {OpKind::kShapeOf, {"f32[]"}, {}, {"i64[0]"}},
  });
  expect_failures({
      {OpKind::kGather, {"f32[4,5]", "f32[2]"}, axis1, "expected i32 or i64"},
      {OpKind::kGather, {"f32[]", "i64[2]"}, axis(0), "expected an axis in [0, 0)"},
      {OpKind::kGather, {"f32[1,1,1,1,1]", "i64[1,1,1,1,1]"}, axis1, "expected at most 8"},
      {OpKind::kGatherElements, {"f32[4,5]", "i64[3]"}, axis1, "expected rank 2"},
      {OpKind::kGatherElements, {"f32[4,5]", "i64[5,5]"}, axis1, "expected at most 4 on axis 0"},
      {OpKind::kGatherND, {"f32[2,3]", "i64[5,3]"}, {}, "expected a last axis of 1 to 2"},
      {OpKind::kGatherND, {"f32[2,3]", "i64[5,K]"}, {}, "expected a last axis of 1 to 2"},
      {OpKind::kGatherND, {"f32[2,3]", "i64[]"}, {}, "expected rank 1"},
      {OpKind::kGatherND, {"f32[2,3]", "i64[5,1]"}, {{"batch_dims", num(1)}}, "on batch axis 0"},
      {OpKind::kGatherND, {"f32[2,3]", "i64[2,1]"}, {{"batch_dims", num(2)}}, "expected rank 3"},
      {OpKind::kGatherND, {"f32[2,3]", "i64[2,1]"}, {{"batch_dims", num(-1)}}, "'batch_dims' is -1"},
      {OpKind::kScatterElements, {"f32[4,5]", "i64[4,2]", "f32[4,3]"}, axis1, "updates has type f32[4,3]"},
      {OpKind::kScatterElements, {"f32[4,5]", "i64[4,2]", "f64[4,2]"}, axis1, "expected the dtype of x"},
      {OpKind::kScatterND, {"f32[4,5]", "i64[2,1]", "f32[2,4]"}, {}, "updates has type f32[2,4]"},
      {OpKind::kScatterND,
       {"f32[4]", "i64[2,1]", "f32[2]"},
       {{"reduction", text("xor")}},
       "'reduction' is 'xor'"},
      {OpKind::kScatterND,
       {"bool[4]", "i64[2,1]", "bool[2]"},
       {{"reduction", text("add")}},
       "expected a numeric type"},
      {OpKind::kOneHot,
       {"i64[N]", "f32[3]"},
       {{"axis", num(1)}, {"depth", num(10)}},
       "values has type f32[3]"},
      {OpKind::kOneHot,
       {"i64[4]", "f32[2]"},
       {{"axis", num(2)}, {"depth", num(10)}},
       "expected an axis in [0, 2)"},
      {OpKind::kOneHot,
       {"i64[4]", "f32[2]"},
       {{"axis", num(0)}, {"depth", INT64_MAX}},
       "'depth' is 9223372036854775807"},
      {OpKind::kEyeLike, {"f32[4]"}, {{"k", num(1)}, {"to", text("i64")}}, "expected rank 2"},
  });
}

Attrs nms(int64_t max_boxes) {
  return {{"max_boxes", max_boxes}, {"iou_threshold", 0.5}, {"score_threshold", -HUGE_VAL}};
}

TEST(MovementTypes, Detection) {
  constexpr OpKind kNms = OpKind::kNonMaxSuppression;
  expect_types({
      {kNms, {"f32[2,100,4]", "f32[2,80,100]"}, nms(10), {"i64[1600,3]", "i64[]"}},
      {kNms, {"f32[2,100,4]", "f32[2,80,100]"}, nms(INT64_MAX), {"i64[16000,3]", "i64[]"}},
      {kNms, {"f32[N,100,4]", "f32[N,80,100]"}, nms(10), {"i64[800N,3]", "i64[]"}},
      {OpKind::kNonZero, {"bool[N,4]"}, {}, {"i64[4N,2]", "i64[]"}},
      {OpKind::kNonZero, {"f32[]"}, {}, {"i64[1,0]", "i64[]"}},
  });
  expect_failures({
      {kNms, {"f32[2,100,5]", "f32[2,80,100]"}, nms(10), "boxes has type f32[2,100,5]", 2},
      {kNms, {"f32[2,100,4]", "f32[3,80,100]"}, nms(10), "boxes has type", 2},
      {kNms, {"f32[2,100,4]", "f32[2,80,100]"}, nms(-1), "'max_boxes' is -1", 2},
      {kNms, {"f32[1,K,4]", "f32[1,1,K]"}, nms(10), "cannot be expressed", 2},
      {kNms, {"f32[1000000,1000000,4]", "f32[1000000,1,1000000]"}, nms(INT64_MAX), "more than 2^40", 2},
      {OpKind::kNonZero, {"f32[N,M]"}, {}, "cannot be expressed", 2},
  });
}

}  // namespace
}  // namespace limber::testing
