#include "cli/train_work.h"

#include <spdlog/spdlog.h>

#include "cli/commands.h"
#include "cli/elastic_console.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "jobs/classifier.h"
#include "train/head.h"
#include "train/init.h"

namespace limber {
namespace {

// --- what to train, and where it stands -----------------------------------------------------------------

struct Job {
  Graph graph;
  std::shared_ptr<Parameters> params;
  Preprocess input;
  TrainingState state;
  OptionTexts notes;
  std::shared_ptr<const Dataset> data, validation;
};

Result<std::shared_ptr<const Dataset>> open_part(const std::string& spec, const OpenOptions& how) {
  LIMBER_ASSIGN(std::unique_ptr<Dataset> data, open_dataset(spec, how));
  return std::shared_ptr<const Dataset>(std::move(data));
}

Result<std::shared_ptr<const Dataset>> open_validation(const TrainCommand& options, const Dataset& data) {
  if (options.validation == "none") return std::shared_ptr<const Dataset>();
  if (!options.validation.empty())
    return open_part(options.validation, {.split = Split::kTest, .expected = data.class_names()});
  auto own =
      open_part(options.data, {.split = Split::kTest, .need_split = true, .expected = data.class_names()});
  if (own.ok() || own.status().code() != Code::kNotFound) return own;
  fmt::print(
      stderr,
      "note: {} has no test part, so nothing is evaluated and there is no best checkpoint; give --val\n",
      options.data);
  return std::shared_ptr<const Dataset>();
}

Status fit_head(const TrainCommand& options, Classifier& classifier, const Dataset& data) {
  const auto classes = static_cast<int64_t>(data.class_names().size());
  LIMBER_ASSIGN(const int64_t before, count_classes(classifier.model.graph));
  if (options.head == "keep" || (options.head == "auto" && before == classes)) return {};
  LIMBER_TRY(replace_head(classifier.model.graph, *classifier.model.params, classes, options.seed));
  fmt::print(stderr, "note: a new classifier for {} classes takes the place of that for {}\n", classes,
             before);
  return {};
}

bool is_norm(OpKind op) {
  return op == OpKind::kBatchNorm || op == OpKind::kLayerNorm || op == OpKind::kGroupNorm ||
         op == OpKind::kInstanceNorm;
}

// Deep networks whose normalisation was folded into the weights diverge at rates that are usual otherwise.
void warn_without_norms(const Graph& graph) {
  constexpr int64_t kDeep = 10;
  int64_t convolutions = 0, norms = 0;
  for (const Node& node : graph.nodes()) {
    convolutions += node.op == OpKind::kConv ? 1 : 0;
    norms += is_norm(node.op) ? 1 : 0;
  }
  if (norms > 0 || convolutions < kDeep) return;
  fmt::print(stderr,
             "note: {} convolutions and no normalisation (folded when the model was exported?); if training "
             "diverges, use --lr 0.001 --clip-norm 1 or export the model in training mode\n",
             convolutions);
}

// From the model's file.
Result<Job> begin(const TrainCommand& options) {
  Job job;
  LIMBER_ASSIGN(job.data, open_part(options.data, {}));
  LIMBER_ASSIGN(Classifier classifier, load_classifier(options, options.image));
  if (options.init == "random")
    LIMBER_TRY(initialise(classifier.model.graph, *classifier.model.params, options.seed).status());
  LIMBER_TRY(fit_head(options, classifier, *job.data));
  warn_without_norms(classifier.model.graph);
  job.graph = std::move(classifier.model.graph);
  job.params = std::move(classifier.model.params);
  job.input = classifier.input;
  return job;
}

// What a checkpoint was made with must be what is asked for now, but for what only changes the outcome.
Status check_same(const OptionTexts& before, const OptionTexts& now) {
  for (const auto& [name, value] : now) {
    const auto old = before.find(name);
    const std::string was = old == before.end() ? "" : old->second;
    if (was == value) continue;
    if (name != "epochs" && name != "threads") {
      return invalid("--{} is '{}', the training was begun with '{}'; use that, or another -o to begin anew",
                     name, value, was);
    }
    fmt::print(stderr, "note: --{} is {} now and was {}; the outcome is not what it would have been\n", name,
               value, was);
  }
  return {};
}

Status check_same_data(const OptionTexts& before, const Dataset& data, const std::string& spec) {
  const auto old = before.find("images");
  const std::string now = fmt::format("{}", data.size());
  if (old == before.end() || old->second == now) return {};
  return invalid(
      "{} has {} images, the training was begun with {}; give the same data, or another -o to begin anew",
      spec, now, old->second);
}

OptionTexts strategy_texts(const TrainCommand& options) {
  const auto elastic = elastic_options(options);
  return elastic ? describe(*elastic) : OptionTexts{{"strategy", options.strategy}};
}

OptionTexts texts_of(const TrainCommand& options, const Preprocess& input) {
  OptionTexts texts = describe(trainer_options(options, input));
  texts.merge(strategy_texts(options));
  return texts;
}

Result<Job> go_on(const TrainCommand& options, Checkpoint checkpoint) {
  Job job;
  LIMBER_ASSIGN(job.data, open_part(options.data, {.expected = checkpoint.info.classes}));
  LIMBER_TRY(check_same_data(checkpoint.info.options, *job.data, options.data));
  TrainCommand with = options;
  use_recorded(with.image, checkpoint.info.input);
  Preprocess input = checkpoint.info.input;
  input.normalisation = with.image.normalisation;
  LIMBER_TRY(check_same(checkpoint.info.options, texts_of(options, input)));
  fmt::print(stderr, "going on after step {} (epoch {}, batch {}) from {}\n", checkpoint.info.state.step,
             checkpoint.info.state.epoch + 1, checkpoint.info.state.batch, checkpoint.path);
  job.graph = std::move(checkpoint.graph);
  job.params = std::move(checkpoint.params);
  job.input = input;
  job.state = checkpoint.info.state;
  job.notes = std::move(checkpoint.info.notes);
  return job;
}

Result<Job> find_job(const TrainCommand& options, const RunFolder& folder) {
  if (!options.resume) {
    if (folder.has_checkpoint())
      return invalid("{} holds a training already; go on with --resume or choose another folder",
                     options.output);
    return begin(options);
  }
  std::vector<std::string> warnings;
  LIMBER_ASSIGN(auto checkpoint, folder.load_last(warnings));
  for (const std::string& warning : warnings) fmt::print(stderr, "warning: {}\n", warning);
  return checkpoint ? go_on(options, *std::move(checkpoint)) : begin(options);
}

// --- the training ---------------------------------------------------------------------------------------

OptionTexts environment_of(const TrainCommand& options, const TrainerOptions& trainer) {
  return {{"model", options.model},
          {"data", options.data},
          {"threads", fmt::format("{}", trainer.training.threads)},
          {"tune", options.tune == Tune::kOn    ? "on"
                   : options.tune == Tune::kOff ? "off"
                                                : "auto"},
          {"version", version_text()}};
}

// Random changes of the images make the same features wrong.
void disable_features(TrainerOptions& how) {
  const std::string_view random = how.mixup > 0 ? "--mixup" : random_change(how.augmentation);
  if (how.training.feature_bytes == 0 || random.empty()) return;
  spdlog::warn("features are not kept: {} makes an image different in every epoch", random);
  how.training.feature_bytes = 0;
}

// Says what becomes of --cache-features.
class FeatureTeller : public TrainerHook {
 public:
  explicit FeatureTeller(Progress& progress) : progress_(progress) {}

  Status on_step_end(TrainingSession& session, const StepReport& /*report*/) override {
    const FeatureState state = session.features();
    if (state == told_) return {};
    told_ = state;
    const std::string needed = show_bytes(static_cast<double>(session.feature_bytes()));
    if (state == FeatureState::kReady)
      say(fmt::format("the features of all images are known ({})", needed));
    else if (state == FeatureState::kNone)
      say("warning: there are no features to keep: nothing below what is trained is constant");
    else if (state == FeatureState::kTooLarge)
      say(fmt::format("warning: features are not kept: they need {}, --cache-features allows {}", needed,
                      show_bytes(static_cast<double>(session.options().feature_bytes))));
    return {};
  }

 private:
  void say(const std::string& line) {
    progress_.clear();
    fmt::print(stderr, "{}\n", line);
  }
  Progress& progress_;
  FeatureState told_ = FeatureState::kOff;
};

Status tell_plan(Trainer& trainer) {
  const bool whole = trainer.session().options().step.micro_batches == 1;
  LIMBER_ASSIGN(const Plan* plan, trainer.session().plan(whole ? Phase::kUpdate : Phase::kFinish));
  spdlog::info("training {} tensors, {} updates an epoch; planned memory {}",
               trainer.session().trained().size(), trainer.updates_per_epoch(),
               show_bytes(static_cast<double>(plan->memory_bytes())));
  return {};
}

}  // namespace

Result<TrainingSummary> run_training(TrainCommand& options, const TrainingStage& stage) {
  LIMBER_ASSIGN(const auto folder, RunFolder::open(options.output));
  if (options.batch == 0) options.batch = trainer_options(options, {}).training.step.batch;
  LIMBER_ASSIGN(Job job, find_job(options, *folder));
  LIMBER_ASSIGN(job.validation, open_validation(options, *job.data));
  TrainerOptions how = trainer_options(options, job.input);
  disable_features(how);
  Progress progress(how.epochs, stage.talk, stage.name);
  FeatureTeller features(progress);
  TrainerInputs inputs{.graph = std::move(job.graph),
                       .params = std::move(job.params),
                       .data = std::move(job.data),
                       .validation = std::move(job.validation),
                       .backends = make_backends(build_spec(options, false)),
                       .folder = folder.get(),
                       .state = job.state,
                       .environment = environment_of(options, how),
                       .hooks = {&features, &progress},
                       .stop = &stop_asked()};
  inputs.options = strategy_texts(options);
  std::unique_ptr<ElasticTrainer> elastic;
  std::optional<ElasticConsole> console;
  if (const auto choosing = elastic_options(options)) {
    LIMBER_ASSIGN(elastic, ElasticTrainer::create(*choosing, job.notes["elastic"]));
    inputs.hooks.insert(inputs.hooks.begin(), elastic.get());
    if (stage.talk == TrainingTalk::kAll) {
      console.emplace(*elastic, progress, options.output, stop_asked());
      inputs.hooks.insert(inputs.hooks.begin(), &*console);
    }
  }
  if (stage.hook != nullptr) inputs.hooks.push_back(stage.hook);
  catch_stop_signals();
  LIMBER_ASSIGN(const auto trainer, Trainer::create(std::move(inputs), how));
  LIMBER_TRY(tell_plan(*trainer));
  auto summary = trainer->run();
  progress.clear();
  for (const std::string& message : trainer->skip_messages()) fmt::print(stderr, "skipped: {}\n", message);
  return summary;
}

}  // namespace limber
