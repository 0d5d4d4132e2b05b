#include "jobs/port_start.h"

#include "data/subset.h"
#include "jobs/classifier.h"
#include "jobs/elastify_job.h"
#include "jobs/identity.h"
#include "jobs/train_settings.h"
#include "porting/filters_executor.h"
#include "porting/supernet_executor.h"
#include "supernet/teach/tune.h"

namespace limber {
namespace {

constexpr double kJudgedShare = 0.1;  // of each class, where the data have no test part
constexpr int64_t kFiltersEpochs = 3;

class Starter {
 public:
  Starter(const PortJobOptions& job, const JobControl& control)
      : job_(job), control_(control), start_(std::make_unique<PortStart>()) {}

  Result<std::unique_ptr<PortStart>> start() {
    const bool elastic = is_elastic(job_.model);
    const bool supernet = job_.by == PortBy::kSupernet || (job_.by == PortBy::kAuto && elastic);
    if (elastic && !supernet)
      return invalid(
          "{} is an elastic model, whose goals are kept by supernet; give the model it was made from",
          job_.model);
    start_->executor_name = port_by_name(supernet ? PortBy::kSupernet : PortBy::kFilters);
    Workshop& shop = start_->shop;
    const BuildSpec spec = build_spec(job_, false);
    shop.backends = make_backends(spec);
    shop.threads = thread_count(spec);
    shop.stop = control_.stop;
    shop.training = training();
    LIMBER_TRY(supernet ? start_supernet(elastic) : start_filters());
    return std::move(start_);
  }

 private:
  TrainerOptions training() const {
    TrainJobOptions how;
    static_cast<JobOptions&>(how) = job_;
    how.rate = job_.rate;
    how.trainer.augmentation = job_.changes;
    how.trainer.workers = job_.workers;
    how.trainer.on_bad_image = job_.on_bad_image;
    return settle(how).trainer;
  }

  std::string settings(int64_t epochs) const {
    return fmt::format("{} {} {} {} {} {} {} {} {}", start_->executor_name, epochs, job_.rate,
                       job_.evaluations, job_.step_images, job_.seed, job_.images, job_.batch, job_.data);
  }

  // --- by supernet ----------------------------------------------------------------------------------------

  Result<std::string> elastic_folder(bool elastic) const {
    if (elastic) return job_.model;
    ElastifyJobOptions make;
    static_cast<JobOptions&>(make) = job_;
    make.data = job_.data;
    make.output = job_.output + "/elastic";
    make.resume = is_elastic(make.output);
    make.budget = job_.budget;
    make.image = job_.image;
    make.changes = job_.changes;
    make.on_bad_image = job_.on_bad_image;
    make.workers = job_.workers;
    LIMBER_ASSIGN(const ElastifyOutcome made, run_elastify(make, control_));
    if (made.stopped) return error(Code::kResourceExhausted, "stopped");
    return make.output;
  }

  Status start_supernet(bool elastic) {
    JobOptions open = job_;
    LIMBER_ASSIGN(open.model, elastic_folder(elastic));
    LIMBER_ASSIGN(start_->work, open_elastic(open));
    ElasticWork& work = *start_->work;
    const ImageSource source{.data = job_.data, .images = job_.images, .workers = job_.workers};
    LIMBER_TRY(load_images(work, source, open, control_));
    start_->judged = work.judged;
    start_->card = {work.folder.info.input, work.folder.info.classes};
    start_->shop.training.input = work.folder.info.input;
    const int64_t epochs = job_.epochs.value_or(0);
    if (epochs > 0) LIMBER_TRY(open_supernet_data());
    start_->identity = fmt::format("{} {}", work.folder.fingerprint, settings(epochs));
    SupernetOptions how{.evaluations = job_.evaluations, .epochs = epochs, .seed = job_.seed};
    how.seeds = tuned_variants(work.folder.model, work.folder.info);
    how.evaluate = [this_work = &work, this_control = &control_](std::span<const Variant> variants) {
      return this_work->evaluate(variants, *this_control);
    };
    how.progress = [start = start_.get()](int done, int of) {
      start->doing = fmt::format("{} of {} variants", done, of);
      if (start->on_doing) start->on_doing();
    };
    LIMBER_ASSIGN(start_->executor, make_supernet_executor(work.folder.model, start_->shop, std::move(how)));
    return {};
  }

  Status open_supernet_data() {
    const ElasticInfo& info = start_->work->folder.info;
    LIMBER_ASSIGN(JudgedData judged, open_unseen(job_.data, info, info.classes, control_));
    LIMBER_ASSIGN(JudgedData seen, open_seen(job_.data, info.classes));
    if (judged.images.part == JudgedImages::Part::kHeldOut) {
      const HeldOut held = *read_held(info, kHeldNote);
      LIMBER_ASSIGN(const SplitDataset split, hold_out(seen.data, held.count, held.seed));
      seen.data = split.rest;
    }
    start_->shop.data = seen.data;
    return judge_some(judged);
  }

  // --- by filters -----------------------------------------------------------------------------------------

  Status start_filters() {
    ModelSource source = job_;
    source.open_batch = true;
    ImageOptions image = job_.image;
    LIMBER_ASSIGN(const auto recorded, checkpoint_of(job_.model));
    if (recorded) use_recorded(image, recorded->input);
    LIMBER_ASSIGN(const Classifier classifier, load_classifier(source, image, control_));
    start_->shop.training.input = classifier.input;
    LIMBER_TRY(open_filters_data(recorded ? recorded->classes : ClassNames()));
    LIMBER_TRY(check_classes(classifier.model.graph, start_->shop.data->class_names(), job_.data));
    start_->card = {classifier.input, start_->shop.data->class_names()};
    const int64_t epochs = job_.epochs.value_or(kFiltersEpochs);
    LIMBER_ASSIGN(const std::string identity, identity_of(classifier.model));
    start_->identity = identity + " " + settings(epochs);
    FiltersOptions how{.step_images = job_.step_images, .epochs = epochs, .seed = job_.seed};
    how.progress = [start = start_.get()](std::string_view what) {
      start->doing = what;
      if (start->on_doing) start->on_doing();
    };
    LIMBER_ASSIGN(start_->executor, make_filters_executor(classifier.model, start_->shop, std::move(how)));
    return {};
  }

  Status open_filters_data(const ClassNames& expected) {
    LIMBER_ASSIGN(JudgedData seen, open_seen(job_.data, expected));
    JudgedData judged = seen;
    if (seen.images.part == JudgedImages::Part::kTrain) {
      LIMBER_ASSIGN(judged.data, open_dataset(job_.data, {.split = Split::kTest,
                                                          .need_split = true,
                                                          .expected = seen.data->class_names()}));
      judged.images.part = JudgedImages::Part::kTest;
    } else {
      LIMBER_ASSIGN(const SplitDataset split, hold_out_per_class(seen.data, kJudgedShare, job_.seed));
      seen.data = split.rest;
      judged.data = split.held;
      judged.images.part = JudgedImages::Part::kHeldOut;
    }
    start_->shop.data = seen.data;
    LIMBER_TRY(judge_some(judged));
    start_->judged = judged.images;
    return {};
  }

  Status judge_some(JudgedData& judged) {
    const auto most = static_cast<size_t>(job_.images);
    if (judged.data->size() > most) {
      LIMBER_ASSIGN(const SplitDataset split, hold_out(judged.data, most, job_.seed));
      judged.data = split.held;
    }
    judged.images.count = static_cast<int64_t>(judged.data->size());
    start_->shop.judged = judged.data;
    return {};
  }

  const PortJobOptions& job_;
  const JobControl& control_;
  std::unique_ptr<PortStart> start_;
};

}  // namespace

Result<std::unique_ptr<PortStart>> start_porting(const PortJobOptions& options, const JobControl& control) {
  return Starter(options, control).start();
}

}  // namespace limber
