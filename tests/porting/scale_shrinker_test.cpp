#include "porting/scale_shrinker.h"

#include "passes/channel_groups.h"
#include "tests/train/training_case.h"

namespace limber {
namespace {

TEST(ScaleShrinker, TakesItsShareOfAGroupsMeanScale) {
  TrainerInputs inputs = test::tiny_inputs();
  const ChannelGroups groups = channel_groups(inputs.graph);
  ASSERT_EQ(groups.groups.size(), 1u);
  const auto params = inputs.params;
  const auto mean = [&] {
    const Tensor scales = *params->get("norm.s");
    double sum = 0;
    for (const float x : scales.data<float>()) sum += std::abs(x);
    return sum / 8;
  };
  const double before = mean();
  auto shrinker = ScaleShrinker::make(inputs.graph, groups, std::vector<double>{0.5}, 0.4, params);
  ASSERT_TRUE(shrinker.ok()) << shrinker.status().message();
  inputs.hooks = {&*shrinker};
  inputs.validation = nullptr;
  TrainerOptions options = test::tiny_options(1);
  options.schedule.rate = 1e-9;  // nothing is learnt
  const auto trainer = Trainer::create(std::move(inputs), options);
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  ASSERT_TRUE((*trainer)->run().ok());
  EXPECT_NEAR(mean(), 0.8 * before, 1e-3 * before);
}

TEST(ScaleShrinker, LeavesGroupsWithoutAPenalty) {
  TrainerInputs inputs = test::tiny_inputs();
  const ChannelGroups groups = channel_groups(inputs.graph);
  const Tensor before = *inputs.params->get("norm.s");
  auto shrinker = ScaleShrinker::make(inputs.graph, groups, std::vector<double>{0}, 0.4, inputs.params);
  ASSERT_TRUE(shrinker.ok());
  const auto session = TrainingSession::create(inputs.graph, inputs.params, inputs.backends, {});
  ASSERT_TRUE(session.ok()) << session.status().message();
  ASSERT_TRUE(shrinker->on_step_end(**session, {.state = {.step = 16}}).ok());
  const Tensor after = *inputs.params->get("norm.s");
  EXPECT_TRUE(
      std::equal(before.data<float>().begin(), before.data<float>().end(), after.data<float>().begin()));
}

}  // namespace
}  // namespace limber
