#include "supernet/teach/tune.h"

#include <gtest/gtest.h>

#include <cstring>

#include "io/builtin_models.h"
#include "record/elastic_records.h"
#include "supernet/expand/expand.h"
#include "supernet/expand/own_copy.h"
#include "supernet/teach/elastify.h"
#include "tests/runtime/net.h"
#include "tests/supernet/teach/table_by_work.h"

namespace limber {
namespace {

constexpr int64_t kTuneBatch = 8;

ElasticModel make_tuned_model() {
  auto builtin = make_builtin("resnet8");
  EXPECT_TRUE(builtin.ok()) << builtin.status().message();
  auto model = expand(builtin->graph, builtin->params, {.operators = {"shrink50", "skip"}});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *std::move(model);
}

// The first alternative with this name wherever there is one.
Variant with_all(const ElasticModel& model, std::string_view name) {
  Variant variant = original_variant(model);
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    for (size_t a = 0; a < model.blocks[b].alternatives.size(); ++a) {
      if (model.blocks[b].alternatives[a].name == name) variant.choices[b] = static_cast<int>(a);
    }
  }
  return variant;
}

std::unique_ptr<Loader> shapes_loader(const ElasticModel& model) {
  const Shape& shape = model.base.type(model.base.inputs()[0]).shape;
  auto data = open_dataset("synthetic:count=64", {.split = Split::kTrain});
  EXPECT_TRUE(data.ok()) << data.status().message();
  LoaderOptions how{.batch = kTuneBatch};
  how.input.height = static_cast<int>(shape.dim(2));
  how.input.width = static_cast<int>(shape.dim(3));
  auto loader = Loader::make(*std::move(data), how);
  EXPECT_TRUE(loader.ok()) << loader.status().message();
  return *std::move(loader);
}

std::map<std::string, std::vector<float>> values_of(const ElasticModel& model,
                                                    const std::vector<std::string>& names) {
  std::map<std::string, std::vector<float>> values;
  for (const std::string& name : names) {
    const Tensor tensor = *model.params->get(name);
    if (tensor.type().dtype != DType::kF32) continue;
    const auto data = tensor.data<float>();
    values[name].assign(data.begin(), data.end());
  }
  return values;
}

// As the fastest, which learn at the whole rate.
std::vector<TimedVariant> as_fastest(std::span<const Variant> variants) {
  std::vector<TimedVariant> timed;
  for (const Variant& variant : variants) timed.push_back({variant, kFastestShare});
  return timed;
}

double train_on_one_batch(VariantTuner& tuner, const Batch& batch, int steps) {
  double loss = 0;
  for (int i = 0; i < steps; ++i) loss = *tuner.step(batch, 3e-3);
  return loss;
}

TEST(Tune, LossFallsAndTheOriginalStays) {
  ElasticModel model = make_tuned_model();
  const std::vector<Variant> variants = {with_all(model, "shrink50")};
  ASSERT_NE(variants[0], original_variant(model));
  const auto before = values_of(model, parameters_of(model.base));
  auto tuner = VariantTuner::create(model, as_fastest(variants), test::cpu_backends(), {.batch = kTuneBatch});
  ASSERT_TRUE(tuner.ok()) << tuner.status().message();
  ASSERT_EQ((*tuner)->students(), 1u);
  const auto loader = shapes_loader(model);
  ASSERT_TRUE(loader->start_epoch(0).ok());
  const Batch batch = *loader->next();
  const double first = train_on_one_batch(**tuner, batch, 1), last = train_on_one_batch(**tuner, batch, 40);
  EXPECT_LT(last, 0.7 * first);
  EXPECT_EQ(values_of(model, parameters_of(model.base)), before);
}

TEST(Tune, WhatIsNearTheOriginalMovesLess) {
  const auto moved = [](double share) {
    ElasticModel model = make_tuned_model();
    const Variant variant = with_all(model, "shrink50");
    const auto names = parameters_of(*materialize(model, variant));
    const auto before = values_of(model, names);
    const TimedVariant timed{variant, share};
    auto tuner =
        VariantTuner::create(model, std::span(&timed, 1), test::cpu_backends(), {.batch = kTuneBatch});
    EXPECT_TRUE(tuner.ok()) << tuner.status().message();
    const auto loader = shapes_loader(model);
    EXPECT_TRUE(loader->start_epoch(0).ok());
    train_on_one_batch(**tuner, *loader->next(), 1);
    const auto after = values_of(model, names);
    double sum = 0;
    for (const auto& [name, values] : after)
      for (size_t i = 0; i < values.size(); ++i) sum += std::abs(values[i] - before.at(name)[i]);
    return sum;
  };
  const double fast = moved(kFastestShare), slow = moved(0.9);
  EXPECT_GT(slow, 0);
  EXPECT_NEAR(slow / fast, 0.1 / 0.7, 0.02) << "the first step of AdamW is as long as its rate";
}

TEST(Tune, WithoutLabelsTheOriginalIsTheTarget) {
  ElasticModel model = make_tuned_model();
  const std::vector<Variant> variants = {with_all(model, "shrink50")};
  const auto loader = shapes_loader(model);
  ASSERT_TRUE(loader->start_epoch(0).ok());
  Batch batch = *loader->next();
  for (int64_t& label : batch.labels.data<int64_t>()) label = -1;  // would be read out of bounds
  auto tuner = VariantTuner::create(model, as_fastest(variants), test::cpu_backends(),
                                    {.batch = kTuneBatch, .label_share = 0});
  ASSERT_TRUE(tuner.ok()) << tuner.status().message();
  const double first = train_on_one_batch(**tuner, batch, 1), last = train_on_one_batch(**tuner, batch, 40);
  EXPECT_LT(last, first);
}

TEST(Tune, NothingToTrainIsNoStudent) {
  ElasticModel model = make_tuned_model();
  const std::vector<Variant> variants = {original_variant(model), with_all(model, "skip")};
  auto tuner = VariantTuner::create(model, as_fastest(variants), test::cpu_backends(), {.batch = kTuneBatch});
  ASSERT_TRUE(tuner.ok()) << tuner.status().message();
  EXPECT_EQ((*tuner)->students(), 0u);
}

// The first so many blocks that have one are skipped or shrunk, the others are copies.
std::vector<Variant> chain_of_copies(ElasticModel& model) {
  std::vector<Variant> chain;
  Variant variant = original_variant(model);
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    if (model.blocks[b].alternatives.size() < 2) continue;
    variant.choices[b] = 1;
    chain.push_back(variant);
  }
  const auto copied = copy_originals(model, chain, 100);
  EXPECT_TRUE(copied.ok()) << copied.status().message();
  return *copied;
}

// What is trained in one variant is trained in all: none is left behind, also not the fastest.
TEST(Tune, SampledVariantsAllGetBetterAndTheOriginalStays) {
  ElasticModel model = make_tuned_model();
  const std::vector<Variant> chain = chain_of_copies(model);
  ASSERT_GT(chain.size(), 2u);
  const auto before = values_of(model, parameters_of(model.base));
  auto tuner = VariantTuner::create(model, as_fastest(chain), test::cpu_backends(),
                                    {.batch = kTuneBatch, .at_once = 2});
  ASSERT_TRUE(tuner.ok()) << tuner.status().message();
  const auto loader = shapes_loader(model);
  ASSERT_TRUE(loader->start_epoch(0).ok());
  const Batch batch = *loader->next();
  const auto worst = [&] {
    double worst = 0;
    for (const Variant& variant : chain) {
      auto alone = VariantTuner::create(model, as_fastest(std::span(&variant, 1)), test::cpu_backends(),
                                        {.batch = kTuneBatch});
      EXPECT_TRUE(alone.ok()) << alone.status().message();
      worst = std::max(worst, *(*alone)->step(batch, 0));
    }
    return worst;
  };
  const double first = worst();
  train_on_one_batch(**tuner, batch, 60);
  EXPECT_LT(worst(), 0.8 * first);
  EXPECT_EQ(values_of(model, parameters_of(model.base)), before);
}

TEST(Tune, NotesAreReadAgain) {
  const ElasticModel model = make_tuned_model();
  const std::vector<Variant> variants = {original_variant(model), with_all(model, "shrink50")};
  ElasticInfo info;
  EXPECT_TRUE(tuned_variants(model, info).empty());
  TeachingNote teaching{.tuned = {"99.99", "none=skip", "nonsense"}};
  for (const Variant& variant : variants) teaching.tuned.push_back(print(model, variant));
  put_note(info.notes, teaching);
  EXPECT_EQ(tuned_variants(model, info), variants);
  EXPECT_EQ(tuned_chain(model, info)[1], (TimedVariant{variants[1], 0}));  // of a folder without shares
  const std::vector<TimedVariant> chain = {{variants[0], 1}, {variants[1], 0.6}};
  note_tuned(model, chain, teaching);
  put_note(info.notes, teaching);
  EXPECT_EQ(tuned_chain(model, info), chain);
  const auto used = used_by(model, variants);
  for (size_t b = 0; b < used.size(); ++b)
    EXPECT_TRUE(used[b][0] && used[b][static_cast<size_t>(variants[1].choices[b])]);
}

// False when the time was over before all could be taught and what it chose be tuned, as on a busy machine.
bool teaches_chooses_and_tunes(double seconds) {
  ElasticModel model = make_tuned_model();
  auto data = open_dataset("synthetic:count=64", {.split = Split::kTrain});
  EXPECT_TRUE(data.ok());
  const Shape& shape = model.base.type(model.base.inputs()[0]).shape;
  ElastifyOptions how;
  how.distill.batch = how.tune.batch = kTuneBatch;
  how.seconds = seconds;
  how.size_limit = 5;
  const auto before = values_of(model, parameters_of(model.base));
  how.input.height = static_cast<int>(shape.dim(2));
  how.input.width = static_cast<int>(shape.dim(3));
  how.measure = [&] { return test::table_by_work(model); };
  std::vector<std::string> stages;
  double range_accuracy = 0;
  how.progress = [&](const ElastifyProgress& p) {
    if (stages.empty() || stages.back() != p.stage) stages.emplace_back(p.stage);
    range_accuracy = p.range_accuracy.value_or(range_accuracy);
  };
  bool asked = false;
  how.judge_every = 0.1;
  how.judge = [&](std::span<const Variant> variants) -> Result<std::vector<double>> {
    asked = true;
    EXPECT_EQ(variants.back(), original_variant(model));
    std::vector<double> accuracies(variants.size(), 0.5);
    accuracies.back() = 1;
    return accuracies;
  };
  const auto done = teach_alternatives(model, *std::move(data), test::cpu_backends(), how);
  EXPECT_TRUE(done.ok()) << done.status().message();
  if (!done.ok()) return true;
  EXPECT_DOUBLE_EQ(done->seconds, how.seconds);
  for (const TimedVariant& one : done->chosen) EXPECT_TRUE(check_variant(model, one.variant).ok());
  EXPECT_TRUE(check_elastic(model).ok()) << check_elastic(model).message();
  EXPECT_EQ(values_of(model, parameters_of(model.base)), before);
  if (stages.empty() || stages.front() != "teaching") return false;
  EXPECT_FALSE(done->chosen.empty());
  if (stages.back() != "tuning") return false;
  EXPECT_TRUE(!asked || (range_accuracy > 0.5 && range_accuracy < 1)) << range_accuracy;
  return asked;
}

TEST(Tune, ElastifyTeachesChoosesAndTunes) {
  double seconds = 3;
  while (seconds < 50 && !teaches_chooses_and_tunes(seconds)) seconds *= 2;
  EXPECT_LT(seconds, 50) << "nothing was tuned in any time";
}

}  // namespace
}  // namespace limber
