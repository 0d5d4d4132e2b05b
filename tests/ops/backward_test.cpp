#include <gtest/gtest.h>

#include "tests/ops/type_case.h"

namespace limber::testing {
namespace {

const Attrs kConv{
    {"strides", Ints{2, 1}}, {"pads", Ints{1, 1, 1, 1}}, {"dilations", Ints{1, 1}}, {"groups", num(2)}};
const Attrs kPool{{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"pads", Ints{0, 0, 0, 0}}};

Attrs changed(Attrs attrs, std::string_view name, AttrValue value) {
  attrs.set(name, std::move(value));
  return attrs;
}

TEST(BackwardTypes, AreThoseOfTheForwardInputs) {
  const std::vector<std::string> norm = {"f32[2,3,4]", "f32[2,3,4]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"};
  expect_types({
      {OpKind::kConvBackwardData,
       {"f32[N,6,3,5]", "f32[6,2,3,3]"},
       changed(kConv, "shape", dims("N,4,5,5")),
       {"f32[N,4,5,5]"}},
      {OpKind::kConvBackwardWeights,
       {"f32[N,4,5,5]", "f32[N,6,3,5]"},
       changed(kConv, "kernel", Ints{3, 3}),
       {"f32[6,2,3,3]", "f32[6]"}},
      {OpKind::kBatchNormBackward,
       norm,
       {{"frozen", num(1)}, {"act", text("relu")}},
       {"f32[2,3,4]", "f32[3]", "f32[3]"}},
      {OpKind::kBatchNormApply,
       {"f32[2,3,4]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"},
       {{"act", text("relu")}},
       {"f32[2,3,4]"}},
      {OpKind::kLayerNormBackward,
       {"f32[2,3,4]", "f32[2,3,4]", "f32[2,1,1]", "f32[2,1,1]", "f32[4]"},
       {{"axis", num(1)}},
       {"f32[2,3,4]", "f32[3,4]", "f32[3,4]"}},
      {OpKind::kSoftmaxBackward, {"f32[2,3]", "f32[2,3]"}, {{"axis", num(1)}}, {"f32[2,3]"}},
      {OpKind::kActivationBackward,
       {"f32[N]", "f32[N]"},
       {{"act", text("relu")}, {"from_output", num(1)}},
       {"f32[N]"}},
      {OpKind::kMaxPoolBackward,
       {"f32[1,2,4,4]", "f32[1,2,2,2]"},
       changed(kPool, "dilations", Ints{1, 1}),
       {"f32[1,2,4,4]"}},
      {OpKind::kAveragePoolBackward,
       {"f32[1,2,2,2]"},
       changed(kPool, "shape", dims("1,2,5,4")),
       {"f32[1,2,5,4]"}},
      {OpKind::kGatherBackward,
       {"f32[2,5,6,4]", "i64[5,6]"},
       {{"shape", dims("2,9,4")}, {"axis", num(1)}},
       {"f32[2,9,4]"}},
      {OpKind::kResizeBackward,
       {"f32[1,1,8,8]"},
       {{"shape", dims("1,1,4,4")},
        {"scales", Floats{1, 1, 2, 2}},
        {"mode", text("linear")},
        {"coordinates", text("half_pixel")}},
       {"f32[1,1,4,4]"}},
      {OpKind::kProdBackward, {"f32[2,3,4]", "f32[2,1,4]"}, {{"axes", Ints{1}}}, {"f32[2,3,4]"}},
      {OpKind::kSgdUpdate, {"f32[4]", "f32[4]", "f32[]"}, {}, {"f32[4]"}},
      {OpKind::kSgdUpdate,
       {"f32[4]", "f32[4]", "f32[]", "f32[4]", "f32[]"},
       {{"momentum", 0.9}},
       {"f32[4]", "f32[4]"}},
      {OpKind::kAdamUpdate,
       {"f16[4]", "f16[4]", "f32[]", "f16[4]", "f16[4]", "f32[]"},
       {{"beta1", 0.9}, {"beta2", 0.99}, {"epsilon", 1e-8}},
       {"f16[4]", "f16[4]", "f16[4]", "f32[]"}},
      {OpKind::kSgdUpdate,
       {"f16[4]", "f16[4]", "f32[]", "f16[4]"},
       {{"momentum", 0.9}},
       {"f16[4]", "f16[4]", "f32[3]"}},
      {OpKind::kAdamUpdate,
       {"f16[4]", "f16[4]", "f32[]", "f16[4]", "f16[4]", "f32[]"},
       {{"beta1", 0.9}, {"beta2", 0.99}, {"epsilon", 1e-8}},
       {"f16[4]", "f16[4]", "f16[4]", "f32[]", "f32[3]"}},
  });
}

TEST(BackwardTypes, WhatDoesNotBelongTogetherIsRefused) {
  const Attrs adam{{"beta1", 0.9}, {"beta2", 0.99}, {"epsilon", 1e-8}};
  expect_failures({
      {OpKind::kConvBackwardData,
       {"f32[1,6,4,5]", "f32[6,2,3,3]"},
       changed(kConv, "shape", dims("1,4,5,5")),
       "dy has type"},
      {OpKind::kConvBackwardData,
       {"f32[2,6,3,5]", "f32[6,2,3,3]"},
       changed(kConv, "shape", dims("1,4,5,5")),
       "dy has type"},
      {OpKind::kConvBackwardData,
       {"f32[1,6,3,5]", "f32[6,3,3,3]"},
       changed(kConv, "shape", dims("1,4,5,5")),
       "do not belong"},
      {OpKind::kConvBackwardWeights,
       {"f32[1,4,5,5]", "f32[2,6,3,5]"},
       changed(kConv, "kernel", Ints{3, 3}),
       "dy has type"},
      {OpKind::kConvBackwardWeights,
       {"f32[1,3,5,5]", "f32[1,6,3,5]"},
       changed(kConv, "kernel", Ints{3, 3}),
       "2 groups"},
      {OpKind::kBatchNormBackward,
       {"f32[2,3]", "f32[2,3]", "f32[3]", "f32[3]", "f32[2]", "f32[3]"},
       {},
       "input 4"},
      {OpKind::kBatchNormApply, {"f32[2,3]", "f32[3]", "f32[3]", "f32[2]", "f32[3]"}, {}, "input 3"},
      {OpKind::kLayerNormBackward, {"f32[2,3]", "f32[2,3]", "f32[3]", "f32[3]"}, {{"axis", num(1)}}, "mean"},
      {OpKind::kSoftmaxBackward, {"f32[2,3]", "f32[3,2]"}, {{"axis", num(1)}}, "alike"},
      {OpKind::kActivationBackward,
       {"f32[2]", "f32[2]"},
       {{"act", text("gelu")}, {"from_output", num(1)}},
       "cannot be told"},
      {OpKind::kActivationBackward,
       {"f32[2]", "f32[2]"},
       {{"act", text("leaky_relu")}, {"act_alpha", -1.0}, {"from_output", num(1)}},
       "cannot be told"},
      {OpKind::kActivationBackward, {"f32[2]", "f32[2]"}, {{"act", text("")}}, "empty"},
      {OpKind::kMaxPoolBackward,
       {"f32[1,2,4,4]", "f32[1,2,3,2]"},
       changed(kPool, "dilations", Ints{1, 1}),
       "dy has type"},
      {OpKind::kAveragePoolBackward,
       {"f32[1,2,2,2]"},
       changed(kPool, "shape", dims("1,2,6,4")),
       "dy has type"},
      {OpKind::kGatherBackward,
       {"f32[2,5,4]", "i64[6]"},
       {{"shape", dims("2,9,4")}, {"axis", num(1)}},
       "dy has type"},
      {OpKind::kProdBackward, {"f32[2,3,4]", "f32[2,4]"}, {{"axes", Ints{1}}}, "dy has type"},
      {OpKind::kSgdUpdate, {"f32[4]", "f32[3]", "f32[]"}, {}, "like the parameter"},
      {OpKind::kSgdUpdate, {"f32[4]", "f32[4]", "f32[1]"}, {}, "expected f32[]"},
      {OpKind::kSgdUpdate, {"f32[4]", "f32[4]", "f32[]", "f32[4]"}, {}, "both read and written"},
      {OpKind::kAdamUpdate,
       {"f32[4]", "f32[4]", "f32[]", "f32[4]", "f32[2]", "f32[]"},
       adam,
       "like the parameter",
       4},
  });
}

}  // namespace
}  // namespace limber::testing
