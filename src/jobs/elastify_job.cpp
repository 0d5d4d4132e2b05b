#include "jobs/elastify_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>

#include "base/clock.h"
#include "base/show.h"
#include "data/subset.h"
#include "jobs/classifier.h"
#include "jobs/elastic_work.h"
#include "jobs/output.h"
#include "record/elastic_records.h"
#include "supernet/expand/expand.h"
#include "supernet/teach/elastify.h"
#include "train/evaluate.h"
#include "variant/measure.h"
#include "variant/variant_table.h"

namespace limber {
namespace {

constexpr size_t kMostJudged = 1000;        // images: an interval of two points at 90 %
constexpr size_t kLeastJudged = 50;         // images, however small the budget: 8 points at 90 %
constexpr double kJudgingShare = 0.1;       // of the budget, at most
constexpr double kLookingShare = 0.02;      // of the time of tuning, for accuracies that are shown meanwhile
constexpr double kAlternativesShare = 0.4;  // of the room; the rest is for copies of the model's own blocks
constexpr double kDiskSpeed = 100e6;  // bytes per second that saving is reckoned with before it was timed

// What was found out about variants whose alternatives have learnt since.
Status forget_variants(const ElasticFolder& folder) {
  if (!std::filesystem::exists(variants_in(folder.path))) return {};
  LIMBER_ASSIGN(const auto table, VariantTable::open(variants_in(folder.path), folder.model));
  return table->erase_refused();
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

// Bytes of parameters: of all alternatives, and of the model alone.
Result<std::pair<double, double>> parameter_bytes(const ElasticModel& model) {
  std::set<std::string> names;
  for (const Block& block : model.blocks) {
    for (const Alternative& alternative : block.alternatives) {
      for (std::string& name : parameters_of(alternative.graph)) names.insert(std::move(name));
    }
  }
  std::pair<double, double> bytes;
  const auto add = [&](const std::string& name, double& to) -> Status {
    LIMBER_ASSIGN(const TensorType type, model.params->type(name));
    to += static_cast<double>(type.bytes());
    return {};
  };
  for (const std::string& name : names) LIMBER_TRY(add(name, bytes.first));
  for (const std::string& name : parameters_of(model.base)) LIMBER_TRY(add(name, bytes.second));
  return bytes;
}

// Also asks for an end when a function says so.
class StopWhen : public JobObserver {
 public:
  StopWhen(const JobControl& control, std::function<bool()> over)
      : control_(control), over_(std::move(over)) {}
  JobControl control() { return {.observer = this, .stop = &stop_}; }
  void on_note(NoteKind kind, const std::string& text) override { control_.note(kind, text); }
  void on_progress(const JobProgress& progress) override {
    control_.progress(progress);
    if (control_.stop_asked() || over_()) stop_ = true;
  }

 private:
  const JobControl& control_;
  const std::function<bool()> over_;
  std::atomic<bool> stop_{false};
};

class Elastification {
 public:
  Elastification(const ElastifyJobOptions& job, const JobControl& control) : job_(job), control_(control) {
    if (job_.batch == 0) job_.batch = 32;
    const BuildSpec spec = build_spec(job_, false);
    backends_ = make_backends(spec);
    threads_ = thread_count(spec);
  }
  Result<ElastifyOutcome> run();

 private:
  Status check_output() const;
  Status load();
  Status read_answers();
  Status use_labels();
  Status go_on();
  Status hold_out_images();
  Status make();
  Result<ElasticModel> expand_here();
  Status plan_time();
  Status time_blocks_here();
  Status teach();
  Status recall();
  Status save();
  Status judge();
  Status load_judged();
  Result<std::vector<double>> accuracies(std::span<const Variant> variants, int64_t images,
                                         const std::atomic<bool>* stop = nullptr);

  bool teaches() const { return job_.budget > 0; }
  double elapsed() const { return now_seconds() - start_; }
  double left() const { return job_.budget - spent_before_ - elapsed(); }
  Status too_small(double needed, const std::string& why) const;
  int64_t judged_images() const;
  int64_t looked_at_images() const;

  ElastifyJobOptions job_;
  const JobControl& control_;
  const double start_ = now_seconds();
  std::vector<std::shared_ptr<Backend>> backends_;
  int threads_ = 1;
  Classifier classifier_;
  Answers answers_ = Answers::kClasses;
  std::shared_ptr<const Dataset> data_;        // that is learnt from
  std::shared_ptr<const Dataset> teach_data_;  // before that; null: data_
  JudgedData judged_;
  EvaluationSet images_;  // of these, once they are loaded
  std::unique_ptr<BlockRunner> runner_;
  bool labels_ = false;
  TeachingNote teaching_;
  double spent_before_ = 0;
  double reserve_ = 0;  // seconds for what comes after teaching
  std::optional<LatencyTable> table_;
  ElastifyOutcome out_;
};

Status Elastification::check_output() const {
  const std::string& output = job_.output;
  LIMBER_TRY(check_output_folder(output));
  if (is_elastic(output)) {
    if (job_.resume) return {};
    return invalid("{} holds an elastic model already; go on with it (resume), or give another output",
                   output);
  }
  std::error_code ignored;
  if (std::filesystem::exists(output + "/manifest.json", ignored))
    return invalid("{} holds a model that is damaged or of another kind; remove it, or give another output",
                   output);
  if (std::filesystem::exists(output, ignored) && !std::filesystem::is_empty(output, ignored))
    return invalid("{} is there and holds no elastic model; give an output that is not there", output);
  return {};
}

Status Elastification::load() {
  LIMBER_ASSIGN(const auto recorded, checkpoint_of(job_.model));
  if (recorded) use_recorded(job_.image, recorded->input);
  LIMBER_ASSIGN(classifier_, load_classifier(job_, job_.image, control_));
  LIMBER_TRY(read_answers().in(job_.model));
  LIMBER_ASSIGN(data_, open_dataset(job_.data, {.split = Split::kTrain}));
  if (!job_.teach_data.empty()) {
    LIMBER_ASSIGN(teach_data_, open_dataset(job_.teach_data, {.split = Split::kTrain}));
    if (teach_data_->size() < static_cast<size_t>(job_.batch))
      return invalid("{} has {} images to teach with, fewer than a batch of {}; give a smaller batch",
                     job_.teach_data, teach_data_->size(), job_.batch);
  }
  if (is_unsaid(job_.image) && answers_ == Answers::kClasses)
    tell_doubts(job_, *data_, classifier_, control_);
  return use_labels();
}

// What the model says, by one output.
Status Elastification::read_answers() {
  Graph& graph = classifier_.model.graph;
  const bool classes = graph.outputs().size() == 1 && count_classes(graph).ok();
  answers_ = job_.answers.value_or(classes ? Answers::kClasses : Answers::kValues);
  if (answers_ == Answers::kValues) {
    LIMBER_ASSIGN(graph, join_outputs(graph));
  }
  return check_answers(graph, answers_);
}

// Where the data have the model's classes, labels help.
Status Elastification::use_labels() {
  if (job_.tune_to == TuneTo::kOriginal) return {};
  if (answers_ != Answers::kClasses) {
    if (job_.tune_to == TuneTo::kAuto) return {};
    return invalid(
        "labels are classes of images, and the answers of {} are {}; tune to what the original "
        "says instead (tune_to)",
        job_.model, answers_name(answers_));
  }
  LIMBER_ASSIGN(const int64_t classes, count_classes(classifier_.model.graph));
  const auto found = static_cast<int64_t>(data_->class_names().size());
  labels_ = found == classes;
  if (labels_) return check_labels(*data_, classes);
  if (job_.tune_to == TuneTo::kAuto) return {};
  return invalid("{} has {} classes, the model {}; tune to what the original says instead (tune_to)",
                 job_.data, found, classes);
}

Status Elastification::go_on() {
  LIMBER_ASSIGN(out_.folder, load_elastic(job_.output));
  const ElasticModel& model = out_.folder.model;
  if (hash(model.base) != hash(classifier_.model.graph))
    return invalid("{} was made from another model than {}; give another output", job_.output, job_.model);
  LIMBER_ASSIGN(const bool same, same_weights(model, *classifier_.model.params));
  if (!same)
    return invalid("{} was made from {} with other weights; give another output", job_.output, job_.model);
  const std::string before = read_note<AnswersNote>(out_.folder.info.notes).answers;
  if (before != answers_name(answers_))
    return invalid("{} was begun for answers that are {}, not {}; give another output", job_.output, before,
                   answers_name(answers_));
  teaching_ = read_note<TeachingNote>(out_.folder.info.notes);
  spent_before_ = std::max(teaching_.spent_s, teaching_.taught_s);
  reserve_ = kJudgingShare * std::max(0.0, left());
  return hold_out_images();
}

// What variants are judged by in the end: the test part of the data, or images that nothing here sees.
Status Elastification::hold_out_images() {
  const KeptFromLearning keep{.data = job_.data,
                              .output = job_.output,
                              .begun = is_elastic(job_.output),
                              .most = kMostJudged,
                              .batch = job_.batch,
                              .seed = job_.seed};
  LIMBER_ASSIGN(judged_, keep_from_learning(keep, out_.folder.info, data_, control_));
  return {};
}

Status Elastification::too_small(double needed, const std::string& why) const {
  return error(Code::kResourceExhausted, "a budget of {} is too small: {}; give {:.0f} s or more",
               show_seconds(job_.budget), why, std::ceil(needed));
}

// Blocks and alternatives, timed on this machine.
Result<ElasticModel> Elastification::expand_here() {
  int done = 0, count = 1;
  bool over = false;
  ExpandOptions how{.operators = job_.operators};
  how.size_limit = 1 + kAlternativesShare * (job_.size_limit - 1);
  how.measure = [&](const Graph& graph, const std::shared_ptr<Parameters>& params) -> Result<double> {
    if (control_.stop_asked())
      return error(Code::kResourceExhausted, "stopped while alternatives were made; nothing was written");
    over = teaches() && left() <= 0;
    if (over) return error(Code::kResourceExhausted, "no time is left");
    return measure_latency(graph, params, backends_, {.threads = threads_, .seconds = 0.02});
  };
  how.progress = [&](std::string_view name, int now, int all) {
    done = now;
    count = all;
    control_.progress({"making alternatives", static_cast<double>(done) / count, name});
  };
  auto made = expand(classifier_.model.graph, classifier_.model.params, how);
  if (!over) return made;
  return too_small(
      2 * job_.budget * count / std::max(done, 1),
      fmt::format("it was over while alternatives were made and timed, {} of {} kinds", done, count));
}

Status Elastification::time_blocks_here() {
  if (table_) return {};
  StopWhen limited(control_, [this] { return left() <= 0; });
  auto table = time_blocks(out_.folder.model, backends_, threads_, "timing variants", limited.control());
  if (!table.ok() && !control_.stop_asked() && left() <= 0)
    return too_small(3 * elapsed(), "it was over while variants were timed");
  LIMBER_TRY(table.status());
  table_ = *std::move(table);
  return {};
}

int64_t Elastification::judged_images() const {
  const auto most = static_cast<int64_t>(kMostJudged);
  if (!table_) return std::min(judged_.images.count, most);
  // Loading an image and running the original and each tuned variant, one by one, is more than it takes.
  const double each = static_cast<double>(2 + job_.shares.size()) * table_->original();
  const auto affordable = static_cast<int64_t>(kJudgingShare * job_.budget / each);
  return std::min(judged_.images.count, std::clamp<int64_t>(affordable, kLeastJudged, most));
}

// For the accuracy over the range that is shown now and then while variants are tuned; 0: it would take too
// long.
int64_t Elastification::looked_at_images() const {
  if (!table_) return 0;
  const double each = static_cast<double>(1 + job_.shares.size()) * table_->original();
  const auto affordable = static_cast<int64_t>(kLookingShare * ElastifyOptions{}.judge_every / each);
  return affordable < static_cast<int64_t>(kLeastJudged) ? 0 : std::min(affordable, judged_images());
}

// How long judging and saving will take. Too small a budget is refused before anything is written.
Status Elastification::plan_time() {
  LIMBER_ASSIGN(const auto bytes, parameter_bytes(out_.folder.model));
  const double saving = 2 * bytes.second * job_.size_limit / kDiskSpeed;
  const double judging =
      static_cast<double>(judged_images()) * static_cast<double>(2 + job_.shares.size()) * table_->original();
  reserve_ = judging + saving;
  if (left() > reserve_) return {};
  return too_small(2 * (elapsed() + reserve_),
                   fmt::format("making and timing alternatives took {}, judging and saving take about {}",
                               show_seconds(elapsed()), show_seconds(reserve_)));
}

Status Elastification::make() {
  out_.folder.path = job_.output;
  if (answers_ == Answers::kClasses) {
    out_.folder.info.classes = data_->class_names();
  } else {
    put_note(out_.folder.info.notes, AnswersNote{std::string(answers_name(answers_))});
  }
  out_.folder.info.input = classifier_.input;
  LIMBER_TRY(hold_out_images());
  LIMBER_ASSIGN(out_.folder.model, expand_here());
  if (teaches()) {
    LIMBER_TRY(time_blocks_here());
    LIMBER_TRY(plan_time());
  }
  return save();
}

Status Elastification::save() {
  teaching_.spent_s = spent_before_ + elapsed();
  put_note(out_.folder.info.notes, teaching_);
  return save_elastic(job_.output, out_.folder.model, out_.folder.info);
}

Status Elastification::teach() {
  ElasticFolder& folder = out_.folder;
  ElastifyOptions how;
  how.seconds_before = teaching_.taught_s;
  how.seconds = how.seconds_before + std::max(0.0, left() - reserve_);
  how.distill = {.batch = job_.batch, .threads = threads_};
  how.rate = job_.rate;
  how.seed = job_.seed;
  how.chosen = tuned_chain(folder.model, folder.info);
  how.input = classifier_.input;
  how.augmentation = job_.changes;
  how.tune = {
      .batch = job_.batch, .threads = threads_, .label_share = labels_ ? 0.5 : 0, .answers = answers_};
  how.teach_data = teach_data_;
  how.tune_rate = job_.tune_rate;
  how.shares = job_.shares;
  how.size_limit = job_.size_limit;
  how.measure = [this]() -> Result<LatencyTable> {
    LIMBER_TRY(time_blocks_here());
    return *table_;
  };
  how.on_bad_image = job_.on_bad_image;
  how.workers = job_.workers;
  how.stop = control_.stop;
  how.progress = [&](const ElastifyProgress& p) {
    std::string text = fmt::format("{:.0f} of {:.0f} s  {} images  error {:.4f}", p.seconds, p.of_seconds,
                                   p.images, p.error);
    if (p.range_accuracy) text += fmt::format("  {:.1f} % over the range", 100 * *p.range_accuracy);
    control_.progress({p.stage, p.seconds / p.of_seconds, text});
  };
  how.save = [&](double seconds, std::span<const TimedVariant> chosen) {
    teaching_.taught_s = seconds;
    note_tuned(folder.model, chosen, teaching_);
    return save();
  };
  if (const int64_t images = looked_at_images(); images > 0)
    how.judge = [this, images](std::span<const Variant> variants) { return accuracies(variants, images); };
  LIMBER_ASSIGN(const Elastified done, teach_alternatives(folder.model, data_, backends_, how));
  out_.taught_s = done.seconds;
  for (const TimedVariant& one : done.chosen) out_.judged.push_back({one.variant, one.share});
  return {};
}

// What processes before this one did.
Status Elastification::recall() {
  out_.taught_s = teaching_.taught_s;
  for (const TimedVariant& one : tuned_chain(out_.folder.model, out_.folder.info))
    out_.judged.push_back({one.variant, one.share});
  return {};
}

// The original first.
Status Elastification::judge() {
  if (out_.judged.empty()) return {};
  out_.judged.insert(out_.judged.begin(), {original_variant(out_.folder.model), 1});
  std::vector<Variant> variants;
  for (const TunedVariant& one : out_.judged) variants.push_back(one.variant);
  LIMBER_ASSIGN(const std::vector<double> found, accuracies(variants, judged_images(), control_.stop));
  out_.images = judged_.images;
  out_.images.count = images_.count();
  std::vector<RangePoint> points;
  for (size_t i = 0; i < found.size(); ++i) {
    TunedVariant& one = out_.judged[i];
    one.accuracy = found[i];
    if (one.share > 0) points.push_back({one.share, one.accuracy});
  }
  out_.range_accuracy = range_accuracy(std::move(points));
  return {};
}

// Of the images that nothing here learns from so many, the same ones every time.
Result<std::vector<double>> Elastification::accuracies(std::span<const Variant> variants, int64_t images,
                                                       const std::atomic<bool>* stop) {
  LIMBER_TRY(load_judged());
  EvaluationSet some;
  for (size_t i = 0; i < images_.images.size() && some.count() < images; ++i) {
    some.images.push_back(images_.images[i]);
    some.labels.push_back(images_.labels[i]);
  }
  return runner_->score(variants, some, stop);
}

Status Elastification::load_judged() {
  if (runner_ != nullptr) return {};
  LoaderOptions how;
  how.batch = std::min<int64_t>(BlockRunnerOptions{}.batch, judged_.images.count);
  how.seed = job_.seed;
  how.workers = job_.workers;
  how.threads = threads_;
  how.augment = false;
  how.input = classifier_.input;
  how.on_bad_image = job_.on_bad_image;
  LIMBER_ASSIGN(const auto loader, Loader::make(judged_.data, how));
  LIMBER_ASSIGN(images_, load_evaluation_set(*loader, judged_images()));
  LIMBER_ASSIGN(runner_, BlockRunner::create(out_.folder.model, backends_,
                                             {.batch = how.batch, .threads = threads_, .answers = answers_}));
  if (labels_ || answers_ != Answers::kClasses) return {};
  return runner_->label_by_original(images_);
}

Result<ElastifyOutcome> Elastification::run() {
  LIMBER_TRY(check_output());
  LIMBER_TRY(load());
  bool time = teaches();
  if (is_elastic(job_.output)) {
    LIMBER_TRY(go_on());
    time = time && left() > 0;
  } else {
    LIMBER_TRY(make());
  }
  LIMBER_TRY(time ? teach() : recall());
  LIMBER_TRY(forget_variants(out_.folder));
  out_.stopped = control_.stop_asked();
  if (out_.stopped) {
    out_.judged.clear();
  } else {
    LIMBER_TRY(judge());
  }
  for (const Block& block : out_.folder.model.blocks) out_.alternatives += block.alternatives.size() - 1;
  LIMBER_ASSIGN(const auto bytes, parameter_bytes(out_.folder.model));
  out_.size_ratio = bytes.first / bytes.second;
  out_.seconds = elapsed();
  return std::move(out_);
}

}  // namespace

Status check(const ElastifyJobOptions& job) {
  const auto rate = [](const char* name, double value) {
    return value > 0 && value <= 1 ? Status()
                                   : invalid("{} is {}; expected above 0 and at most 1", name, value);
  };
  if (job.data.empty()) return invalid("data is missing: images to learn from");
  if (job.output.empty()) return invalid("output is missing: the folder of the elastic model");
  if (!(job.budget >= 0 && std::isfinite(job.budget)))
    return invalid("budget is {}; expected seconds, or 0 to teach nothing", job.budget);
  LIMBER_TRY(rate("rate", job.rate));
  LIMBER_TRY(rate("tune_rate", job.tune_rate));
  if (job.shares.empty()) return invalid("shares is empty; expected shares of the latency, such as 0.6");
  for (const double share : job.shares) LIMBER_TRY(rate("a share", share));
  if (!(job.size_limit >= 1 && std::isfinite(job.size_limit)))
    return invalid("size_limit is {}; expected 1 or more", job.size_limit);
  return {};
}

Result<ElastifyOutcome> run_elastify(const ElastifyJobOptions& job, const JobControl& control) {
  LIMBER_TRY(check(job));
  return Elastification(job, control).run();
}

}  // namespace limber
