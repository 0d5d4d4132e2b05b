#include "supernet/exits/exits.h"

#include <cstring>
#include <set>

#include "passes/splice.h"
#include "supernet/exits/exit_balance.h"
#include "supernet/exits/exit_judge.h"
#include "supernet/exits/exit_tuning.h"
#include "supernet/exits/subnet_exit.h"
#include "supernet/expand/partition.h"
#include "tests/supernet/exits/prepared.h"

namespace limber {
namespace {

using namespace exits_testing;

// Exits after every block where one fits.
void add_everywhere(ElasticModel& model, int64_t elements) {
  const int64_t classes = *count_classes(model.base);
  for (int after = 0; after < static_cast<int>(model.blocks.size()); ++after) {
    const auto design = design_exit(features_after(model, after), classes, elements);
    if (!design) continue;
    auto exit = make_exit(model, after, *design, fmt::format("after{}", after), 1);
    ASSERT_TRUE(exit.ok()) << exit.status().message();
    EXPECT_LE(exit_elements(features_after(model, after), classes, *design), elements);
    int64_t stored = 0;
    for (const std::string& name : parameters_of(exit->graph)) {
      EXPECT_TRUE(name.starts_with(fmt::format("exit/after{}/", after))) << name;
      stored += model.params->type(name)->shape.elements();
    }
    EXPECT_EQ(stored, exit_elements(features_after(model, after), classes, *design));
    model.exits.push_back(*std::move(exit));
  }
}

void expect_near(const Tensor& got, const std::vector<float>& want, const std::string& what) {
  const auto values = got.data<float>();
  ASSERT_GE(values.size(), want.size());
  float scale = 1;
  for (const float x : want) scale = std::max(scale, std::abs(x));
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(values[i], want[i], 1e-4F * scale) << what;
}

class ExitsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto model = test::load_model(GetParam());
    if (!model) GTEST_SKIP() << GetParam() << " is not there";
    model_ = make_elastic(*model);
    add_everywhere(model_, 50000);
  }
  ElasticModel model_;
};

TEST_P(ExitsTest, FitTheModel) {
  EXPECT_GT(model_.exits.size(), 1u);
  const Status status = check_elastic(model_);
  EXPECT_TRUE(status.ok()) << status.message();
}

// Stage by stage or as one graph: the same answer at every exit.
TEST_P(ExitsTest, RunAsTheVariantThatEndsThere) {
  Variant variant = original_variant(model_);
  auto runner = ExitRunner::create(model_, variant, test::cpu_backends(), {.batch = kExitBatch});
  ASSERT_TRUE(runner.ok()) << runner.status().message();
  const Tensor images = noise(model_, kExitBatch, 3);
  const auto answers = (*runner)->run_all(images);
  ASSERT_TRUE(answers.ok()) << answers.status().message();
  ASSERT_EQ(answers->size(), model_.exits.size() + 1);
  for (size_t e = 0; e < answers->size(); ++e) {
    variant.exit = (*runner)->exit(e);
    expect_near((*answers)[e], run_variant(model_, variant, images), fmt::format("exit {}", variant.exit));
  }
}

TEST_P(ExitsTest, LeaveAtTheFirstThatIsSureEnough) {
  const Variant variant = original_variant(model_);
  auto all = ExitRunner::create(model_, variant, test::cpu_backends());
  auto one = ExitRunner::create(model_, variant, test::cpu_backends());
  ASSERT_TRUE(all.ok() && one.ok());
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const Tensor image = noise(model_, 1, seed);
    const auto answers = (*all)->run_all(image);
    ASSERT_TRUE(answers.ok()) << answers.status().message();
    for (size_t e = 0; e < answers->size(); ++e) {
      const double sure = (*all)->confidence((*answers)[e], 0);
      const auto left = (*one)->run(image, sure);
      ASSERT_TRUE(left.ok()) << left.status().message();
      size_t first = 0;
      while (first + 1 < answers->size() && (*all)->confidence((*answers)[first], 0) < sure) ++first;
      EXPECT_EQ(left->ending, first);
      EXPECT_EQ(left->confidence, (*all)->confidence((*answers)[first], 0));
    }
    EXPECT_EQ((*one)->run(image, 0)->ending, model_.exits.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ExitsTest,
                         ::testing::Values("builtin:resnet8", "builtin:vit", "builtin:mobilenet", "resnet20",
                                           "vit_small", "mobilenet_v2_small"),
                         [](const auto& info) { return test::test_name(info.param); });

TEST(Exits, EndInSoftmaxWhereTheModelDoes) {
  Model model = *make_builtin("resnet8");
  const ValueId logits = model.graph.outputs()[0].value;
  model.graph.mutable_outputs()[0].value =
      *emit(model.graph, OpKind::kSoftmax, {logits}, {{"axis", int64_t{1}}}, "softmax");
  ElasticModel elastic = make_elastic(model);
  add_everywhere(elastic, 5000);
  ASSERT_TRUE(check_elastic(elastic).ok());
  auto runner = ExitRunner::create(elastic, original_variant(elastic), test::cpu_backends());
  ASSERT_TRUE(runner.ok()) << runner.status().message();
  const auto answers = (*runner)->run_all(noise(elastic, 1, 1));
  ASSERT_TRUE(answers.ok()) << answers.status().message();
  for (const Tensor& answer : *answers) {
    float sum = 0, most = 0;
    for (const float p : answer.data<float>()) sum += p, most = std::max(most, p);
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_EQ((*runner)->confidence(answer, 0), most);
  }
}

TEST(Exits, RefuseWhatDoesNotFit) {
  ElasticModel model = small_model();
  const auto message = [&](int after, ExitDesign design, std::string_view name) {
    return make_exit(model, after, design, name, 0).status().message();
  };
  EXPECT_NE(message(99, {}, "x").find("99 blocks"), std::string::npos);
  EXPECT_NE(message(1, {0, 2}, "x").find("2 blocks"), std::string::npos);
  EXPECT_NE(message(1, {}, "").find("name"), std::string::npos);
  const int last = static_cast<int>(model.blocks.size()) - 1;
  model.exits.push_back(*make_exit(model, last, {}, "x", 0));
  EXPECT_NE(message(1, {}, "x").find("taken"), std::string::npos);
  EXPECT_FALSE(fits_exit({DType::kF32, Shape{1, 2, 3, 4, 5}}));
  EXPECT_FALSE(fits_exit({DType::kI64, Shape{1, 2}}));
  EXPECT_FALSE(fits_exit({DType::kF32, Shape{Dim(Symbol("N")), Dim(Symbol("T")), 4}}));
  EXPECT_EQ(design_exit({DType::kF32, Shape{1, 64, 8, 8}}, 10, 100), std::nullopt);
  EXPECT_EQ(design_exit({DType::kF32, Shape{1, 64, 2, 2}}, 10, 10000), ExitDesign{});
  Variant ends = original_variant(model);
  ends.exit = 0;
  EXPECT_FALSE(ExitRunner::create(model, ends, test::cpu_backends()).ok());
}

class ExitsFound : public ::testing::TestWithParam<bool> {};

TEST_P(ExitsFound, AreTaughtAndLeaveTheModelAsItIs) {
  Prepared p;
  p.options.tune = GetParam();
  std::set<ExitPhase> phases;
  p.options.progress = [&](ExitPhase phase, const ExitProgress&) { phases.insert(phase); };
  const auto report = p.add();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_FALSE(report->stopped);
  EXPECT_EQ(phases.size(), 4u);
  EXPECT_GE(p.model.exits.size(), 1u);
  EXPECT_LE(p.model.exits.size(), 2u);
  EXPECT_LE(*exit_storage(p.model), p.options.storage);
  EXPECT_TRUE(check_elastic(p.model).ok()) << check_elastic(p.model).message();
  EXPECT_TRUE(check_variant(p.model, report->variant).ok());
  EXPECT_EQ(report->variant == original_variant(p.model), !p.options.tune);
  std::set<std::string> own;
  for (const Exit& exit : p.model.exits) {
    for (const std::string& name : parameters_of(exit.graph)) own.insert(name);
  }
  for (const std::string& name : p.model.params->names()) {
    EXPECT_FALSE(name.starts_with("optimizer/")) << name;
    if (!name.starts_with("exit/")) continue;
    EXPECT_TRUE(own.contains(name)) << name << " belongs to an exit that went";
  }
  p.expect_model_as_it_was();
}

INSTANTIATE_TEST_SUITE_P(Tuned, ExitsFound, ::testing::Bool());

TEST(Exits, LossFalls) {
  Prepared p;
  p.model.exits.push_back(*make_exit(p.model, 2, {16, 1}, "a", 1));
  p.model.exits.push_back(*make_exit(p.model, 3, {16, 0}, "b", 1));
  for (const double focus : {0.0, 0.9}) {
    auto teacher =
        make_exit_teacher(p.model, p.targets(0.3), test::cpu_backends(), {.batch = 32, .focus = focus});
    ASSERT_TRUE(teacher.ok()) << teacher.status().message();
    const auto [first, last] = losses(**teacher, p.data, 5e-3);
    EXPECT_LT(last, first);
  }
  p.expect_model_as_it_was();
}

// Tuned copies compute what the originals do until they are trained; the originals never change.
TEST(Exits, TunedBlocksStartAsTheOriginals) {
  Prepared p;
  p.model.exits.push_back(*make_exit(p.model, 2, {16, 1}, "a", 1));
  p.model.exits.push_back(*make_exit(p.model, 3, {16, 0}, "b", 1));
  auto variant = add_tuned_blocks(p.model, 4);
  ASSERT_TRUE(variant.ok()) << variant.status().message();
  EXPECT_TRUE(check_elastic(p.model).ok()) << check_elastic(p.model).message();
  EXPECT_TRUE(check_variant(p.model, *variant).ok());
  const auto runs_as_original = [&] {
    const Tensor images = noise(p.model, kExitBatch, 3);
    for (int exit = -1; exit < 2; ++exit) {
      Variant tuned = *variant, original = original_variant(p.model);
      tuned.exit = original.exit = exit;
      const auto a = run_variant(p.model, tuned, images), b = run_variant(p.model, original, images);
      for (size_t i = 0; i < a.size(); ++i) {
        if (std::abs(a[i] - b[i]) > 1e-4F) return false;
      }
    }
    return true;
  };
  EXPECT_TRUE(runs_as_original());
  EXPECT_GT(*tuned_storage(p.model), 0);
  EXPECT_LT(*tuned_storage(p.model), 1);
  auto teacher = make_exit_tuner(p.model, *variant, p.targets(1), test::cpu_backends(), {.batch = 32});
  ASSERT_TRUE(teacher.ok()) << teacher.status().message();
  const auto [first, last] = losses(**teacher, p.data, 2e-3);
  EXPECT_LT(last, first);
  EXPECT_FALSE(runs_as_original());
  p.expect_model_as_it_was();

  // With fewer exits the same copies make longer alternatives.
  p.model.exits.pop_back();
  const Tensor images = noise(p.model, kExitBatch, 3);
  const auto before = run_variant(p.model, *variant, images);
  remove_tuned_blocks(p.model, true);
  variant = add_tuned_blocks(p.model, 4);
  ASSERT_TRUE(variant.ok()) << variant.status().message();
  const auto after = run_variant(p.model, *variant, images);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i], after[i], 1e-4F);
  remove_tuned_blocks(p.model, false);
  for (const std::string& name : p.model.params->names())
    EXPECT_EQ(name.find("/tuned/"), std::string::npos) << name;
  EXPECT_FALSE(add_tuned_blocks(p.model, 1).ok());  // an exit comes later
}

// What a subnet is not sure of starts again: both answers are those of the variants by themselves.
TEST(Exits, ASubnetIsAnExitBeforeTheFirstBlock) {
  Prepared p;
  Variant subnet = original_variant(p.model);
  for (size_t b = 0; b < p.model.blocks.size(); ++b) {
    if (p.model.blocks[b].alternatives.size() > 1) subnet.choices[b] = 1;
  }
  const std::vector<Variant> subnets = {original_variant(p.model), subnet};
  ASSERT_NE(subnets[0], subnets[1]);
  p.model.exits.push_back(*make_exit(p.model, 2, {16, 1}, "a", 1));
  const auto report = add_subnet_exit(p.model, subnets, p.held, test::cpu_backends(), {.seconds = 0.01}, 1);
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(p.model.exits.size(), 1u);
  EXPECT_TRUE(check_elastic(p.model).ok()) << check_elastic(p.model).message();
  EXPECT_EQ(*exit_storage(p.model), 0);
  const Tensor images = noise(p.model, kExitBatch, 3);
  p.model.exits = {*make_subnet_exit(p.model, subnet)};
  auto runner = ExitRunner::create(p.model, report->variant, test::cpu_backends(), {.batch = kExitBatch});
  ASSERT_TRUE(runner.ok()) << runner.status().message();
  const auto answers = (*runner)->run_all(images);
  ASSERT_TRUE(answers.ok()) << answers.status().message();
  ASSERT_EQ(answers->size(), 2u);
  expect_near((*answers)[0], run_variant(p.model, subnet, images), "subnet");
  expect_near((*answers)[1], run_variant(p.model, original_variant(p.model), images), "model");
  remove_exits(p.model);
  EXPECT_TRUE(p.model.exits.empty());
  p.expect_model_as_it_was();
  EXPECT_EQ(p.model.params->names().size(), p.before.size());
  EXPECT_FALSE(add_subnet_exit(p.model, {}, p.held, test::cpu_backends(), {}, 1).ok());
  subnet.confidence = 0.5;
  EXPECT_FALSE(make_subnet_exit(p.model, subnet).ok());
}

TEST(Exits, StopsWithWhatThereIs) {
  Prepared p;
  std::atomic<bool> stop = false;
  p.options.teaching.seconds = 600;
  p.options.teaching.stop = &stop;
  for (const ExitPhase when : {ExitPhase::kProbing, ExitPhase::kTrying}) {
    stop = false;
    p.options.probe_share = when == ExitPhase::kProbing ? 0.5 : 0.0005;
    p.options.tune = when == ExitPhase::kTrying;
    p.options.progress = [&](ExitPhase phase, const ExitProgress&) { stop = stop || phase == when; };
    const auto report = p.add();
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_TRUE(report->stopped);
    EXPECT_EQ(p.model.exits.empty(), when == ExitPhase::kProbing);
    EXPECT_LE(p.model.exits.size(), 2u);
    EXPECT_TRUE(check_elastic(p.model).ok());
  }
}

TEST(Exits, SaysWhenThereIsNoPlace) {
  Prepared p;
  p.options.storage = 1e-6;
  const auto report = p.add();
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status().message().find("storage"), std::string::npos) << report.status().message();
  EXPECT_TRUE(p.model.exits.empty());
  p.options.max_exits = 0;
  EXPECT_EQ(p.add().status().code(), Code::kInvalidArgument);
}

// An exit that is as good as the model and early is worth more than a late one.
TEST(Exits, PlacesAreChosenByWhatTheySave) {
  ExitOutcomes outcomes;
  const std::vector<bool> right(10, true);
  const std::vector<double> sure(10, 0.9), half = {0.9, 0.9, 0.9, 0.9, 0.9, 0.1, 0.1, 0.1, 0.1, 0.1};
  const std::vector<bool> half_right = {true, true, true, true, true, false, false, false, false, false};
  outcomes.endings = {{half, half_right}, {sure, right}, {sure, right}, {sure, right}};
  const std::vector<ExitPlace> places = {{1, 0.1, 0.01}, {2, 0.5, 0.01}, {3, 0.8, 0.01}};
  EXPECT_EQ(choose_places(outcomes, places, 1, 1, 1), (std::vector<size_t>{1}));
  EXPECT_EQ(choose_places(outcomes, places, 1, 3, 1), (std::vector<size_t>{0, 1}));
  EXPECT_TRUE(choose_places(outcomes, places, 0.05, 3, 1).empty());
}

// Only how sure exits are changes, not what they say.
TEST(Exits, BalancedExitsGiveTheSameClasses) {
  Prepared p;
  p.model.exits.push_back(*make_exit(p.model, 2, {16, 0}, "a", 1));
  p.model.exits.push_back(*make_exit(p.model, 3, {}, "b", 1));
  const Variant original = original_variant(p.model);
  const auto correct = [&] {
    auto runner = ExitRunner::create(p.model, original, test::cpu_backends(), {.batch = 16});
    const auto outcomes = judge_exits(**runner, p.held);
    return std::pair(outcomes->endings[0].correct, outcomes->endings[1].correct);
  };
  const auto before = correct();
  const Status status =
      balance_exits(p.model, original, p.held, test::cpu_backends(), {.seconds = 0.005}, 0.9);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(correct(), before);
  p.expect_model_as_it_was();
}

// What every ending says is what the variant says that always ends there.
void expect_as_alone(const ElasticModel& model, const ExitRunner& runner, const EvaluationSet& set,
                     const ExitOutcomes& outcomes) {
  for (size_t e = 0; e < runner.endings(); ++e) {
    Variant forced = original_variant(model);
    forced.exit = runner.exit(e);
    size_t image = 0;
    for (size_t b = 0; b < set.images.size(); ++b) {
      const std::vector<float> answers = run_variant(model, forced, set.images[b]);
      const size_t classes = answers.size() / set.labels[b].size();
      for (size_t i = 0; i < set.labels[b].size(); ++i, ++image) {
        const std::span<const float> row(answers.data() + i * classes, classes);
        EXPECT_EQ(outcomes.endings[e].correct[image], among_best(row, set.labels[b][i], 1));
        EXPECT_NEAR(outcomes.endings[e].confidence[image], confidence_of(row), 1e-4);
      }
    }
    EXPECT_EQ(outcomes.endings[e].correct.size(), image);
  }
}

TEST(Exits, JudgedOnAWholeSet) {
  Prepared p;
  p.model.exits.push_back(*make_exit(p.model, 3, {}, "late", 1));
  p.model.exits.push_back(*make_exit(p.model, 1, {16, 0}, "early", 1));
  const EvaluationSet set = shapes(10, 4, {});  // the last batch is short
  auto runner = ExitRunner::create(p.model, original_variant(p.model), test::cpu_backends(), {.batch = 4});
  ASSERT_TRUE(runner.ok()) << runner.status().message();
  EXPECT_EQ((*runner)->exit(0), 1);  // by place, not by number
  EXPECT_EQ((*runner)->exit(1), 0);
  auto outcomes = judge_exits(**runner, set);
  ASSERT_TRUE(outcomes.ok()) << outcomes.status().message();
  EXPECT_EQ(outcomes->images(), 10u);
  expect_as_alone(p.model, **runner, set, *outcomes);
  ASSERT_TRUE(time_exits(p.model, original_variant(p.model), **runner, test::cpu_backends(),
                         {.seconds = 0.01}, *outcomes)
                  .ok());
  // Stages that are timed by themselves take together what the model takes as a whole, and a bit more; the
  // blocks behind an early exit do not run. Wide, for busy machines.
  const auto& [early, late, end] = std::tie(outcomes->endings[0], outcomes->endings[1], outcomes->endings[2]);
  EXPECT_LT(early.forced_seconds, 0.8 * end.forced_seconds);
  EXPECT_GT(end.seconds, 0.6 * end.forced_seconds);
  EXPECT_LT(end.seconds, 4 * end.forced_seconds);
  EXPECT_LT(late.seconds - early.seconds, end.forced_seconds);
  Variant variant = original_variant(p.model);
  variant.confidence = 1e-6;  // all leave at once
  const auto real = measure_real_latency(p.model, variant, set, 7, test::cpu_backends(), 1);
  ASSERT_TRUE(real.ok()) << real.status().message();
  EXPECT_EQ(real->images, 7);
#ifndef LIMBER_SANITIZED  // what is around the kernels takes longer than they do
  EXPECT_LT(real->seconds, 0.8 * real->full_seconds);
#endif
  EvaluationSet bad = set;
  bad.labels[0][0] = 10;
  EXPECT_FALSE(judge_exits(**runner, bad).ok());
  bad.labels.clear();
  EXPECT_FALSE(judge_exits(**runner, bad).ok());
  const std::atomic<bool> stop = true;
  EXPECT_EQ(judge_exits(**runner, set, &stop).status().code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace limber
