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
  costs.survey(plan, seconds);
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

INSTANTIATE_TEST_SUITE_P(Models, StepCostsOf,
                         testing::Values(std::tuple("resnet8", BatchNormMode::kBatch),
                                         std::tuple("resnet8", BatchNormMode::kAuto),
                                         std::tuple("resnet8", BatchNormMode::kFrozen),
                                         std::tuple("mobilenet", BatchNormMode::kAuto),
                                         std::tuple("vit", BatchNormMode::kAuto)));

}  // namespace
}  // namespace limber
