#include "adapt/surrogate/knowledge.h"

#include "tests/adapt/surrogate/master_case.h"

namespace limber::adapt {
namespace {

Tensor change_of_filter(const TensorType& type, int64_t filter, float by) {
  Tensor change = *Tensor::zeros(type);
  const auto row = static_cast<size_t>(type.shape.elements() / type.shape.dim(0));
  for (size_t i = 0; i < row; ++i) change.data<float>()[static_cast<size_t>(filter) * row + i] = by;
  return change;
}

std::vector<double> values(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.elements(); ++i) values.push_back(element_as_double(tensor, i));
  return values;
}

TEST(Knowledge, WithoutSpreadTheWeightsTakeTheChangeAndNothingElse) {
  const AdaptedModel model = residual_model();
  auto knowledge = Knowledge::create(plain_of(model), *model.weights, {});
  ASSERT_TRUE(knowledge.ok());
  EXPECT_TRUE(knowledge->tensors().empty());
  const auto before = values(*model.weights->get("w2"));
  ASSERT_TRUE(
      knowledge->learn("w2", change_of_filter(*model.weights->type("w2"), 4, 0.5f), *model.weights).ok());
  const auto after = values(*model.weights->get("w2"));
  for (size_t i = 0; i < before.size(); ++i) {
    const bool changed = i / (before.size() / 6) == 4;
    EXPECT_EQ(after[i], changed ? static_cast<double>(static_cast<float>(before[i]) + 0.5f) : before[i]);
  }
}

// T = W T* before and after, and T moved by W W^T of the change.
TEST(Knowledge, WeightsAreAlwaysWhatTheBaseSpreads) {
  const AdaptedModel model = residual_model();
  const auto original = values(*model.weights->get("w1"));
  auto knowledge = Knowledge::create(plain_of(model), *model.weights, {.spread = 0.2});
  ASSERT_TRUE(knowledge.ok());
  const auto before = values(*model.weights->get("w1"));
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], original[i], 1e-6);
  const auto w = values(knowledge->tensors().at("spread/w1"));
  const auto expect_product = [&] {
    const auto base = values(knowledge->tensors().at("base/w1")), now = values(*model.weights->get("w1"));
    for (size_t f = 0; f < 8; ++f) {
      for (size_t i = 0; i < 27; ++i) {
        double sum = 0;
        for (size_t k = 0; k < 8; ++k) sum += w[f * 8 + k] * base[k * 27 + i];
        EXPECT_EQ(now[f * 27 + i], static_cast<double>(static_cast<float>(sum)));
      }
    }
  };
  expect_product();
  ASSERT_TRUE(
      knowledge->learn("w1", change_of_filter(*model.weights->type("w1"), 2, 1), *model.weights).ok());
  expect_product();
  const auto after = values(*model.weights->get("w1"));
  for (size_t f = 0; f < 8; ++f) {
    double moved = 0;  // (W W^T)[f][2]
    for (size_t k = 0; k < 8; ++k) moved += w[f * 8 + k] * w[2 * 8 + k];
    EXPECT_NEAR(after[f * 27] - before[f * 27], moved, 1e-6) << f;
  }
}

TEST(Knowledge, FiltersThatAreNotAlikeStayToTheBit) {
  const AdaptedModel model = residual_model();
  // Filters 0 to 3 and 4 to 7 have nothing in common.
  const auto to = model.weights->writable("w1")->data<float>();
  for (size_t f = 0; f < 8; ++f) {
    for (size_t i = 0; i < 27; ++i) {
      if ((i < 13) != (f < 4)) to[f * 27 + i] = 0;
    }
  }
  auto knowledge = Knowledge::create(plain_of(model), *model.weights, {.spread = 0.3});
  ASSERT_TRUE(knowledge.ok());
  const auto before = values(*model.weights->get("w1"));
  const auto others = test::bytes_of(*model.weights);
  ASSERT_TRUE(
      knowledge->learn("w1", change_of_filter(*model.weights->type("w1"), 1, 1), *model.weights).ok());
  const auto after = values(*model.weights->get("w1"));
  for (size_t i = 4 * 27; i < 8 * 27; ++i) EXPECT_EQ(after[i], before[i]);
  EXPECT_NE(after[27], before[27]);
  for (const auto& [name, bytes] : test::bytes_of(*model.weights)) {
    if (name != "w1") {
      EXPECT_EQ(bytes, others.at(name)) << name;
    }
  }
}

TEST(Knowledge, GoesOnWhereItWasSaved) {
  const AdaptedModel model = residual_model(), other = residual_model();
  auto first = Knowledge::create(plain_of(model), *model.weights, {.spread = 0.2});
  const Tensor change = change_of_filter(*model.weights->type("w1"), 2, 1);
  ASSERT_TRUE(first->learn("w1", change, *model.weights).ok());
  auto second = Knowledge::create(plain_of(other), *other.weights, {.spread = 0.2});
  ASSERT_TRUE(second->restore(first->tensors()).ok());
  for (Knowledge* each : {&*first, &*second}) {
    const AdaptedModel& of = each == &*first ? model : other;
    ASSERT_TRUE(each->learn("w1", change, *of.weights).ok());
  }
  EXPECT_EQ(values(*other.weights->get("w1")), values(*model.weights->get("w1")));
}

void expect_corrupt(const Status& status, std::initializer_list<std::string> parts) {
  ASSERT_FALSE(status.ok());
  expect_failure(Result<bool>(status), Code::kCorrupt, parts);
}

TEST(Knowledge, WhatDoesNotFitIsRefused) {
  const AdaptedModel model = residual_model();
  for (const double spread : {-0.1, 1.0, static_cast<double>(NAN)})
    expect_failure(Knowledge::create(plain_of(model), *model.weights, {.spread = spread}),
                   Code::kInvalidArgument, {"spread"});
  auto knowledge = Knowledge::create(plain_of(model), *model.weights, {.spread = 0.2});
  auto tensors = knowledge->tensors();
  tensors.at("base/w2") = tensors.at("base/w1");
  expect_corrupt(knowledge->restore(tensors), {"base/w2", "f32[6,8,3,3]"});
  tensors.erase("base/w2");
  expect_corrupt(knowledge->restore(tensors), {"5 tensors", "6"});
}

}  // namespace
}  // namespace limber::adapt
