#include "jobs/train_job.h"

#include "base/show.h"
#include "elastic/strategy.h"
#include "jobs/train_hooks.h"
#include "jobs/train_start.h"
#include "jobs/version.h"

namespace limber {
namespace {

// A run that exists is opened before anything else is read; a new one when all else is known to be right.
struct Place {
  std::unique_ptr<RunFolder> folder;
  std::optional<Checkpoint> last;
};

Result<Place> look_at(const TrainJobOptions& options, const JobControl& control) {
  Place place;
  LIMBER_TRY(check_run_place(options.output));
  if (!is_run(options.output)) return place;
  LIMBER_ASSIGN(place.folder, RunFolder::open(options.output));
  if (!options.resume) {
    if (!place.folder->has_checkpoint()) return place;
    return invalid("{} holds a training already; resume it or choose another folder", options.output);
  }
  std::vector<std::string> warnings;
  LIMBER_ASSIGN(place.last, place.folder->load_last(warnings));
  for (const std::string& warning : warnings) control.note(NoteKind::kWarning, warning);
  return place;
}

const char* tune_name(Tune tune) { return tune == Tune::kOn ? "on" : tune == Tune::kOff ? "off" : "auto"; }

OptionTexts environment_of(const TrainJobOptions& options, int threads) {
  return {{"model", options.model},
          {"data", options.data},
          {"threads", fmt::format("{}", threads)},
          {"tune", tune_name(options.tune)},
          {"version", version_text()}};
}

void tell_features(const TrainerOptions& asked, const TrainerOptions& settled, const JobControl& control) {
  if (asked.training.feature_bytes == settled.training.feature_bytes) return;
  control.note(
      NoteKind::kWarning,
      fmt::format("features are not kept: {} makes an image different in every epoch", varies_images(asked)));
}

Status tell_plan(Trainer& trainer, const JobControl& control) {
  const bool whole = trainer.session().options().step.micro_batches == 1;
  LIMBER_ASSIGN(const Plan* plan, trainer.session().plan(whole ? Phase::kUpdate : Phase::kFinish));
  control.note(NoteKind::kInfo, fmt::format("training {} tensors, {} updates an epoch; planned memory {}",
                                            trainer.session().trained().size(), trainer.updates_per_epoch(),
                                            show_bytes(static_cast<double>(plan->memory_bytes()))));
  return {};
}

// The training itself, and those who tell about it.
Result<TrainResult> train(const TrainJobOptions& options, TrainStart start, RunFolder& folder,
                          const JobControl& control, const TrainWatch& watch, double began) {
  TrainSettings settings = settle(options);
  settings.trainer.input = start.input;
  tell_features(options.trainer, settings.trainer, control);
  TrainResult result{.images = static_cast<int64_t>(start.data->size()), .validated_on = start.validated_on};
  if (start.validation != nullptr) result.validation_images = static_cast<int64_t>(start.validation->size());
  FeatureTeller features(control);
  ProgressTeller progress(control, settings.trainer);
  TrainerInputs inputs{.graph = std::move(start.model.graph),
                       .params = std::move(start.model.params),
                       .data = std::move(start.data),
                       .validation = std::move(start.validation),
                       .backends = make_backends(build_spec(options, false)),
                       .folder = &folder,
                       .state = start.state,
                       .notes = start.notes,
                       .began = began,
                       .environment = environment_of(options, settings.trainer.training.threads),
                       .stop = control.stop};
  inputs.options = describe(settings);
  for (const auto& [name, value] : start.options) inputs.options[name] = value;
  std::unique_ptr<ElasticTrainer> elastic;
  std::optional<ElasticTeller> teller;
  if (settings.elastic) {
    LIMBER_ASSIGN(elastic, ElasticTrainer::create(*settings.elastic, start.notes["elastic"]));
    teller.emplace(control, *elastic, watch);
    inputs.hooks = {&*teller, elastic.get()};
  }
  FreezeTrainer freeze;
  if (settings.strategy == Strategy::kFreeze) inputs.hooks.push_back(&freeze);
  inputs.hooks.insert(inputs.hooks.end(), {&features, &progress});
  inputs.hooks.insert(inputs.hooks.end(), watch.hooks.begin(), watch.hooks.end());
  LIMBER_ASSIGN(const auto trainer, Trainer::create(std::move(inputs), settings.trainer));
  LIMBER_TRY(tell_plan(*trainer, control));
  LIMBER_ASSIGN(result.summary, trainer->run());
  result.time_limit_s = trainer->pace().limit();
  result.full_s = trainer->pace().whole();
  result.seconds = trainer->pace().spent();
  if (elastic != nullptr && elastic->summary().empty() && result.summary.ending == Ending::kFinished)
    control.note(NoteKind::kWarning, never_chose(result.summary.state.step, *elastic));
  for (const std::string& message : trainer->skip_messages())
    control.note(NoteKind::kWarning, "skipped: " + message);
  return result;
}

}  // namespace

Result<TrainResult> run_train(const TrainJobOptions& options, const JobControl& control,
                              const TrainWatch& watch) {
  const double began = now_seconds();
  LIMBER_TRY(check(options));
  LIMBER_ASSIGN(Place place, look_at(options, control));
  LIMBER_ASSIGN(TrainStart start, place.last ? go_on(options, *std::move(place.last), control)
                                             : begin_training(options, control));
  if (place.folder == nullptr) {
    LIMBER_ASSIGN(place.folder, RunFolder::open(options.output));
  }
  auto result = train(options, std::move(start), *place.folder, control, watch, began);
  if (!result.ok() && !place.folder->has_checkpoint()) RunFolder::discard(std::move(place.folder));
  return result;
}

}  // namespace limber
