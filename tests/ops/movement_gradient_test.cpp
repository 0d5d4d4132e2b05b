#include <gtest/gtest.h>

#include "tests/ops/gradient_case.h"

namespace limber::testing {
namespace {

void add_shape_cases(std::vector<GradientCase>& cases) {
  cases.push_back({OpKind::kReshape, {"f64[2,3]"}, {{"shape", dims("3,2")}}});
  cases.push_back({OpKind::kReshape, {"f64[2,3]"}, {{"shape", dims("6")}}});
  cases.push_back({OpKind::kReshape, {"f64[1]"}, {{"shape", dims("")}}});
  cases.push_back({OpKind::kTranspose, {"f64[2,3]"}, {{"perm", Ints{1, 0}}}});
  cases.push_back({OpKind::kTranspose, {"f64[2,3,4]"}, {{"perm", Ints{1, 2, 0}}}});
  cases.push_back({OpKind::kTranspose, {"f64[2,1,3,2]"}, {{"perm", Ints{3, 0, 2, 1}}}});
  cases.push_back({OpKind::kExpand, {"f64[3]"}, {{"shape", dims("2,3")}}});
  cases.push_back({OpKind::kExpand, {"f64[2,1,3]"}, {{"shape", dims("4,2,2,3")}}});
  cases.push_back({OpKind::kExpand, {"f64[]"}, {{"shape", dims("2,2")}}});
  cases.push_back({OpKind::kTile, {"f64[2,3]"}, {{"repeats", Ints{2, 1}}}});
  cases.push_back({OpKind::kTile, {"f64[2,3]"}, {{"repeats", Ints{3, 2}}}});
  cases.push_back({OpKind::kTile, {"f64[1,2,2]"}, {{"repeats", Ints{2, 1, 3}}}});
}

void add_part_cases(std::vector<GradientCase>& cases) {
  cases.push_back({OpKind::kConcat, {"f64[2,3]", "f64[2,1]", "f64[2,2]"}, {{"axis", num(1)}}});
  cases.push_back({OpKind::kConcat, {"f64[1,2]", "f64[3,2]"}, {{"axis", num(0)}}});
  cases.push_back({OpKind::kConcat, {"f64[4]"}, {{"axis", num(0)}}});
  const Attrs thirds{{"axis", num(1)}, {"sizes", Ints{1, 2, 3}}};
  cases.push_back({OpKind::kSplit, {"f64[2,6]"}, thirds, -2, 2, {}, 3});
  cases.push_back({OpKind::kSplit, {"f64[2,6]"}, thirds, -2, 2, {}, 3, 1});
  cases.push_back({OpKind::kSplit, {"f64[3,2]"}, {{"axis", num(0)}, {"sizes", Ints{3}}}});
  const auto slice = [&](const char* type, const Ints& axes, const Ints& starts, const Ints& ends,
                         const Ints& steps) {
    cases.push_back(
        {OpKind::kSlice, {type}, {{"axes", axes}, {"starts", starts}, {"ends", ends}, {"steps", steps}}});
  };
  slice("f64[5,4]", {0, 1}, {1, 0}, {4, 2}, {1, 1});
  slice("f64[5,4]", {0}, {-2}, {INT64_MAX}, {1});
  slice("f64[7,4]", {1, 0}, {1, 0}, {3, INT64_MAX}, {1, 3});
  slice("f64[6]", {0}, {-1}, {INT64_MIN}, {-2});
  slice("f64[6]", {0}, {0}, {6}, {1});
}

void add_pad_cases(std::vector<GradientCase>& cases) {
  const auto pad = [&](const char* type, const Ints& pads, const char* mode) {
    cases.push_back({OpKind::kPad, {type}, {{"pads", pads}, {"mode", text(mode)}, {"value", 0.5}}});
  };
  pad("f64[2,3]", {1, 0, 2, 1}, "constant");
  pad("f64[4,4]", {-1, 1, 2, -2}, "constant");
  for (const char* mode : {"reflect", "edge", "wrap"}) {
    pad("f64[4]", {3, 2}, mode);
    pad("f64[3,4]", {2, 0, 1, 3}, mode);
    pad("f64[4,3]", {-1, 1, 2, 0}, mode);
  }
}

void add_other_cases(std::vector<GradientCase>& cases) {
  for (int64_t upper : {0, 1}) {
    for (int64_t k : {-1, 0, 1})
      cases.push_back({OpKind::kTrilu, {"f64[2,3,4]"}, {{"k", k}, {"upper", upper}}});
  }
  const auto reverse = [&](const char* type, const Ints& lengths, int64_t batch, int64_t time) {
    cases.push_back({OpKind::kReverseSequence,
                     {type, "i64[" + std::to_string(lengths.size()) + "]"},
                     {{"batch_axis", batch}, {"time_axis", time}},
                     -2,
                     2,
                     {{1, lengths}}});
  };
  reverse("f64[3,2]", {3, 2}, 1, 0);
  reverse("f64[2,4]", {1, 3}, 0, 1);
  reverse("f64[2,3,2]", {2, 3}, 0, 1);
  for (const char* type : {"f64[1,8,2,3]", "f64[2,4,1,2]"}) {
    for (const char* mode : {"DCR", "CRD"})
      cases.push_back({OpKind::kDepthToSpace, {type}, {{"blocksize", num(2)}, {"mode", text(mode)}}});
  }
  cases.push_back({OpKind::kSpaceToDepth, {"f64[1,2,4,6]"}, {{"blocksize", num(2)}}});
  cases.push_back({OpKind::kSpaceToDepth, {"f64[2,1,3,3]"}, {{"blocksize", num(3)}}});
  cases.push_back({OpKind::kSpaceToDepth, {"f64[1,3,2,2]"}, {{"blocksize", num(1)}}});
  for (const char* type : {"f64[3,3]", "f64[2,4]", "f64[1,2]"})
    cases.push_back({OpKind::kEyeLike, {type}, {{"k", num(0)}, {"to", text("f64")}}});
}

}  // namespace

std::vector<GradientCase> movement_gradient_cases() {
  std::vector<GradientCase> cases;
  add_shape_cases(cases);
  add_part_cases(cases);
  add_pad_cases(cases);
  add_other_cases(cases);
  return cases;
}

std::vector<GradientCase> index_gradient_cases() {
  std::vector<GradientCase> cases;
  const auto add = [&](OpKind op, std::vector<std::string> inputs, const Ints& indices, const Attrs& attrs) {
    cases.push_back({op, std::move(inputs), attrs, -2, 2, {{op == OpKind::kOneHot ? 0 : 1, indices}}});
  };
  const Attrs first{{"axis", num(0)}}, second{{"axis", num(1)}};
  add(OpKind::kGather, {"f64[4,2]", "i64[3]"}, {1, -1, 1}, first);
  add(OpKind::kGather, {"f64[2,3,2]", "i64[2,2]"}, {0, 2, 2, -3}, second);
  add(OpKind::kGather, {"f64[5]", "i64[]"}, {2}, first);
  add(OpKind::kGatherElements, {"f64[3,2]", "i64[2,2]"}, {0, 1, 0, -1}, first);
  add(OpKind::kGatherElements, {"f64[2,3]", "i64[2,4]"}, {0, 0, 2, 1, 1, 1, 1, -1}, second);
  add(OpKind::kGatherElements, {"f64[4]", "i64[3]"}, {3, 3, 0}, first);
  add(OpKind::kGatherND, {"f64[3,2]", "i64[3,2]"}, {0, 1, 2, -1, 0, 1}, {});
  add(OpKind::kGatherND, {"f64[3,2,2]", "i64[2,1]"}, {2, 2}, {});
  add(OpKind::kGatherND, {"f64[2,3,2]", "i64[2,2,1]"}, {0, 2, 1, 1}, {{"batch_dims", num(1)}});
  add(OpKind::kGatherND, {"f64[2,2,3,2]", "i64[2,2,2]"}, {0, 1, 2, 0, 1, 1, 0, 0}, {{"batch_dims", num(2)}});
  for (const char* reduction : {"none", "add"}) {
    const Attrs how{{"reduction", text(reduction)}};
    add(OpKind::kScatterElements, {"f64[3,2]", "i64[2,2]", "f64[2,2]"}, {0, 1, 2, -1},
        Attrs(how).set("axis", num(0)));
    add(OpKind::kScatterElements, {"f64[2,4]", "i64[1,3]", "f64[1,3]"}, {0, 3, 1},
        Attrs(how).set("axis", num(1)));
    add(OpKind::kScatterND, {"f64[4,2]", "i64[2,1]", "f64[2,2]"}, {3, 0}, how);
    add(OpKind::kScatterND, {"f64[2,3]", "i64[3,2]", "f64[3]"}, {0, 0, 1, 2, 1, -2}, how);
  }
  add(OpKind::kScatterElements, {"f64[3]", "i64[4]", "f64[4]"}, {0, 0, 1, 0},
      Attrs{{"axis", num(0)}, {"reduction", text("add")}});
  const auto depth = [](int64_t axis, int64_t size) { return Attrs{{"axis", axis}, {"depth", size}}; };
  add(OpKind::kOneHot, {"i64[3]", "f64[2]"}, {0, 2, -1}, depth(1, 3));
  add(OpKind::kOneHot, {"i64[2,2]", "f64[2]"}, {0, 1, 5, 1}, depth(0, 3));
  add(OpKind::kOneHot, {"i64[]", "f64[2]"}, {1}, depth(0, 4));
  return cases;
}

TEST(MovementGradients, MatchDifferences) { expect_gradients(movement_gradient_cases()); }
TEST(IndexGradients, MatchDifferences) { expect_gradients(index_gradient_cases()); }

TEST(IndexGradients, OtherReductionsAreRefused) {
  for (const char* reduction : {"mul", "max", "min"}) {
    const std::string message = gradient_refusal({OpKind::kScatterND,
                                                  {"f64[4]", "i64[2,1]", "f64[2]"},
                                                  {{"reduction", text(reduction)}},
                                                  -2,
                                                  2,
                                                  {{1, {0, 1}}}});
    EXPECT_NE(message.find(reduction), std::string::npos) << message;
  }
}

}  // namespace limber::testing
