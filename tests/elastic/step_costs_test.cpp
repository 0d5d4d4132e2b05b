#include "elastic/step_costs.h"

#include <gtest/gtest.h>

#include <cmath>
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

// Made-up times of a machine on which whatever reads an activation that was just made again takes half its
// time.
class Thrifty {
 public:
  Thrifty(TrainingSession& session, const StepCosts& costs) : session_(session), costs_(costs) {
    EXPECT_TRUE(session.set_trained(costs.tensors()).ok());
    for (const Node& node : (*session.plan())->graph.nodes()) kept_.insert(node.name);
  }

  // The plan that trains these, and what its steps take.
  const Plan& train(const TensorMask& mask, Thrift thrift) {
    EXPECT_TRUE(session_.set_trained(names_of(costs_, mask), thrift).ok());
    const Plan& plan = **session_.plan();
    seconds.clear();
    for (const Step& step : plan.steps) {
      const double work = 1 + step.flops + step.bytes;
      seconds.push_back(step.node != kNoNode && reads_copy(plan.graph, plan.graph.node(step.node)) ? work / 4
                                                                                                   : work);
    }
    return plan;
  }
  std::vector<double> seconds;

 private:
  bool reads_copy(const Graph& graph, const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
      if (v == kNoValue || graph.value(v).producer == kNoNode) return false;
      const std::string& maker = graph.node(graph.value(v).producer).name;
      return maker.ends_with("/again") && kept_.count(maker) == 0;
    });
  }

  TrainingSession& session_;
  const StepCosts& costs_;
  std::set<std::string> kept_;  // names of nodes of steps that keep activations
};

TEST_P(StepCostsOf, SurveysSeeEveryNodeAsStepsThatKeepActivationsRunIt) {
  auto session = test::make_session(std::get<0>(GetParam()), 2, std::get<1>(GetParam()));
  auto costs = make_step_costs(*session, session->trainable());
  ASSERT_TRUE(costs.ok()) << costs.status().message();
  Thrifty machine(*session, **costs);
  const size_t tensors = session->trainable().size();
  for (const TensorMask& part : survey_parts(tensors)) {
    const Plan& plan = machine.train(part, Thrift::kOthers);
    (*costs)->survey(plan, machine.seconds);
  }
  (*costs)->end_survey();
  Random random(4);
  for (int i = 0; i < 10; ++i) {
    TensorMask mask(tensors, false);
    mask[random.below(tensors)] = true;
    for (size_t k = 0; k < tensors; ++k) mask[k] = mask[k] || random.uniform() < 0.1 * i;
    const double want = total_work(machine.train(mask, Thrift::kTime));
    EXPECT_NEAR((*costs)->predict(mask) / want, 1, 0.05) << i;
  }
}

// Where memory is short, some nodes are only ever seen beside activations that are made again.
TEST(StepCosts, GradientsThatWereSeenBothWaysCorrectTheOthers) {
  auto session = test::make_session("resnet8", 2, BatchNormMode::kBatch);
  auto costs = make_step_costs(*session, session->trainable());
  ASSERT_TRUE(costs.ok()) << costs.status().message();
  Thrifty machine(*session, **costs);
  const size_t tensors = session->trainable().size();
  const TensorMask all(tensors, true);
  TensorMask half(tensors, false);
  std::fill(half.begin() + static_cast<std::ptrdiff_t>(tensors / 2), half.end(), true);
  const double want = total_work(machine.train(all, Thrift::kTime));
  const auto error = [&] { return std::abs((*costs)->full() / want - 1); };
  const auto survey = [&](const TensorMask& mask, Thrift thrift) {
    const Plan& plan = machine.train(mask, thrift);
    (*costs)->survey(plan, machine.seconds);
  };
  survey(all, Thrift::kMemory);
  (*costs)->end_survey();
  const double thrifty = error();
  EXPECT_GT(thrifty, 0.05);
  // By a survey that sees some both ways, or by steps after it.
  (*costs)->begin_survey();
  survey(all, Thrift::kMemory);
  survey(half, Thrift::kTime);
  (*costs)->end_survey();
  EXPECT_LT(error(), 0.5 * thrifty);
  (*costs)->begin_survey();
  survey(all, Thrift::kMemory);
  (*costs)->end_survey();
  const Plan& plan = machine.train(half, Thrift::kTime);
  (*costs)->observe(plan, machine.seconds);
  EXPECT_LT(error(), 0.5 * thrifty);
}

INSTANTIATE_TEST_SUITE_P(Models, StepCostsOf,
                         testing::Values(std::tuple("resnet8", BatchNormMode::kBatch),
                                         std::tuple("resnet8", BatchNormMode::kAuto),
                                         std::tuple("resnet8", BatchNormMode::kFrozen),
                                         std::tuple("mobilenet", BatchNormMode::kAuto),
                                         std::tuple("vit", BatchNormMode::kAuto)));

}  // namespace
}  // namespace limber
