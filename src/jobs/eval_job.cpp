#include "jobs/eval_job.h"

#include <algorithm>
#include <cmath>

#include "jobs/classifier.h"

namespace limber {
namespace {

constexpr int64_t kEvalBatch = 64;  // images, unless the job says another number

// The same images with the model's classes, of which the data has some.
class Renumbered : public Dataset {
 public:
  Renumbered(std::shared_ptr<const Dataset> data, std::vector<int64_t> labels, std::vector<std::string> names)
      : Dataset(std::move(names)), data_(std::move(data)), labels_(std::move(labels)) {}
  size_t size() const override { return data_->size(); }
  Result<Sample> get(size_t index) const override {
    LIMBER_ASSIGN(Sample sample, data_->get(index));
    sample.label = label(index);
    return sample;
  }
  int64_t label(size_t index) const override { return labels_[static_cast<size_t>(data_->label(index))]; }
  std::string name(size_t index) const override { return data_->name(index); }

 private:
  const std::shared_ptr<const Dataset> data_;
  const std::vector<int64_t> labels_;  // by class of the data
};

Result<std::shared_ptr<const Dataset>> renumber(std::shared_ptr<const Dataset> data,
                                                const std::vector<std::string>& names) {
  std::vector<int64_t> labels;
  for (const std::string& own : data->class_names()) {
    const auto found = std::find(names.begin(), names.end(), own);
    if (found == names.end())
      return invalid("class '{}' of the data is none of the {} that labels name ({} ...)", own, names.size(),
                     names.empty() ? "" : names[0]);
    labels.push_back(found - names.begin());
  }
  return std::shared_ptr<const Dataset>(
      std::make_shared<Renumbered>(std::move(data), std::move(labels), names));
}

std::string which_images(JudgedImages::Part part) {
  switch (part) {
    case JudgedImages::Part::kTest:
      return "test";
    case JudgedImages::Part::kTrain:
      return "training";
    case JudgedImages::Part::kHeldOut:
      return "held out";
    case JudgedImages::Part::kGiven:
    case JudgedImages::Part::kWhole:
      return "";
  }
  LIMBER_UNREACHABLE();
}

}  // namespace

Result<std::optional<EvalResult>> run_eval(const EvalJobOptions& options, const JobControl& control) {
  EvalJobOptions o = options;
  ClassNames expected;
  LIMBER_ASSIGN(const auto recorded, checkpoint_of(o.model));
  if (recorded) {
    use_recorded(o.image, recorded->input);
    if (o.classes.empty()) expected = recorded->classes;
  }
  LIMBER_ASSIGN(const Classifier classifier, load_classifier(o, kEvalBatch, o.image, control));
  const auto trained = recorded ? recorded->trained : std::nullopt;
  LIMBER_ASSIGN(JudgedData judged, open_judged(o.data, o.split, trained, expected));
  std::shared_ptr<const Dataset>& data = judged.data;
  if (!o.classes.empty()) {
    LIMBER_ASSIGN(data, renumber(data, o.classes));
  } else if (expected.empty()) {
    LIMBER_TRY(check_classes(classifier.model.graph, data->class_names(), o.data));
  }
  LIMBER_ASSIGN(const int64_t outputs, count_classes(classifier.model.graph));
  ClassificationSums sums(data->class_names(), static_cast<size_t>(outputs), o.worst);
  int64_t done = 0;
  const auto total = static_cast<double>(data->size());
  const BuildSpec spec = build_spec(o, false);
  EvaluationOptions evaluation{.batch = o.batch > 0 ? o.batch : kEvalBatch,
                               .threads = thread_count(spec),
                               .workers = o.workers,
                               .input = classifier.input,
                               .on_bad_image = o.on_bad_image};
  evaluation.each = [&](uint32_t sample, int64_t label, std::span<const float> logits) {
    sums.add(sample, label, logits);
    if (++done % evaluation.batch == 0)
      control.progress({.stage = "evaluating", .share = static_cast<double>(done) / total, .text = ""});
  };
  LIMBER_ASSIGN(const auto evaluator, Evaluator::create(classifier.model.graph, classifier.model.params,
                                                        make_backends(spec), data, evaluation));
  LIMBER_ASSIGN(const auto result, evaluator->run(control.stop));
  if (!result) return std::optional<EvalResult>();
  if (result->not_numbers > 0) {
    return invalid(
        "{} gives outputs that are not numbers (NaN) for {} of {} images: its weights are damaged, or "
        "images need another preparation than they get",
        o.model, result->not_numbers, result->images);
  }
  // Pixels that nobody said how to normalise may be none that the network knows. A hint: failing is no
  // failure.
  if (!recorded && !o.image.preset && !o.image.normalisation) {
    const auto verdict = evaluator->judge();
    if (verdict.ok() && verdict->doubtful) control.note(NoteKind::kWarning, verdict->advice);
  }
  ClassificationSums::Found found = std::move(sums).take();
  EvaluationRecord& record = found.record;
  for (size_t i = 0; i < found.worst.size(); ++i) record.worst[i].image = judged.data->name(found.worst[i]);
  record.model = o.model;
  record.data = o.data;
  record.which = which_images(judged.images.part);
  record.loss = result->loss;
  record.seconds = result->seconds;
  const double top5 = std::round(result->top5 * static_cast<double>(record.images));
  record.correct_top5 = std::min(record.images, static_cast<int64_t>(top5));
  LIMBER_ASSERT(record.problem().empty());
  return std::optional(EvalResult{*result, std::move(record), std::move(found.worst), std::move(judged)});
}

}  // namespace limber
