#include <gtest/gtest.h>

#include "tests/ops/gradient_case.h"

namespace limber::testing {
namespace {

// Two spatial axes; pads are begin, begin, end, end.
Attrs window(const Ints& strides, const Ints& pads, const Ints& dilations, int64_t groups = 1) {
  return {{"strides", strides}, {"pads", pads}, {"dilations", dilations}, {"groups", groups}};
}

Attrs with(Attrs attrs, std::string_view name, AttrValue value) {
  attrs.set(name, std::move(value));
  return attrs;
}

Attrs pool(const Ints& kernel, const Ints& strides, const Ints& pads) {
  return {{"kernel", kernel}, {"strides", strides}, {"pads", pads}};
}

const Ints kOnes = {1, 1}, kNoPads = {0, 0, 0, 0};

void add_conv_cases(std::vector<GradientCase>& cases) {
  constexpr OpKind kOp = OpKind::kConv;
  const Attrs plain = window(kOnes, kNoPads, kOnes);
  cases.push_back({kOp, {"f64[2,2,4,5]", "f64[3,2,3,2]", "f64[3]"}, plain});
  cases.push_back(
      {kOp, {"f64[1,2,6,5]", "f64[3,2,3,3]", "_", "f64[1,3,3,2]"}, window({2, 3}, {1, 1, 1, 1}, kOnes)});
  cases.push_back({kOp, {"f64[1,4,7,6]", "f64[6,2,2,3]", "f64[6]"}, window({1, 2}, {0, 2, 1, 1}, {3, 1}, 2)});
  cases.push_back({kOp, {"f64[2,3,5,5]", "f64[3,1,3,3]"}, window({2, 2}, {1, 0, 0, 1}, kOnes, 3)});
  cases.push_back({kOp,
                   {"f64[2,2,7]", "f64[2,2,3]", "f64[2]"},
                   {{"strides", Ints{2}}, {"pads", Ints{1, 1}}, {"dilations", Ints{2}}}});
  cases.push_back(
      {kOp,
       {"f64[1,1,3,4,3]", "f64[2,1,2,2,2]"},
       {{"strides", Ints{1, 2, 1}}, {"pads", Ints{0, 1, 0, 1, 0, 0}}, {"dilations", Ints{1, 1, 1}}}});
  cases.push_back(
      {kOp, {"f64[1,2,4,4]", "f64[2,2,3,3]", "f64[2]", "f64[1,2,2,2]"}, with(plain, "act", text("relu"))});
  cases.push_back({kOp,
                   {"f64[1,2,4,4]", "f64[2,2,3,3]", "f64[2]"},
                   with(with(with(plain, "act", text("clip")), "act_alpha", -1.5), "act_beta", 2.0)});
}

void add_transposed_cases(std::vector<GradientCase>& cases) {
  constexpr OpKind kOp = OpKind::kConvTranspose;
  const auto transposed = [](const Attrs& attrs, const Ints& padding) {
    return with(attrs, "output_padding", padding);
  };
  cases.push_back(
      {kOp, {"f64[2,2,3,3]", "f64[2,3,2,2]", "f64[3]"}, transposed(window(kOnes, kNoPads, kOnes), {0, 0})});
  cases.push_back(
      {kOp, {"f64[1,2,3,2]", "f64[2,3,3,3]"}, transposed(window({2, 3}, {1, 1, 1, 0}, kOnes), {1, 2})});
  cases.push_back({kOp,
                   {"f64[1,4,3,3]", "f64[4,1,2,2]", "f64[2]"},
                   transposed(window({2, 1}, kNoPads, {1, 2}, 2), {0, 0})});
  cases.push_back(
      {kOp, {"f64[1,2,3,2]", "f64[2,2,2,3]", "f64[2]"}, transposed(window({1, 1}, kNoPads, {2, 2}), {1, 1})});
}

void add_pool_cases(std::vector<GradientCase>& cases) {
  const auto max = [](Attrs attrs, const Ints& dilations) {
    return with(std::move(attrs), "dilations", dilations);
  };
  const Attrs ceil = with(pool({3, 2}, {2, 2}, {1, 0, 1, 0}), "ceil_mode", num(1));
  cases.push_back({OpKind::kMaxPool, {"f64[2,2,4,5]"}, max(pool({2, 2}, {2, 2}, kNoPads), kOnes)});
  cases.push_back({OpKind::kMaxPool, {"f64[1,2,5,5]"}, max(pool({3, 3}, {1, 2}, {1, 1, 1, 1}), kOnes)});
  cases.push_back({OpKind::kMaxPool, {"f64[1,1,6,7]"}, max(pool({2, 3}, {1, 1}, {1, 0, 0, 1}), {2, 2})});
  cases.push_back({OpKind::kMaxPool, {"f64[1,2,6,5]"}, max(ceil, kOnes), -2, 2, {}, 2});
  cases.push_back(
      {OpKind::kMaxPool,
       {"f64[2,1,7]"},
       {{"kernel", Ints{3}}, {"strides", Ints{2}}, {"pads", Ints{0, 1}}, {"dilations", Ints{1}}}});
  cases.push_back({OpKind::kAveragePool, {"f64[2,2,4,5]"}, pool({2, 2}, {2, 2}, kNoPads)});
  cases.push_back({OpKind::kAveragePool, {"f64[1,2,5,5]"}, pool({3, 3}, {1, 2}, {1, 1, 1, 1})});
  cases.push_back({OpKind::kAveragePool,
                   {"f64[1,2,5,5]"},
                   with(pool({3, 3}, {2, 2}, {1, 1, 1, 1}), "count_include_pad", num(1))});
  cases.push_back({OpKind::kAveragePool, {"f64[1,2,6,5]"}, ceil});
  cases.push_back({OpKind::kAveragePool, {"f64[1,2,6,5]"}, with(ceil, "count_include_pad", num(1))});
  for (int64_t p : {1, 2, 3}) {
    cases.push_back({OpKind::kLpPool, {"f64[2,1,4,5]"}, with(pool({2, 2}, {1, 2}, kNoPads), "p", p)});
    cases.push_back({OpKind::kLpPool, {"f64[1,2,5,5]"}, with(pool({3, 2}, {2, 1}, {1, 1, 1, 0}), "p", p)});
    cases.push_back({OpKind::kGlobalLpPool, {"f64[2,2,3,2]"}, {{"p", p}}});
  }
  for (OpKind op : {OpKind::kGlobalAveragePool, OpKind::kGlobalMaxPool}) {
    cases.push_back({op, {"f64[2,3,4,5]"}});
    cases.push_back({op, {"f64[1,2,7]"}});
    cases.push_back({op, {"f64[2,1,2,3,2]"}});
  }
}

void add_resize_cases(std::vector<GradientCase>& cases) {
  const auto resize = [](const char* shape, const Floats& scales, const char* mode, const char* coordinates) {
    return Attrs{
        {"shape", dims(shape)}, {"scales", scales}, {"mode", text(mode)}, {"coordinates", text(coordinates)}};
  };
  const Floats twice = {1, 1, 2, 2}, half = {1, 1, 0.5, 0.5}, mixed = {1, 1, 1.75, 0.6};
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    cases.push_back({OpKind::kResize, {"f64[1,2,3,4]"}, resize("1,2,6,8", twice, mode, "half_pixel")});
    cases.push_back({OpKind::kResize, {"f64[1,1,4,6]"}, resize("1,1,2,3", half, mode, "asymmetric")});
    cases.push_back({OpKind::kResize, {"f64[2,1,4,5]"}, resize("2,1,7,3", mixed, mode, "align_corners")});
  }
  cases.push_back({OpKind::kResize,
                   {"f64[1,1,6,6]"},
                   with(resize("1,1,3,3", half, "linear", "half_pixel"), "antialias", num(1))});
  Attrs crop = resize("1,1,4,4", {1, 1, 1, 1}, "linear", "tf_crop_and_resize");
  crop.set("roi", Floats{0, 0, -0.3, 0.2, 1, 1, 0.8, 1.2}).set("extrapolation", 10.0);
  cases.push_back({OpKind::kResize, {"f64[1,1,4,4]"}, crop});
}

}  // namespace

std::vector<GradientCase> layer_gradient_cases() {
  std::vector<GradientCase> cases;
  add_conv_cases(cases);
  add_transposed_cases(cases);
  add_pool_cases(cases);
  add_resize_cases(cases);
  return cases;
}

TEST(LayerGradients, MatchDifferences) { expect_gradients(layer_gradient_cases()); }

TEST(LayerGradients, FusedActivationsThatHideTheirInputAreRefused) {
  const std::string message = gradient_refusal({OpKind::kConv,
                                                {"f64[1,1,2,2]", "f64[1,1,1,1]"},
                                                with(window(kOnes, kNoPads, kOnes), "act", text("gelu"))});
  EXPECT_NE(message.find("Conv 'node'"), std::string::npos) << message;
  EXPECT_NE(message.find("'gelu'"), std::string::npos) << message;
}

}  // namespace limber::testing
