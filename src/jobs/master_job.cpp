#include "jobs/master_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "adapt/master/judge_master.h"
#include "adapt/master/statistics.h"
#include "adapt/master/train_master.h"
#include "base/clock.h"
#include "base/show.h"
#include "data/subset.h"
#include "jobs/classifier.h"
#include "jobs/judged_images.h"
#include "jobs/output.h"
#include "runtime/compile.h"
#include "supernet/expand/expand.h"
#include "train/evaluate.h"

namespace limber {
namespace {

constexpr size_t kMasterJudged = 2000;  // images: an interval of 1.3 points at 90 %
constexpr int64_t kMasterBatch = 64, kSeenBatch = 64;
// What judging takes, by one batch of the original: statistics of each network (their work adds up to about
// twice that of the original), of those it is compared with, and images to judge by.
constexpr double kJudgingPasses = 300;
constexpr double kMostJudging = 0.2;  // of the budget

class MasterMaker {
 public:
  MasterMaker(const MasterJobOptions& job, const JobControl& control) : job_(job), control_(control) {
    job_.open_batch = true;
    if (job_.batch == 0) job_.batch = kMasterBatch;
    const BuildSpec spec = build_spec(job_, false);
    original_.backends = model_.backends = make_backends(spec);
    original_.threads = model_.threads = thread_count(spec);
  }

  Result<MasterOutcome> run() {
    LIMBER_TRY(check_output());
    LIMBER_TRY(load());
    LIMBER_TRY(job_.resume && is_elastic(job_.output) ? go_on() : make());
    if (left() > 0) LIMBER_TRY(train());
    out_.stopped = control_.stop_asked();
    if (!out_.stopped) LIMBER_TRY(judge());
    LIMBER_TRY(save());
    out_.seconds = elapsed();
    return std::move(out_);
  }

 private:
  double elapsed() const { return now_seconds() - start_; }
  double left() const { return job_.budget - spent_before_ - elapsed(); }

  Status check_output() const {
    const std::string& output = job_.output;
    LIMBER_TRY(check_output_folder(output));
    std::error_code ignored;
    const bool there =
        std::filesystem::exists(output, ignored) && !std::filesystem::is_empty(output, ignored);
    if (!there || (is_elastic(output) && job_.resume)) return {};
    if (is_elastic(output))
      return invalid("{} holds an elastic model already; go on with it (resume), or give another output",
                     output);
    return invalid("{} is there and holds no elastic model; give an output that is not there", output);
  }

  Status load() {
    LIMBER_ASSIGN(const auto recorded, checkpoint_of(job_.model));
    if (recorded) use_recorded(job_.image, recorded->input);
    LIMBER_ASSIGN(classifier_, load_classifier(job_, job_.image, control_));
    original_.graph = classifier_.model.graph;
    original_.weights = classifier_.model.params;
    if (original_.graph.outputs().size() != 1)
      return invalid("{} has {} outputs; a master is made of a classifier", job_.model,
                     original_.graph.outputs().size());
    LIMBER_ASSIGN(const int64_t classes, count_classes(original_.graph));
    LIMBER_ASSIGN(data_, open_dataset(job_.data, {.split = Split::kTrain}));
    if (is_unsaid(job_.image)) tell_doubts(job_, *data_, classifier_, control_);
    return use_labels(classes);
  }

  // Where the data have the model's classes, labels help.
  Status use_labels(int64_t classes) {
    if (job_.learn_from == TuneTo::kOriginal) return {};
    const auto found = static_cast<int64_t>(data_->class_names().size());
    labels_ = found == classes;
    if (labels_) return check_labels(*data_, classes);
    if (job_.learn_from == TuneTo::kAuto) return {};
    return invalid("{} has {} classes, the model {}; learn from what the original says instead (learn_from)",
                   job_.data, found, classes);
  }

  Status make() {
    LIMBER_ASSIGN(WeightSnapshot weights, original_.weights->snapshot());
    model_.weights = std::make_shared<Parameters>(weights);
    LIMBER_ASSIGN(const adapt::Master master, adapt::make_master(original_.graph, *model_.weights));
    model_.graph = master.graph;
    out_.folder.path = job_.output;
    out_.folder.info.classes = data_->class_names();
    out_.folder.info.input = classifier_.input;
    LIMBER_TRY(hold_out_images());
    LIMBER_ASSIGN(out_.folder.model, without_alternatives(model_.graph, model_.weights));
    LIMBER_TRY(plan_time());
    return save();
  }

  Status go_on() {
    LIMBER_ASSIGN(out_.folder, load_elastic(job_.output));
    LIMBER_ASSIGN(const auto note, find_note<MasterNote>(out_.folder.info.notes));
    if (!note) return invalid("{} is an elastic model without gates; give another output", job_.output);
    out_.note = *note;
    Graph gated = original_.graph;
    LIMBER_TRY(insert_gates(gated).status());
    if (hash(gated) != hash(out_.folder.model.base))
      return invalid("{} was made from another model than {}; give another output", job_.output, job_.model);
    model_.graph = out_.folder.model.base;
    model_.weights = out_.folder.model.params;
    spent_before_ = note->spent_s;
    LIMBER_TRY(hold_out_images());
    return plan_time();
  }

  // What networks are judged by in the end: the test part of the data, or images that nothing here sees.
  Status hold_out_images() {
    const KeptFromLearning keep{.data = job_.data,
                                .output = job_.output,
                                .begun = is_elastic(job_.output),
                                .most = kMasterJudged,
                                .batch = job_.batch,
                                .seed = job_.seed};
    LIMBER_ASSIGN(judged_, keep_from_learning(keep, out_.folder.info, data_, control_));
    if (judged_.images.count > static_cast<int64_t>(kMasterJudged)) {
      LIMBER_ASSIGN(const SplitDataset some, hold_out(judged_.data, kMasterJudged, job_.seed));
      judged_.data = some.held;
      judged_.images.count = static_cast<int64_t>(kMasterJudged);
    }
    return {};
  }

  // How long judging will take, by how long the original takes.
  Status plan_time() {
    const CompileSettings how = batch_settings(original_.graph, kSeenBatch, original_.threads);
    LIMBER_ASSIGN(auto plan, compile(original_.graph, original_.weights, original_.backends, how));
    LIMBER_ASSIGN(const auto session, Session::create(std::move(plan)));
    LIMBER_TRY(session->run());
    const double begin = now_seconds();
    LIMBER_TRY(session->run());
    reserve_ = std::min(kJudgingPasses * (now_seconds() - begin), kMostJudging * job_.budget);
    if (spent_before_ > 0 || left() > reserve_) return {};
    return error(
        Code::kResourceExhausted,
        "a budget of {} is too small: loading took {}, judging takes about {}; give {:.0f} s or more",
        show_seconds(job_.budget), show_seconds(elapsed()), show_seconds(reserve_),
        std::ceil(2 * (elapsed() + reserve_)));
  }

  Status train() {
    adapt::MasterTraining how;
    how.batch = job_.batch;
    how.seconds_before = out_.note.trained_s;
    how.seconds = how.seconds_before + std::max(0.0, left() - reserve_);
    how.rate = job_.rate;
    how.label_share = labels_ ? 0.5 : 0;
    how.seed = job_.seed;
    how.input = classifier_.input;
    how.augmentation = job_.changes;
    how.on_bad_image = job_.on_bad_image;
    how.workers = job_.workers;
    how.stop = control_.stop;
    how.progress = [this](const adapt::MasterProgress& p) {
      control_.progress(
          {"training the master", std::min(1.0, p.seconds / p.of_seconds),
           fmt::format("{:.0f} of {:.0f} s  {} images  loss {:.4f} with all filters, {:.4f} with some",
                       p.seconds, p.of_seconds, p.images, p.whole, p.part)});
    };
    how.save = [this](double seconds) {
      out_.note.trained_s = seconds;
      out_.note.levels.clear();
      return save();
    };
    return adapt::train_master(model_, original_, data_, how).status();
  }

  Status judge() {
    control_.progress({"judging", -1, {}});
    LoaderOptions loading;
    loading.batch = std::min<int64_t>(kSeenBatch, static_cast<int64_t>(data_->size()));
    loading.seed = job_.seed;
    loading.workers = job_.workers;
    loading.threads = model_.threads;
    loading.drop_last = true;
    loading.augment = false;
    loading.input = classifier_.input;
    loading.on_bad_image = job_.on_bad_image;
    LIMBER_ASSIGN(const auto loader, Loader::make(data_, loading));
    adapt::MasterJudging how;
    how.shares = job_.shares;
    LIMBER_ASSIGN(how.seen, adapt::statistics_images(*loader));
    how.unseen = judged_.data;
    how.labels = labels_;
    how.batch = std::min<int64_t>(how.batch, judged_.images.count);
    how.input = classifier_.input;
    how.on_bad_image = job_.on_bad_image;
    how.workers = job_.workers;
    how.stop = control_.stop;
    auto levels = adapt::judge_master(model_, original_, how);
    out_.stopped = control_.stop_asked();
    if (out_.stopped) return {};
    LIMBER_ASSIGN(out_.note.levels, std::move(levels));
    out_.note.images = judged_.images.text();
    out_.note.count = judged_.images.count;
    return {};
  }

  Status save() {
    out_.note.spent_s = spent_before_ + elapsed();
    put_note(out_.folder.info.notes, out_.note);
    return save_elastic(job_.output, out_.folder.model, out_.folder.info);
  }

  MasterJobOptions job_;
  const JobControl& control_;
  const double start_ = now_seconds();
  Classifier classifier_;
  adapt::AdaptedModel model_, original_;
  std::shared_ptr<const Dataset> data_;  // that is learnt from
  JudgedData judged_;
  bool labels_ = false;
  double spent_before_ = 0;
  double reserve_ = 0;  // seconds for what comes after training
  MasterOutcome out_;
};

}  // namespace

Status check(const MasterJobOptions& job) {
  if (job.data.empty()) return invalid("data is missing: images to learn from");
  if (job.output.empty()) return invalid("output is missing: the folder of the master");
  if (!(job.budget > 0 && std::isfinite(job.budget)))
    return invalid("budget is {}; expected seconds, more than 0", job.budget);
  if (!(job.rate > 0 && job.rate <= 1))
    return invalid("rate is {}; expected above 0 and at most 1", job.rate);
  for (const double share : job.shares) {
    if (!(share > 0 && share <= 1))
      return invalid("a share of the filters is {}; expected above 0 and at most 1", share);
  }
  return {};
}

Result<MasterOutcome> run_master(const MasterJobOptions& job, const JobControl& control) {
  LIMBER_TRY(check(job));
  return MasterMaker(job, control).run();
}

}  // namespace limber
