#include "elastic/elastic_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "elastic/strategy.h"
#include "io/builtin_models.h"
#include "tests/elastic/fixture.h"
#include "tests/train/training_case.h"

namespace limber::test {
namespace {

TrainerInputs inputs_of(std::string_view builtin, RunFolder* folder, TrainerHook& hook) {
  auto model = make_builtin(builtin);
  EXPECT_TRUE(model.ok());
  TrainerInputs inputs{.graph = std::move(model->graph),
                       .params = std::move(model->params),
                       .data = *open_synthetic({.size = 32, .count = 40}),
                       .validation = nullptr,
                       .backends = cpu_backends(),
                       .folder = folder,
                       .options = {}};
  inputs.hooks = {&hook};
  return inputs;
}

TrainerOptions options_of(int64_t epochs) {
  TrainerOptions options = tiny_options(epochs);
  options.training.step.batch = 4;
  options.input.height = options.input.width = 32;
  options.training.step.optimizer.effects = true;
  options.training.forget_state = true;
  options.training.many_sets = true;
  options.training.choose = [](const Graph&, const std::vector<std::string>& names) {
    return Result<std::vector<std::string>>(std::vector<std::string>{names.back()});
  };
  return options;
}

std::unique_ptr<ElasticTrainer> make_elastic(const ElasticOptions& options, std::string_view note = "") {
  auto made = ElasticTrainer::create(options, note);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *std::move(made);
}

// Steps enough for three choices of twelve steps each even where a busy machine makes the trainer survey
// again after every one of them.
constexpr int64_t kEpochsForThreeChoices = 14;  // of ten steps

template <typename T>
std::vector<T> records_of(const RunFolder& folder) {
  std::vector<T> found;
  const auto records = read_records(folder.history_path());
  EXPECT_TRUE(records.ok() && records->damaged.empty());
  for (const RecordLine& line : records->lines) {
    if (line.is<T>()) found.push_back(*line.as<T>());
  }
  return found;
}

TEST(Elastic, ChoosesAgainAndAgainWithinTheBudget) {
  const Folder temp;
  auto folder = *RunFolder::open(temp / "run");
  const auto elastic = make_elastic({.rho = 0.6, .interval_steps = 12});
  const auto trainer =
      Trainer::create(inputs_of("resnet8", folder.get(), *elastic), options_of(kEpochsForThreeChoices));
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  const auto summary = (*trainer)->run();
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  const auto selections = records_of<SelectionRecord>(*folder);
  ASSERT_GE(selections.size(), 3U);
  for (const SelectionRecord& one : selections) {
    EXPECT_LE(*one.predicted_s, (*one.within ? *one.budget_s : *one.full_s) * 1.0001);
    EXPECT_FALSE(one.chosen.empty());
  }
  EXPECT_TRUE(elastic->costs()->complete());
  EXPECT_EQ(records_of<TensorsRecord>(*folder).size(), 1U);
  EXPECT_FALSE(records_of<ChoiceRecord>(*folder).empty());
  const auto surveys = records_of<SurveyRecord>(*folder);
  ASSERT_FALSE(surveys.empty());
  EXPECT_GT(surveys[0].seconds, 0);
  EXPECT_LT(surveys[0].forward_s, surveys[0].full_s);
}

// The first set of an elastic training is the last tensor: its plan must not decide for those that train
// more.
TEST(Elastic, RefusesAnOptimiserThatDoesNotReportEffects) {
  const auto elastic = make_elastic({});
  TrainerOptions options = options_of(1);
  options.training.step.optimizer.effects = false;
  const auto trainer = Trainer::create(inputs_of("resnet8", nullptr, *elastic), options);
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  expect_failure((*trainer)->run(), Code::kInvalidArgument, {"effects"});
}

TEST(Elastic, KernelsAndLayoutsAreThoseOfTrainingEverything) {
  const auto full = make_session("resnet14", 32, BatchNormMode::kAuto);
  const auto model = make_builtin("resnet14");
  ASSERT_TRUE(model.ok());
  TrainingOptions options = options_of(1).training;
  options.step.batch = 32;
  options.step.batch_norm = BatchNormMode::kAuto;
  const auto elastic = TrainingSession::create(model->graph, model->params, cpu_backends(), options);
  ASSERT_TRUE(elastic.ok()) << elastic.status().message();
  ASSERT_EQ((*elastic)->trained().size(), 1U);
  EXPECT_EQ((*(*elastic)->plan())->assignment, (*full->plan())->assignment);
  ASSERT_TRUE((*elastic)->set_trained((*elastic)->trainable()).ok());
  EXPECT_EQ((*(*elastic)->plan())->num_reorders(), (*full->plan())->num_reorders());
  EXPECT_EQ((*(*elastic)->plan())->steps.size(), (*full->plan())->steps.size());
}

// Tensors whose state was never needed have none, in memory and in the checkpoint.
TEST(Elastic, TensorsKeepNothingThatIsNotTrained) {
  const auto elastic = make_elastic({.rho = 0.4, .freeze = {"norm*"}});
  TrainerInputs inputs = inputs_of("resnet8", nullptr, *elastic);
  const auto params = inputs.params;
  const auto trainer = Trainer::create(std::move(inputs), options_of(3));
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  ASSERT_TRUE((*trainer)->run().ok());
  const std::vector<std::string>& trained = (*trainer)->session().trained();
  for (const std::string& name : (*trainer)->session().trainable()) {
    const bool kept = std::find(trained.begin(), trained.end(), name) != trained.end();
    EXPECT_EQ(params->contains("optimizer/velocity/" + name), kept) << name;
  }
}

// Remembers what was trained last, and stops after a number of updates.
class Watch : public TrainerHook {
 public:
  explicit Watch(int64_t last) : last_(last) {}
  Status on_step_end(TrainingSession& session, const StepReport& report) override {
    trained = session.trained();
    if (report.state.step == last_) stop = true;
    return {};
  }
  std::vector<std::string> trained;
  std::atomic<bool> stop{false};

 private:
  const int64_t last_;
};

// In both halves of the survey, in a probe, and with a choice made: the step after is one like the step
// before.
void expect_to_go_on(int64_t last, std::optional<double> rho) {
  const Folder temp;
  auto folder = *RunFolder::open(temp / "run");
  const ElasticOptions options{.rho = rho, .interval_steps = 14};
  Watch before(last), after(last + 1);
  {
    const auto elastic = make_elastic(options);
    TrainerInputs inputs = inputs_of("resnet8", folder.get(), *elastic);
    inputs.hooks.push_back(&before);
    inputs.stop = &before.stop;
    auto trainer = Trainer::create(std::move(inputs), options_of(5));
    ASSERT_TRUE(trainer.ok());
    ASSERT_EQ((*trainer)->run()->ending, Ending::kStopped);
  }
  std::vector<std::string> warnings;
  auto checkpoint = folder->load_last(warnings);
  ASSERT_TRUE(checkpoint.ok() && checkpoint->has_value());
  ASSERT_EQ((*checkpoint)->info.state.step, last);
  const auto elastic = make_elastic(options, (*checkpoint)->info.notes.at("elastic"));
  TrainerInputs inputs = inputs_of("resnet8", folder.get(), *elastic);
  inputs.graph = (*checkpoint)->graph;
  inputs.params = (*checkpoint)->params;
  inputs.state = (*checkpoint)->info.state;
  inputs.hooks.push_back(&after);
  inputs.stop = &after.stop;
  auto trainer = Trainer::create(std::move(inputs), options_of(5));
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  ASSERT_EQ((*trainer)->run()->ending, Ending::kStopped);
  EXPECT_EQ(after.trained, before.trained) << last;
  EXPECT_EQ(records_of<TensorsRecord>(*folder).size(), 1U);
}

TEST(Elastic, GoesOnWhereItStopped) {
  for (const int64_t last : {7, 17, 25, 30}) expect_to_go_on(last, 0.5);
  for (const int64_t last : {3, 8, 15, 30}) expect_to_go_on(last, std::nullopt);
}

// A note of version 0.1, which had no second survey, is read; one that is damaged or of another model ends in
// an error that says so.
TEST(Elastic, NotesAreCheckedBeforeTheyAreUsed) {
  const Folder temp;
  auto folder = *RunFolder::open(temp / "run");
  std::string note;
  {
    Watch stop(30);
    const auto elastic = make_elastic({.rho = 0.5, .interval_steps = 14});
    TrainerInputs inputs = inputs_of("resnet8", folder.get(), *elastic);
    inputs.hooks.push_back(&stop);
    inputs.stop = &stop.stop;
    auto trainer = Trainer::create(std::move(inputs), options_of(5));
    ASSERT_TRUE(trainer.ok() && (*trainer)->run().ok());
    std::vector<std::string> warnings;
    auto checkpoint = folder->load_last(warnings);
    ASSERT_TRUE(checkpoint.ok() && checkpoint->has_value());
    note = (*checkpoint)->info.notes.at("elastic");
  }
  const auto session = make_session("resnet8");
  const auto begin = [&](const std::string& text) {
    return make_elastic({.rho = 0.5}, text)->on_begin(*session, {.step = 30}, {10, 50});
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = note;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  EXPECT_TRUE(begin(note).ok()) << begin(note).message();
  const auto old = std::regex_replace(note, std::regex(R"("surveyed_at":\d+,"surveyed_full":[^,]+,)"), "");
  EXPECT_LT(old.size(), note.size());
  EXPECT_TRUE(begin(old).ok()) << begin(old).message();
  const auto refused = [&](const std::string& text, const std::string& part) {
    const Status status = begin(text);
    EXPECT_EQ(status.code(), Code::kCorrupt) << part;
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  refused("nonsense", "cannot be read");
  refused(with("\"debt\":", "\"dept\":"), "there is no 'debt'");
  refused(with("\"stage\":", "\"stage\":7,\"old\":"), "does not fit the model");
  refused(with("\"left\":[", "\"left\":[1,"), "does not fit the model");
  refused(with("\"trained\":[", "\"trained\":[9999,"), "does not fit the model");
  refused(with("\"effects\":[[", "\"effects\":[[1.0,"), "does not fit the model");
  refused(with("\"rho\":0.5", "\"rho\":null"), "does not fit the model");
}

TEST(Elastic, RhoMayChangeWhileTraining) {
  class Change : public TrainerHook {
   public:
    explicit Change(ElasticTrainer& elastic) : elastic_(elastic) {}
    Status on_step_end(TrainingSession& /*session*/, const StepReport& report) override {
      if (report.state.step == 30) elastic_.set_rho(0.9);
      return {};
    }

   private:
    ElasticTrainer& elastic_;
  };
  const Folder temp;
  auto folder = *RunFolder::open(temp / "run");
  const auto elastic = make_elastic({.rho = 0.5, .interval_steps = 1000});
  Change change(*elastic);
  TrainerInputs inputs = inputs_of("resnet8", folder.get(), *elastic);
  inputs.hooks.push_back(&change);
  auto trainer = Trainer::create(std::move(inputs), options_of(5));
  ASSERT_TRUE(trainer.ok());
  ASSERT_TRUE((*trainer)->run().ok());
  const auto selections = records_of<SelectionRecord>(*folder);
  ASSERT_GE(selections.size(), 2U);
  ASSERT_LE(selections.size(), 3U) << "a choice, one for the new share, and perhaps a better one for it";
  EXPECT_EQ(selections[0].rho, 0.5);
  EXPECT_EQ(selections[1].rho, 0.9);
  const auto share = [](const SelectionRecord& one) { return *one.budget_s / *one.full_s; };
  EXPECT_GT(share(selections[1]), share(selections[0]));
}

TEST(Elastic, BadNotesAndOptionsAreRefused) {
  EXPECT_FALSE(ElasticTrainer::create({.rho = 0}, "").ok());
  EXPECT_FALSE(ElasticTrainer::create({.rho = 1.5}, "").ok());
  for (const char* note : {"nonsense", "{}", "[]", R"({"stage": 7})"}) {
    const auto elastic = make_elastic({}, note);
    auto trainer = Trainer::create(inputs_of("resnet8", nullptr, *elastic), options_of(1));
    ASSERT_TRUE(trainer.ok());
    const auto summary = (*trainer)->run();
    ASSERT_FALSE(summary.ok());
    EXPECT_EQ(summary.status().code(), Code::kCorrupt) << summary.status().message();
  }
}

TEST(Elastic, AdamAndFrozenNormsAndMicroBatches) {
  for (const BatchNormMode mode : {BatchNormMode::kBatch, BatchNormMode::kFrozen, BatchNormMode::kAuto}) {
    const auto elastic = make_elastic({.rho = 0.7, .interval_steps = 10, .always = {"norm9.*"}});
    TrainerOptions options = options_of(4);
    options.training.step.batch = 2;
    options.training.step.micro_batches = 2;
    options.training.step.batch_norm = mode;
    options.training.step.optimizer.kind = OptimizerKind::kAdamW;
    options.schedule.rate = 0.001;
    auto trainer = Trainer::create(inputs_of("resnet8", nullptr, *elastic), options);
    ASSERT_TRUE(trainer.ok()) << trainer.status().message();
    const auto summary = (*trainer)->run();
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    EXPECT_FALSE(elastic->selection().mask.empty());
  }
}

TEST(Elastic, KeepsAMemoryLimit) {
  const auto elastic = make_elastic({.rho = 0.95, .interval_steps = 12});
  TrainerOptions options = options_of(4);
  const auto free_session = make_session("resnet8", options.training.step.batch);
  const auto all = free_session->needed_bytes(free_session->trainable());
  const auto least =
      free_session->needed_bytes(last_layer(free_session->prepared(), free_session->trainable()));
  ASSERT_TRUE(all.ok() && least.ok());
  ASSERT_LT(*least, *all);
  options.training.memory_limit = (*all + *least) / 2;
  auto trainer = Trainer::create(inputs_of("resnet8", nullptr, *elastic), options);
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  const auto summary = (*trainer)->run();
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_LE((*(*trainer)->session().plan())->memory_bytes(), options.training.memory_limit);
  EXPECT_GE(elastic->selection().seconds, elastic->costs()->forward());
}

TEST(Elastic, OneWayNeverTakesBack) {
  const Folder temp;
  auto folder = *RunFolder::open(temp / "run");
  const auto elastic = make_elastic({.rho = 0.6, .interval_steps = 12, .early = 0.5, .one_way = true});
  auto trainer =
      Trainer::create(inputs_of("resnet8", folder.get(), *elastic), options_of(kEpochsForThreeChoices));
  ASSERT_TRUE(trainer.ok());
  ASSERT_TRUE((*trainer)->run().ok());
  const auto selections = records_of<SelectionRecord>(*folder);
  ASSERT_GE(selections.size(), 3U);
  for (size_t i = 1; i < selections.size(); ++i) {
    const auto& before = selections[i - 1].chosen;
    for (size_t k : selections[i].chosen)
      EXPECT_TRUE(std::binary_search(before.begin(), before.end(), k)) << i;
  }
  EXPECT_EQ(elastic->returned(), 0);
}

// Without a share: everything first, then what lowers the loss fastest, with the reason.
TEST(Elastic, WithoutAShareTrainsWhatLowersTheLossFastest) {
  const Folder temp;
  auto folder = *RunFolder::open(temp / "run");
  const auto elastic = make_elastic({.rho = {}, .interval_steps = 12});
  TrainerInputs inputs = inputs_of("resnet8", folder.get(), *elastic);
  TrainerOptions options = options_of(5);
  options.training.choose = {};
  const auto trainer = Trainer::create(std::move(inputs), options);
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  ASSERT_EQ((*trainer)->session().trained().size(), (*trainer)->session().trainable().size());
  ASSERT_TRUE((*trainer)->run().ok());
  EXPECT_TRUE(elastic->costs()->complete());
  const auto selections = records_of<SelectionRecord>(*folder);
  ASSERT_GE(selections.size(), 2U);
  for (const SelectionRecord& one : selections) {
    EXPECT_FALSE(one.rho.has_value());
    EXPECT_FALSE(one.budget_s.has_value());
    ASSERT_TRUE(one.reason.has_value());
    EXPECT_NE(one.reason->find("times"), std::string::npos);
    EXPECT_FALSE(one.chosen.empty());
  }
  EXPECT_NE(elastic->summary().find("times"), std::string::npos);
}

TEST(Freeze, TrainsLessAndLessFromTheInputUpwards) {
  FreezeTrainer freeze;
  class Sets : public TrainerHook {
   public:
    Status on_step_end(TrainingSession& session, const StepReport&) override {
      sizes.push_back(session.trained().size());
      last = session.trained();
      return {};
    }
    std::vector<size_t> sizes;
    std::vector<std::string> last;
  } sets;
  TrainerInputs inputs = inputs_of("resnet8", nullptr, freeze);
  inputs.hooks.push_back(&sets);
  TrainerOptions options = options_of(4);
  options.training.choose = {};
  options.training.step.optimizer.effects = false;
  const auto trainer = Trainer::create(std::move(inputs), options);
  ASSERT_TRUE(trainer.ok()) << trainer.status().message();
  const std::vector<std::string> all = (*trainer)->session().trainable();
  ASSERT_TRUE((*trainer)->run().ok());
  ASSERT_EQ(sets.sizes.size(), 40U);
  EXPECT_EQ(sets.sizes[19], all.size());
  EXPECT_LT(sets.sizes[30], all.size());
  EXPECT_TRUE(std::is_sorted(sets.sizes.rbegin(), sets.sizes.rend()));
  EXPECT_LT(sets.sizes.back(), all.size() / 3);
  EXPECT_EQ(sets.last.back(), all.back());
}

TEST(Strategy, LastLayerAndNorms) {
  const auto session = make_session("resnet8");
  const auto last = last_layer(session->prepared(), session->trainable());
  ASSERT_EQ(last.size(), 2U);
  EXPECT_EQ(last.back(), session->trainable().back());
  const auto norms = norms_and_biases(session->prepared(), session->trainable());
  EXPECT_GT(norms.size(), last.size());
  for (const std::string& name : norms) {
    const auto rank = session->prepared().type(*session->prepared().find(name)).rank();
    EXPECT_TRUE(rank == 1 || std::find(last.begin(), last.end(), name) != last.end()) << name;
  }
}

}  // namespace
}  // namespace limber::test
