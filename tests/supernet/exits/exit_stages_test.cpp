#include <algorithm>
#include <cmath>
#include <set>

#include "supernet/exits/exit_judge.h"
#include "supernet/exits/exit_tuning.h"
#include "tests/supernet/exits/prepared.h"

namespace limber {
namespace {

using namespace exits_testing;

std::map<std::string, Tensor> copies_of(const ElasticModel& model, const std::vector<std::string>& names) {
  std::map<std::string, Tensor> copies;
  for (const std::string& name : names) copies[name] = *model.params->get(name)->copy();
  return copies;
}

size_t changed(const ElasticModel& model, const std::map<std::string, Tensor>& before) {
  return static_cast<size_t>(std::count_if(before.begin(), before.end(), [&](const auto& entry) {
    const Tensor now = *model.params->get(entry.first);
    return std::memcmp(now.raw(), entry.second.raw(), now.bytes()) != 0;
  }));
}

TEST(TuningStages, EachTrainsItsOwnAndThoseBeforeOnlyWhenAsked) {
  for (const bool with_earlier : {false, true}) {
    Prepared p;
    p.model.exits.push_back(*make_exit(p.model, 2, {16, 0}, "a", 1));
    p.model.exits.push_back(*make_exit(p.model, 3, {16, 0}, "b", 1));
    const int last = static_cast<int>(p.model.blocks.size()) - 1;
    const Variant tuned = *add_tuned_blocks(p.model, last);
    std::set<std::string> seen;
    for (size_t ending = 0; ending < 3; ++ending) {
      const StageParameters parameters = *stage_parameters(p.model, tuned, ending);
      EXPECT_FALSE(parameters.own.empty());
      EXPECT_EQ(std::set(parameters.earlier.begin(), parameters.earlier.end()), seen);
      seen.insert(parameters.own.begin(), parameters.own.end());
      const auto own = copies_of(p.model, parameters.own), earlier = copies_of(p.model, parameters.earlier);
      auto teacher = make_exit_tuner(p.model, tuned, p.targets(1), test::cpu_backends(), {.batch = 32},
                                     TuningStage{ending, with_earlier});
      ASSERT_TRUE(teacher.ok()) << teacher.status().message();
      ASSERT_TRUE(*teacher);
      const auto [first, falls_to] = losses(**teacher, p.data, 2e-3);
      EXPECT_LT(falls_to, first) << ending;
      EXPECT_GT(changed(p.model, own), 0u);
      EXPECT_EQ(changed(p.model, earlier) > 0, with_earlier && ending > 0) << ending;
      p.expect_model_as_it_was();
    }
    EXPECT_FALSE(stage_parameters(p.model, tuned, 3).ok());
  }
}

// What a stage learns with is what the variant that ends there computes: the loss of its answers.
TEST(TuningStages, LearnFromWhatTheVariantsThatEndThereSay) {
  Prepared p;
  p.model.exits.push_back(*make_exit(p.model, 2, {16, 0}, "a", 1));
  const int last = static_cast<int>(p.model.blocks.size()) - 1;
  const Variant tuned = *add_tuned_blocks(p.model, last);
  const LoaderOptions how{.batch = 32, .workers = 0, .drop_last = true};
  const auto loader = *Loader::make(p.data, how);
  ASSERT_TRUE(loader->start_epoch(0).ok());
  const Batch batch = *loader->next();
  const auto targets = p.targets(0);  // labels alone
  for (size_t ending = 0; ending < 2; ++ending) {
    Variant ends = tuned;
    ends.exit = ending == 0 ? 0 : -1;
    const std::vector<float> answers = run_variant(p.model, ends, batch.images);
    const size_t classes = answers.size() / 32;
    double loss = 0;
    for (size_t i = 0; i < 32; ++i) {
      double sum = 0;
      for (size_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(answers[i * classes + c]));
      loss += std::log(sum) - answers[i * classes + static_cast<size_t>(batch.labels.data<int64_t>()[i])];
    }
    auto teacher = make_exit_tuner(p.model, tuned, targets, test::cpu_backends(), {.batch = 32},
                                   TuningStage{ending, false});
    ASSERT_TRUE(teacher.ok() && *teacher);
    EXPECT_NEAR(*(*teacher)->step(batch, 0), loss / 32, 1e-3 * loss / 32) << ending;
  }
}

class StagesFound : public ::testing::TestWithParam<TuningOrder> {};

TEST_P(StagesFound, TeachEveryEndingInItsTurn) {
  Prepared p;
  p.options.tune = true;
  p.options.order = GetParam();
  p.options.kept_weights = 0.4;
  p.options.teaching.trainer.dropout = 0.1;
  p.options.teaching.seconds = 3;
  const auto report = p.add();
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_GE(p.model.exits.size(), 1u);
  ASSERT_EQ(report->stages.size(), p.model.exits.size() + 1);
  for (size_t s = 0; s < p.model.exits.size(); ++s)
    EXPECT_EQ(report->stages[s].after, p.model.exits[s].after);
  EXPECT_EQ(report->stages.back().after, static_cast<int>(p.model.blocks.size()));
  EXPECT_EQ(report->stages[0].taken_back, 0) << "there is nothing before it";
  if (GetParam() == TuningOrder::kStages) {
    for (const ExitStage& stage : report->stages) EXPECT_EQ(stage.taken_back, 0);
  }
  EXPECT_LE(*exit_storage(p.model), p.options.storage);
  EXPECT_TRUE(check_elastic(p.model).ok()) << check_elastic(p.model).message();
  EXPECT_TRUE(check_variant(p.model, report->variant).ok());
  // An exit is as good as its stage left it, or better where later stages may change it.
  auto runner = ExitRunner::create(p.model, report->variant, test::cpu_backends(), {.batch = 16});
  ASSERT_TRUE(runner.ok()) << runner.status().message();
  const auto outcomes = judge_exits(**runner, p.held);
  ASSERT_TRUE(outcomes.ok());
  for (size_t s = 0; s < report->stages.size(); ++s) {
    const double now = share_correct(outcomes->endings[s]), then = report->stages[s].accuracy;
    EXPECT_GE(now, then);
    if (GetParam() == TuningOrder::kStages) {
      EXPECT_EQ(now, then);
    }
  }
  for (const Exit& exit : p.model.exits)
    EXPECT_TRUE(p.model.params->contains(fmt::format("exit/{}/classifier.weight.features", exit.name)));
  p.expect_model_as_it_was();
}

INSTANTIATE_TEST_SUITE_P(Orders, StagesFound,
                         ::testing::Values(TuningOrder::kStages, TuningOrder::kStagesBack));
}  // namespace
}  // namespace limber
