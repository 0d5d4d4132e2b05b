#include "elastic/gains.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "elastic/elastic_trainer.h"
#include "tests/elastic/fixture.h"

namespace limber {
namespace {

constexpr double kRate = 0.05;

// Gradients are a mean and noise of each batch; effects are those of SGD with momentum.
class NoisyTensor {
 public:
  NoisyTensor(size_t size, double mean, double noise) : mean_(mean), noise_(noise), velocity_(size, 0) {}

  Effect step(Random& random, double momentum) {
    Effect effect;
    for (double& v : velocity_) {
      const double gradient = mean_ + noise_ * random.normal();
      v = momentum * v + gradient;
      effect.gain += gradient * kRate * v;
      effect.gradient_squares += gradient * gradient;
    }
    return effect;
  }

 private:
  const double mean_, noise_;
  std::vector<double> velocity_;
};

TEST(Gains, TellLearningFromNoise) {
  Random random(1);
  NoisyTensor learns(400, 0.3, 0.1), guesses(400, 0, 0.316);  // norms alike
  Gains gains(2, {.momentum = 0.9});
  for (int i = 0; i < 40; ++i)
    gains.add({0, 1}, {learns.step(random, 0.9), guesses.step(random, 0.9)}, kRate);
  const std::vector<double> worth = gains.worth();
  EXPECT_NEAR(worth[0], 6, 0.5);  // the root of 400 * 0.3 * 0.3
  EXPECT_LT(worth[1], 0.4 * worth[0]);
}

// A velocity that has just begun holds less: that is no reason to be worth less.
TEST(Gains, WhatComesBackIsNotWorthLess) {
  Random random(2);
  NoisyTensor stays(400, 0.3, 0.1), comes(400, 0.3, 0.1);
  Gains gains(2, {.momentum = 0.9});
  for (int i = 0; i < 60; ++i) gains.add({0}, {stays.step(random, 0.9)}, kRate);
  for (int i = 0; i < 4; ++i) gains.add({0, 1}, {stays.step(random, 0.9), comes.step(random, 0.9)}, kRate);
  const std::vector<double> worth = gains.worth();
  EXPECT_NEAR(worth[1] / worth[0], 1, 0.1);
}

TEST(Gains, WithoutMomentumGradientTimesUpdateHasToDo) {
  Gains gains(3, {.kind = OptimizerKind::kAdam});
  gains.add({0, 2}, {Effect{.gain = 2, .gradient_squares = 1}, Effect{.gain = 1, .gradient_squares = 1}}, 1);
  const std::vector<double> worth = gains.worth();
  EXPECT_GT(worth[0], worth[2]);
  EXPECT_GT(worth[2], 0);
  EXPECT_EQ(worth[1], 0);
}

TEST(Gains, GoOnAsTheyWere) {
  Random random(3);
  NoisyTensor tensor(50, 0.2, 0.2);
  Gains gains(2, {.momentum = 0.9}), again(2, {.momentum = 0.9});
  for (int i = 0; i < 9; ++i) gains.add({1}, {tensor.step(random, 0.9)}, kRate);
  again.set_state(gains.state());
  const Effect next = tensor.step(random, 0.9);
  gains.add({1}, {next}, kRate);
  again.add({1}, {next}, kRate);
  EXPECT_EQ(gains.worth(), again.worth());
}

TEST(Gains, AStateThatCannotBeIsToldApart) {
  EXPECT_TRUE(Gains::is_state({-1, 2, 3, 4, 5}));  // updates may have made it worse
  EXPECT_FALSE(Gains::is_state({1, 2, 3, 4}));
  EXPECT_FALSE(Gains::is_state({NAN, 2, 3, 4, 5}));
  EXPECT_FALSE(Gains::is_state({1, -2, 3, 4, 5}));
  EXPECT_FALSE(Gains::is_state({1, 2, 3, 4, 1e300}));
}

// Times are the work of nodes.
std::unique_ptr<StepCosts> surveyed_costs(TrainingSession& session) {
  auto costs = *make_step_costs(session, session.trainable());
  for (const TensorMask& part : whole_survey_parts(session.trainable().size())) {
    EXPECT_TRUE(session.set_trained(names_of(*costs, part)).ok());
    const Plan& plan = **session.plan();
    std::vector<double> seconds;
    for (const Step& step : plan.steps) seconds.push_back(1 + step.flops + step.bytes);
    costs->survey(plan, seconds);
  }
  costs->end_survey();
  EXPECT_TRUE(costs->complete());
  return costs;
}

// Against all sets of ten tensors; the others are worth nothing.
TEST(SelectByRate, FindsTheBestSet) {
  auto session = test::make_session("resnet8");
  const auto costs = surveyed_costs(*session);
  const size_t tensors = session->trainable().size();
  Random random(4);
  for (int round = 0; round < 20; ++round) {
    SelectionRequest request{.importance = std::vector<double>(tensors, 0)};
    std::vector<size_t> some;
    for (int i = 0; i < 10; ++i) some.push_back(random.below(tensors));
    for (const size_t k : some) request.importance[k] = random.uniform() * random.uniform();
    double best = 0;
    for (uint32_t set = 1; set < 1U << some.size(); ++set) {
      TensorMask mask(tensors, false);
      for (size_t i = 0; i < some.size(); ++i) mask[some[i]] = mask[some[i]] || (set >> i & 1) != 0;
      const Selection one = describe(*costs, request, mask);
      best = std::max(best, one.importance / one.seconds);
    }
    const Selection found = select_by_rate(*costs, request);
    EXPECT_GE(found.importance / found.seconds, 0.99 * best)
        << round;  // branches: a chain is not quite exact
  }
}

TEST(SelectByRate, TakesWhatIsAlwaysTrainedAndFitsIntoMemory) {
  auto session = test::make_session("resnet8");
  const auto costs = surveyed_costs(*session);
  const size_t tensors = session->trainable().size();
  SelectionRequest request{.importance = std::vector<double>(tensors, 1)};
  request.always.assign(tensors, false);
  request.always[0] = true;
  EXPECT_TRUE(select_by_rate(*costs, request).mask[0]);
  request.always.clear();
  request.kept_bytes = 0.3 * costs->kept_bytes(TensorMask(tensors, true));
  EXPECT_LE(costs->kept_bytes(select_by_rate(*costs, request).mask), request.kept_bytes);
}

}  // namespace
}  // namespace limber
