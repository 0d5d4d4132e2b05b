#include "cli/elastify_work.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "cli/progress.h"
#include "cli/search_work.h"
#include "cli/signals.h"
#include "jobs/classifier.h"
#include "supernet/expand/expand.h"
#include "supernet/teach/elastify.h"
#include "train/evaluate.h"
#include "variant/measure.h"
#include "variant/variant_table.h"

namespace limber {
namespace {

constexpr std::string_view kTaught = "taught";  // the note with the seconds of teaching that are over
constexpr int64_t kJudgedImages = 1000;

// Alternatives leave half of the room to copies of the model's own blocks.
double limit_of_alternatives(const ElastifyCommand& options) { return 1 + (options.size_limit - 1) / 2; }

// Blocks and alternatives, timed on this machine.
Result<ElasticModel> expand_here(const ElastifyCommand& options, const Classifier& classifier,
                                 const std::vector<std::shared_ptr<Backend>>& backends, int threads) {
  ProgressLine line;
  ExpandOptions how{.operators = options.operators, .size_limit = limit_of_alternatives(options)};
  how.measure = [&](const Graph& graph, const std::shared_ptr<Parameters>& params) {
    return measure_latency(graph, params, backends, {.threads = threads, .seconds = 0.02});
  };
  how.progress = [&](std::string_view name, int done, int count) {
    line.show(
        fmt::format("making alternatives {} {}", progress_bar(static_cast<double>(done) / count), name));
  };
  auto model = expand(classifier.model.graph, classifier.model.params, how);
  line.clear();
  return model;
}

// The original first.
Result<std::vector<TunedVariant>> judge_tuned(const ElastifyCommand& options, bool labels,
                                              const std::vector<Variant>& tuned) {
  CommonOptions where = options;
  where.model = options.output;
  LIMBER_ASSIGN(const auto work, open_search(where));
  ImageSource source{.data = options.data, .labels = labels ? "data" : "original", .images = kJudgedImages};
  source.workers = options.workers;
  LIMBER_TRY(load_images(*work, source, where));
  std::vector<Variant> variants = {original_variant(work->folder.model)};
  variants.insert(variants.end(), tuned.begin(), tuned.end());
  LIMBER_ASSIGN(const std::vector<double> accuracies, work->evaluate(variants));
  std::vector<TunedVariant> judged;
  for (size_t i = 0; i < variants.size(); ++i) judged.push_back({variants[i], accuracies[i]});
  return judged;
}

// Are these the weights that the elastic model was made from?
Result<bool> same_weights(const ElasticModel& model, const Parameters& params) {
  for (const std::string& name : parameters_of(model.base)) {
    if (!params.contains(name)) return false;
    LIMBER_ASSIGN(const Tensor before, model.params->get(name));
    LIMBER_ASSIGN(const Tensor now, params.get(name));
    if (before.type() != now.type() || std::memcmp(before.raw(), now.raw(), now.bytes()) != 0) return false;
  }
  return true;
}

// What was found out about variants does not hold for alternatives that are taught further.
Status forget_variants(const std::string& folder) {
  if (!std::filesystem::exists(variants_in(folder))) return {};
  LIMBER_ASSIGN(const auto table, VariantTable::open(variants_in(folder)));
  return table->erase_all();
}

// The model as it was left, or a new one.
Result<ElasticFolder> find_model(const ElastifyCommand& options, const Classifier& classifier,
                                 const Dataset& data, const std::vector<std::shared_ptr<Backend>>& backends,
                                 int threads) {
  if (is_elastic(options.output)) {
    if (!options.resume)
      return invalid("{} holds an elastic model already; use --resume to go on with it, or another -o",
                     options.output);
    LIMBER_ASSIGN(ElasticFolder found, load_elastic(options.output));
    if (hash(found.model.base) != hash(classifier.model.graph))
      return invalid("{} was made from another model than {}; use another -o", options.output, options.model);
    LIMBER_ASSIGN(const bool same, same_weights(found.model, *classifier.model.params));
    if (!same)
      return invalid("{} was made from {} with other weights; use another -o", options.output, options.model);
    LIMBER_TRY(forget_variants(options.output));
    return found;
  }
  if (std::filesystem::exists(options.output + "/manifest.json"))
    return invalid("{} holds a model that is damaged or of another kind; remove it, or use another -o",
                   options.output);
  ElasticFolder made{options.output, {data.class_names(), classifier.input, {}}, {}};
  LIMBER_ASSIGN(made.model, expand_here(options, classifier, backends, threads));
  LIMBER_TRY(save_elastic(options.output, made.model, made.info));
  return made;
}

double taught_before(const ElasticInfo& info) {
  const auto note = info.notes.find(std::string(kTaught));
  double seconds = 0;
  if (note != info.notes.end())
    std::from_chars(note->second.data(), note->second.data() + note->second.size(), seconds);
  return std::max(seconds, 0.0);
}

// Where the data have the model's classes, labels help.
Result<bool> use_labels(const ElastifyCommand& options, const Graph& model, const Dataset& data) {
  if (options.labels == "original") return false;
  LIMBER_ASSIGN(const int64_t classes, count_classes(model));
  const auto found = static_cast<int64_t>(data.class_names().size());
  if (found == classes) {
    LIMBER_TRY(check_labels(data, classes));
    return true;
  }
  if (options.labels == "auto") return false;
  return invalid("{} has {} classes, the model {}; use --labels original", options.data, found, classes);
}

Result<LatencyTable> time_variants(const ElasticModel& model,
                                   const std::vector<std::shared_ptr<Backend>>& backends, int threads) {
  ProgressLine line;
  LatencyOptions how{.stop = &stop_asked()};
  how.measure.threads = threads;
  how.progress = [&](int done, int count) {
    line.show(fmt::format("timing variants {} {} of {}", progress_bar(static_cast<double>(done) / count),
                          done, count));
  };
  auto table = measure_latency_table(model, backends, how);
  line.clear();
  return table;
}

}  // namespace

Result<ElastifyOutcome> run_elastify(ElastifyCommand& options) {
  if (options.batch == 0) options.batch = 32;
  LIMBER_ASSIGN(const auto recorded, checkpoint_of(options.model));
  if (recorded) use_recorded(options.image, recorded->input);
  LIMBER_ASSIGN(const Classifier classifier, load_classifier(options, options.image));
  LIMBER_ASSIGN(const std::shared_ptr<const Dataset> data,
                open_dataset(options.data, {.split = Split::kTrain}));
  const BuildSpec spec = build_spec(options, false);
  const auto backends = make_backends(spec);
  catch_stop_signals();
  LIMBER_ASSIGN(ElasticFolder folder, find_model(options, classifier, *data, backends, thread_count(spec)));
  ProgressLine line;
  ElastifyOptions how;
  how.distill = {.batch = options.batch, .threads = thread_count(spec)};
  how.seconds = options.seconds;
  how.seconds_before = std::min(taught_before(folder.info), options.seconds);
  how.rate = options.rate;
  how.seed = options.seed;
  how.chosen = tuned_variants(folder.model, folder.info);
  how.input = classifier.input;
  how.augmentation = options.changes;
  LIMBER_ASSIGN(const bool labels, use_labels(options, classifier.model.graph, *data));
  how.tune = {.batch = options.batch, .threads = thread_count(spec), .label_share = labels ? 0.5 : 0};
  how.tune_rate = options.tune_rate;
  how.shares = options.shares;
  how.size_limit = options.size_limit;
  how.measure = [&] { return time_variants(folder.model, backends, thread_count(spec)); };
  how.on_bad_image = options.bad_images == "skip" ? OnBadImage::kSkip : OnBadImage::kFail;
  how.workers = options.workers;
  how.stop = &stop_asked();
  how.progress = [&](const ElastifyProgress& p) {
    line.show(fmt::format("{} {} {:.0f} of {:.0f} s  {} images  error {:.4f}", p.stage,
                          progress_bar(p.seconds / p.of_seconds), p.seconds, p.of_seconds, p.images,
                          p.error));
  };
  how.save = [&](double seconds, const std::vector<Variant>& chosen) {
    folder.info.notes[std::string(kTaught)] = fmt::format("{:.1f}", seconds);
    folder.info.notes[std::string(kTunedNote)] = tuned_note(chosen);
    return save_elastic(options.output, folder.model, folder.info);
  };
  const auto done = teach_alternatives(folder.model, data, backends, how);
  line.clear();
  if (!done.ok()) return done.status();
  ElastifyOutcome outcome{std::move(folder), done->seconds, {}, stop_asked().load()};
  if (!outcome.stopped && !done->chosen.empty()) {
    LIMBER_ASSIGN(outcome.judged, judge_tuned(options, labels, done->chosen));
  }
  return outcome;
}

}  // namespace limber
