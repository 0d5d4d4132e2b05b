#include "jobs/exits_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/show.h"
#include "data/subset.h"
#include "record/record_file.h"
#include "supernet/exits/exit_tuning.h"
#include "supernet/exits/subnet_exit.h"
#include "supernet/teach/tune.h"
#include "variant/variant_table.h"

namespace limber {
namespace {

constexpr const char* kExitsHeldNote = "exits held out";
constexpr size_t kMostHeld = 5000, kMostTest = 10000;  // images: a standard error of 0.4 points at 90 %
constexpr double kTimingSeconds = 0.1;                 // of each stage

// Of images in memory, so many at most.
size_t most_images(const Preprocess& input, size_t wanted) {
  constexpr size_t kMostBytes = size_t{1} << 30;  // of decoded images, which are all held at once
  const auto side = static_cast<size_t>(input.height) * static_cast<size_t>(input.width);
  const size_t bytes = side * static_cast<size_t>(input.channels) * sizeof(float);
  return std::clamp<size_t>(kMostBytes / std::max<size_t>(1, bytes), 1, wanted);
}

class ExitMaker {
 public:
  ExitMaker(const ExitsJobOptions& job, const JobControl& control) : job_(job), control_(control) {
    if (job_.batch == 0) job_.batch = 64;
  }
  Result<ExitsOutcome> run();

 private:
  Status load_images();
  Status load_calibration(const std::shared_ptr<const Dataset>& data);
  HeldOut held_out(const Dataset& data) const;
  Result<EvaluationSet> load_set(std::shared_ptr<const Dataset> data, size_t most);
  Status plan_time();
  Status find_blocks();
  Status make_exits();
  Result<ExitReport> find_subnet();
  ExitOptions exit_options() const;
  // `seconds`: that running the model took, without compiling it.
  Result<double> accuracy_of_model(const EvaluationSet& set, double* seconds = nullptr);
  Result<ExitOutcomes> judge(const EvaluationSet& set, const ExitOutcomes* timed);
  Status calibrate();
  Status keep_records();
  Status write_history();

  ElasticFolder& folder() { return work_->folder; }
  const ElasticModel& model() const { return work_->folder.model; }
  MeasureOptions timing() const { return {.threads = work_->threads, .seconds = kTimingSeconds}; }
  bool makes() const { return model().exits.empty() || job_.again; }

  ExitsJobOptions job_;
  const JobControl& control_;
  const double start_ = now_seconds();
  std::unique_ptr<ElasticWork> work_;
  std::shared_ptr<const Dataset> teaching_;  // what exits are taught on
  EvaluationSet held_, test_;                // the latter may be empty
  double teaching_s_ = 0;                    // what the budget leaves for it
  Variant blocks_;                           // whose exits these are
  bool made_ = false;                        // exits, now
  ExitsOutcome out_;
};

// --- images ---------------------------------------------------------------------------------------------

// What the folder says, as exits or tuned variants there have seen the other images; or a tenth, as far as
// that is needed.
HeldOut ExitMaker::held_out(const Dataset& data) const {
  const ElasticInfo& info = work_->folder.info;
  const std::optional<HeldOut> ours = read_held(info, kExitsHeldNote), before = read_held(info, kHeldNote);
  if (!makes() && ours) return *ours;
  if (job_.held > 0) return {data.size(), static_cast<size_t>(job_.held), job_.seed};
  if (before && before->size == data.size()) return *before;
  return hold_tenth(data, most_images(info.input, kMostHeld), job_.seed);
}

// In an order that mixes classes, always the same.
Result<EvaluationSet> ExitMaker::load_set(std::shared_ptr<const Dataset> data, size_t most) {
  LoaderOptions how;
  how.batch = std::min<int64_t>(job_.batch, static_cast<int64_t>(data->size()));
  how.augment = false;
  how.workers = job_.workers;
  how.threads = work_->threads;
  how.input = work_->folder.info.input;
  how.on_bad_image = job_.on_bad_image;
  LIMBER_ASSIGN(const auto loader, Loader::make(std::move(data), how));
  LIMBER_ASSIGN(EvaluationSet set, load_evaluation_set(*loader, static_cast<int64_t>(most)));
  if (job_.truth == Truth::kData) return set;
  LIMBER_ASSIGN(const auto runner, BlockRunner::create(model(), work_->backends,
                                                       {.batch = how.batch, .threads = work_->threads}));
  LIMBER_TRY(runner->label_by_original(set));
  return set;
}

// What the confidence is found on: images that are given, or part of the others.
Status ExitMaker::load_calibration(const std::shared_ptr<const Dataset>& data) {
  ElasticInfo& info = folder().info;
  if (!job_.calibration.empty()) {
    const OpenOptions open{.split = Split::kTrain, .expected = info.classes};
    LIMBER_ASSIGN(std::shared_ptr<const Dataset> given, open_dataset(job_.calibration, open));
    const size_t most = most_images(info.input, given->size());
    teaching_ = data;
    LIMBER_ASSIGN(held_, load_set(std::move(given), most));
    out_.held_images = {job_.calibration, JudgedImages::Part::kGiven, held_.count()};
    return {};
  }
  const HeldOut how = held_out(*data);
  if (how.size != data->size())
    return invalid(
        "{} has {} images, and had {} when exits were taught on it; give the same data, or make "
        "them anew (again)",
        job_.data, data->size(), how.size);
  LIMBER_ASSIGN(const SplitDataset split, hold_out(data, how.count, how.seed));
  teaching_ = split.rest;
  write_held(info, kExitsHeldNote, how);
  LIMBER_ASSIGN(held_, load_set(split.held, how.count));
  out_.held_images = {job_.data, JudgedImages::Part::kHeldOut, held_.count()};
  return {};
}

Status ExitMaker::load_images() {
  OpenOptions open{.split = Split::kTrain, .expected = folder().info.classes};
  LIMBER_ASSIGN(std::shared_ptr<const Dataset> data, open_dataset(job_.data, open));
  LIMBER_TRY(load_calibration(data));
  open.split = Split::kTest;
  open.need_split = true;
  auto test = open_dataset(job_.data, open);
  if (!test.ok()) return test.status().code() == Code::kNotFound ? Status() : test.status();
  LIMBER_ASSIGN(test_, load_set(*std::move(test), most_images(folder().info.input, kMostTest)));
  out_.test_images = {job_.data, JudgedImages::Part::kTest, test_.count()};
  return {};
}

// --- exits ----------------------------------------------------------------------------------------------

Result<double> ExitMaker::accuracy_of_model(const EvaluationSet& set, double* seconds) {
  const int64_t batch = set.images[0].shape().dim(0);
  LIMBER_ASSIGN(const auto runner,
                BlockRunner::create(model(), work_->backends, {.batch = batch, .threads = work_->threads}));
  const Variant original = original_variant(model());
  const EvaluationSet first{{set.images[0]}, {set.labels[0]}};  // compiles
  LIMBER_TRY(runner->count_correct(std::span(&original, 1), first, control_.stop).status());
  const double start = now_seconds();
  LIMBER_ASSIGN(const auto correct, runner->count_correct(std::span(&original, 1), set, control_.stop));
  if (seconds != nullptr) *seconds = now_seconds() - start;
  return static_cast<double>(correct[0]) / static_cast<double>(set.count());
}

// What is left of the budget for teaching: loading is over, and the model's own run over the images held out
// says what judging will take. Runs of single images are slower than those of batches: twice is reckoned.
Status ExitMaker::plan_time() {
  double seconds = 0;
  LIMBER_ASSIGN(out_.original, accuracy_of_model(held_, &seconds));
  const double each = seconds / static_cast<double>(held_.count());
  constexpr double kPasses = 2;        // over a set: the model, and all of its exits
  constexpr double kRunsPerImage = 6;  // with exits and without, several times
  const auto judged = static_cast<double>(held_.count() + test_.count());
  const auto timed = static_cast<double>(std::min<int64_t>(job_.images, held_.count() + test_.count()));
  const double after =
      each * (kPasses * judged + 2 * kRunsPerImage * timed) + 4 * kTimingSeconds * (job_.count + 1);
  const double spent = now_seconds() - start_;
  teaching_s_ = job_.budget - spent - after;
  if (teaching_s_ > 0 || !makes() || job_.blocks == ExitBlocks::kSubnet) return {};
  return error(Code::kResourceExhausted,
               "a budget of {} is too small: loading took {}, judging takes about {}; give {:.0f} s or more",
               show_seconds(job_.budget), show_seconds(spent), show_seconds(after),
               std::ceil(2 * (spent + after)));
}

ExitOptions ExitMaker::exit_options() const {
  ExitOptions how{.max_exits = job_.count, .storage = job_.storage, .max_drop = job_.max_drop};
  how.teaching.trainer.batch = std::min<int64_t>(job_.batch, static_cast<int64_t>(teaching_->size()));
  how.teaching.trainer.threads = work_->threads;
  if (job_.truth == Truth::kOriginal) how.distill = 1;
  how.teaching.seconds = teaching_s_;
  how.teaching.rate = job_.rate;
  how.teaching.seed = job_.seed;
  how.teaching.input = work_->folder.info.input;
  how.teaching.augmentation.flip = job_.flip;
  how.teaching.augmentation.padding = job_.padding;
  how.tune = job_.blocks == ExitBlocks::kTuned;
  how.tuning_rate = job_.tuning_rate;
  how.order = job_.order;
  how.kept_weights = job_.kept_weights;
  how.teaching.trainer.dropout = job_.dropout;
  how.teaching.on_bad_image = job_.on_bad_image;
  how.teaching.workers = job_.workers;
  how.teaching.stop = control_.stop;
  how.progress = [this](ExitPhase phase, const ExitProgress& p) {
    const std::string text = phase == ExitPhase::kTiming
                                 ? ""
                                 : fmt::format("{:.0f} of {:.0f} s  {} images  loss {:.4f}", p.seconds,
                                               p.of_seconds, p.images, p.loss);
    control_.progress({phase_name(phase), p.seconds / p.of_seconds, text});
  };
  return how;
}

Status ExitMaker::find_blocks() {
  blocks_ = original_variant(model());
  const std::string where = fmt::format("{}: exits; make them anew (again)", folder().path);
  const auto note = find_note<ExitsNote>(folder().info.notes);
  if (!note.ok()) return note.status().in(where);
  if (!*note) return {};
  auto blocks = parse_variant(model(), (*note)->blocks);
  if (!blocks.ok()) return blocks.status().in(where);
  blocks_ = *std::move(blocks);
  return {};
}

// The best of those that were tuned when the model became elastic.
Result<ExitReport> ExitMaker::find_subnet() {
  const std::vector<Variant> subnets = tuned_variants(model(), folder().info);
  if (subnets.empty())
    return invalid("{} has no tuned subnet; give 'limber elastify' more time, and a share of 40% to tune for",
                   folder().path);
  return add_subnet_exit(folder().model, subnets, held_, work_->backends, timing(), job_.max_drop);
}

// Unless the folder has some.
Status ExitMaker::make_exits() {
  if (!makes()) return find_blocks();
  made_ = true;
  LIMBER_ASSIGN(out_.report, job_.blocks == ExitBlocks::kSubnet ? find_subnet()
                                                                : add_exits(folder().model, teaching_, held_,
                                                                            work_->backends, exit_options()));
  out_.stopped = out_.report.stopped;
  blocks_ = out_.report.variant;
  put_note(folder().info.notes, ExitsNote{print(model(), blocks_)});
  if (model().exits.empty()) return error(Code::kResourceExhausted, "stopped before there was an exit");
  return save_elastic(folder().path, model(), folder().info);
}

// --- confidence -----------------------------------------------------------------------------------------

// What endings say about the images of a set. Times are those of `timed`, when it is given.
Result<ExitOutcomes> ExitMaker::judge(const EvaluationSet& set, const ExitOutcomes* timed) {
  const int64_t batch = set.images[0].shape().dim(0);
  LIMBER_ASSIGN(const auto runner, ExitRunner::create(model(), blocks_, work_->backends,
                                                      {.batch = batch, .threads = work_->threads}));
  out_.exits.clear();
  for (size_t e = 0; e + 1 < runner->endings(); ++e) out_.exits.push_back(runner->exit(e));
  LIMBER_ASSIGN(ExitOutcomes outcomes, judge_exits(*runner, set));
  if (timed == nullptr) {
    LIMBER_TRY(time_exits(model(), blocks_, *runner, work_->backends, timing(), outcomes));
    return outcomes;
  }
  for (size_t e = 0; e < outcomes.endings.size(); ++e) {
    outcomes.endings[e].seconds = timed->endings[e].seconds;
    outcomes.endings[e].forced_seconds = timed->endings[e].forced_seconds;
  }
  return outcomes;
}

Status ExitMaker::calibrate() {
  LIMBER_ASSIGN(out_.held, judge(held_, nullptr));
  // The model may know the images held out from its own training, which tuned blocks have forgotten.
  const double end = outcome_at(out_.held, 0).accuracy;
  out_.point = calibrate_exits(out_.held, std::min(out_.original, end) - job_.max_drop);
  out_.variant = blocks_;
  out_.variant.confidence = out_.point.confidence;
  const bool tested = !test_.images.empty();
  if (tested) {
    LIMBER_ASSIGN(out_.test_original, accuracy_of_model(test_));
    LIMBER_ASSIGN(out_.test, judge(test_, &out_.held));
    out_.test_point = outcome_at(out_.test, out_.point.confidence);
  }
  LIMBER_ASSIGN(out_.real, measure_real_latency(model(), out_.variant, tested ? test_ : held_, job_.images,
                                                work_->backends, work_->threads));
  LIMBER_ASSIGN(out_.storage, exit_storage(model()));
  LIMBER_ASSIGN(out_.tuned_storage, tuned_storage(model()));
  return {};
}

// What is known of variants with exits that are not there any more.
Status forget_exits(VariantTable& table) {
  LIMBER_ASSIGN(const auto index, table.index());
  for (const VariantGroup& group : index->groups()) {
    if (!is_exits_context(group.context)) continue;
    for (const VariantRecord& record : index->all(group)) LIMBER_TRY(table.erase(group, record.variant));
  }
  return table.erase_refused();
}

// The variant with the confidence, one for each exit that always ends it, and the model to compare them with.
Status ExitMaker::keep_records() {
  LIMBER_ASSIGN(const auto table, VariantTable::open(variants_in(folder().path), model()));
  if (made_) LIMBER_TRY(forget_exits(*table));
  std::vector<VariantRecord> records;
  const auto add = [&](const Variant& variant, double predicted, double accuracy) -> Status {
    LIMBER_ASSIGN(const GraphCost cost, cost_of(model(), variant));
    records.push_back({.group = {exits_context(work_->threads), held_.name()},
                       .variant = variant,
                       .predicted_s = predicted,
                       .accuracy = accuracy,
                       .images = held_.count(),
                       .parameter_bytes = cost.parameter_bytes,
                       .flops = cost.flops});
    return {};
  };
  LIMBER_TRY(add(out_.variant, out_.point.seconds, out_.point.accuracy));
  records.back().measured_s = out_.real.seconds;
  for (size_t e = 0; e < out_.exits.size(); ++e) {
    Variant forced = blocks_;
    forced.exit = out_.exits[e];
    const ExitOutcomes::Ending& ending = out_.held.endings[e];
    LIMBER_TRY(add(forced, ending.forced_seconds, share_correct(ending)));
  }
  const Variant original = original_variant(model());
  if (out_.variant != original) LIMBER_TRY(add(original, out_.full_seconds(), out_.original));
  return table->put(records);
}

Status ExitMaker::write_history() {
  ExitsRecord record{.judged = work_->judgement(out_.held_images),
                     .max_drop = job_.max_drop,
                     .storage = job_.storage,
                     .budget_s = job_.budget,
                     .made = made_};
  record.variant = print(model(), out_.variant);
  record.mean_s = out_.point.seconds;
  record.accuracy = out_.point.accuracy;
  record.original_accuracy = out_.original;
  record.measured_s = out_.real.seconds;
  record.original_s = out_.real.full_seconds;
  for (size_t e = 0; e < out_.exits.size(); ++e) {
    const ExitOutcomes::Ending& ending = out_.held.endings[e];
    record.exits.push_back({model().exits[static_cast<size_t>(out_.exits[e])].name, share_correct(ending),
                            out_.point.shares[e], ending.forced_seconds});
  }
  if (out_.test_images.count > 0) {
    record.test_accuracy = out_.test_point.accuracy;
    record.test_original_accuracy = out_.test_original;
  }
  record.seconds = now_seconds() - start_;
  return append_history(folder().path, record_line(record));
}

Result<ExitsOutcome> ExitMaker::run() {
  LIMBER_ASSIGN(work_, open_elastic(job_));
  LIMBER_ASSIGN(const Answers answers, answers_in(folder().info));
  if (answers != Answers::kClasses)
    return invalid("the answers of {} are {}; only a classifier can have exits", folder().path,
                   answers_name(answers));
  LIMBER_TRY(load_images());
  LIMBER_TRY(plan_time());
  LIMBER_TRY(make_exits());
  LIMBER_TRY(calibrate());
  LIMBER_TRY(keep_records());
  LIMBER_TRY(write_history());
  out_.folder = std::move(work_->folder);
  return std::move(out_);
}

}  // namespace

ExitsOutcome::Forced ExitsOutcome::within(double seconds) const {
  const size_t best = forced_exit(held, seconds);
  Forced forced{variant, held.endings[best].forced_seconds};
  forced.variant.confidence = 0;
  if (best < exits.size()) forced.variant.exit = exits[best];
  return forced;
}

Status check(const ExitsJobOptions& job) {
  const auto in_unit = [](const char* name, double value, bool zero) {
    const bool fits = value <= 1 && (zero ? value >= 0 : value > 0);
    return fits ? Status()
                : invalid("{} is {}; expected {} and at most 1", name, value, zero ? "0 or more" : "above 0");
  };
  if (job.data.empty()) return invalid("data is missing: images that exits are taught on");
  if (!(job.budget > 0 && std::isfinite(job.budget)))
    return invalid("budget is {}; expected seconds above 0", job.budget);
  LIMBER_TRY(in_unit("max_drop", job.max_drop, true));
  LIMBER_TRY(in_unit("storage", job.storage, false));
  LIMBER_TRY(in_unit("rate", job.rate, false));
  LIMBER_TRY(in_unit("tuning_rate", job.tuning_rate, false));
  LIMBER_TRY(in_unit("kept_weights", job.kept_weights, false));
  LIMBER_TRY(in_unit("flip", job.flip, true));
  if (!(job.dropout >= 0 && job.dropout < 1))
    return invalid("dropout is {}; expected 0 or more and less than 1", job.dropout);
  if (job.order != TuningOrder::kTogether && job.blocks != ExitBlocks::kTuned)
    return invalid("an order is for blocks that are tuned; give blocks: tuned, or no order");
  if (job.count < 1) return invalid("count is {}; expected 1 exit or more", job.count);
  if (job.held < 0) return invalid("held is {}; expected 0 or more images", job.held);
  if (job.images < 1) return invalid("images is {}; expected 1 or more", job.images);
  if (job.padding < 0) return invalid("padding is {}; expected 0 or more pixels", job.padding);
  return check_folder(job.model);
}

Result<ExitsOutcome> run_exits(const ExitsJobOptions& job, const JobControl& control) {
  LIMBER_TRY(check(job));
  return ExitMaker(job, control).run();
}

}  // namespace limber
