#include "elastic/step_costs.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "base/random.h"
#include "elastic/elastic_trainer.h"
#include "elastic/select.h"
#include "tests/elastic/fixture.h"

namespace limber {
namespace {

// Made-up times: the work of a node.
void survey_work(StepCosts& costs, const Plan& plan) {
  std::vector<double> seconds;
  for (const Step& step : plan.steps) seconds.push_back(1 + step.flops + step.bytes);
  costs.survey(plan, seconds, true);
  costs.end_survey();
}

double total_work(const Plan& plan) {
  double total = 0;
  for (const Step& step : plan.steps) total += 1 + step.flops + step.bytes;
  return total;
}

class StepCostsOf : public testing::TestWithParam<std::tuple<const char*, BatchNormMode>> {};

// The plans of a few parts are enough to know the time of every subset.
TEST_P(StepCostsOf, PredictsTheWorkOfAnySubset) {
  auto session = test::make_session(std::get<0>(GetParam()), 2, std::get<1>(GetParam()));
  auto costs = make_step_costs(*session, session->trainable());
  ASSERT_TRUE(costs.ok()) << costs.status().message();
  const size_t tensors = session->trainable().size();
  for (const TensorMask& part : survey_parts(tensors)) {
    ASSERT_TRUE(session->set_trained(names_of(**costs, part)).ok());
    survey_work(**costs, **session->plan());
  }
  EXPECT_TRUE((*costs)->complete());
  Random random(3);
  for (int i = 0; i < 20; ++i) {
    TensorMask mask(tensors, false);
    mask[random.below(tensors)] = true;
    const double share = random.uniform();
    for (size_t k = 0; k < tensors; ++k) mask[k] = mask[k] || random.uniform() < share;
    ASSERT_TRUE(session->set_trained(names_of(**costs, mask)).ok());
    const double want = total_work(**session->plan());
    EXPECT_NEAR((*costs)->predict(mask) / want, 1, 0.05) << i;
  }
}

TEST(StepCosts, EveryPartOfASurveyTrainsSomething) {
  for (size_t tensors = 1; tensors < 20; ++tensors) {
    TensorMask seen(tensors, false);
    for (const TensorMask& part : survey_parts(tensors)) {
      EXPECT_NE(std::count(part.begin(), part.end(), true), 0) << tensors;
      for (size_t k = 0; k < tensors; ++k) seen[k] = seen[k] || part[k];
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0) << tensors;
  }
}

// Thrifty plans whose gradients take half the time, corrected by one plan that keeps activations.
TEST(StepCosts, GradientsThatWereSeenBothWaysCorrectTheOthers) {
  auto session = test::make_session("resnet8", 2, BatchNormMode::kBatch);
  auto costs = make_step_costs(*session, session->trainable());
  ASSERT_TRUE(costs.ok()) << costs.status().message();
  const size_t tensors = session->trainable().size();
  const TensorMask all(tensors, true);
  TensorMask half(tensors, false);
  std::fill(half.begin() + static_cast<std::ptrdiff_t>(tensors / 2), half.end(), true);
  const auto run = [&](const TensorMask& mask, double gradients, const auto& tell) {
    ASSERT_TRUE(session->set_trained(names_of(**costs, mask)).ok());
    const Plan& plan = **session->plan();
    std::vector<double> seconds(plan.steps.size(), 1);
    const auto loss = plan.steps.size() / 3;  // no exact place is needed: what is behind is mostly gradients
    for (size_t s = loss; s < seconds.size(); ++s) seconds[s] = gradients;
    tell(plan, seconds);
  };
  const auto survey = [&](const TensorMask& mask, double gradients, bool keeps) {
    run(mask, gradients, [&](const Plan& plan, const auto& s) { (*costs)->survey(plan, s, keeps); });
  };
  survey(all, 1, false);
  (*costs)->end_survey();
  const double thrifty = (*costs)->full(), forward = (*costs)->forward();
  // By a survey that sees some both ways, or by steps after it.
  (*costs)->begin_survey();
  survey(all, 1, false);
  survey(half, 2, true);
  (*costs)->end_survey();
  EXPECT_GT((*costs)->full() - (*costs)->forward(), 1.7 * (thrifty - forward));
  (*costs)->begin_survey();
  survey(all, 1, false);
  (*costs)->end_survey();
  run(half, 2, [&](const Plan& plan, const auto& s) { (*costs)->observe(plan, s, true); });
  EXPECT_GT((*costs)->full() - (*costs)->forward(), 1.7 * (thrifty - forward));
  // Steps that compute activations twice tell nothing about those that keep them.
  const double full = (*costs)->full();
  run(all, 1, [&](const Plan& plan, const auto& s) { (*costs)->observe(plan, s, false); });
  EXPECT_NEAR((*costs)->full() / full, 1, 0.1);
}

INSTANTIATE_TEST_SUITE_P(Models, StepCostsOf,
                         testing::Values(std::tuple("resnet8", BatchNormMode::kBatch),
                                         std::tuple("resnet8", BatchNormMode::kAuto),
                                         std::tuple("resnet8", BatchNormMode::kFrozen),
                                         std::tuple("mobilenet", BatchNormMode::kAuto),
                                         std::tuple("vit", BatchNormMode::kAuto)));

}  // namespace
}  // namespace limber
