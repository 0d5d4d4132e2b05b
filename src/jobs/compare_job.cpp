#include "jobs/compare_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/parallel.h"
#include "data/loader.h"
#include "jobs/classifier.h"
#include "jobs/measured_step.h"
#include "ops/op_def.h"
#include "runtime/timing.h"
#include "train/evaluate.h"
#include "variant/elastic_folder.h"

namespace limber {
namespace {

// A model that is loaded, with what it knows of its images.
struct Loaded {
  Classifier classifier;
  ClassNames classes;               // empty: unknown
  std::optional<ElasticInfo> info;  // of an elastic model
  std::optional<TrainingSplit> trained;
  bool unsaid = false;  // how its images must be normalised
};

Result<Loaded> load_variant(const CompareJobOptions::Side& side) {
  LIMBER_ASSIGN(const ElasticFolder folder, load_elastic(side.model));
  Variant variant = original_variant(folder.model);
  if (!side.variant.empty()) {
    LIMBER_ASSIGN(variant, parse_variant(folder.model, side.variant));
  }
  Loaded loaded{.classes = folder.info.classes, .info = folder.info};
  LIMBER_ASSIGN(loaded.classifier.model.graph, materialize(folder.model, variant));
  loaded.classifier.model.params = folder.model.params;
  loaded.classifier.input = folder.info.input;
  return loaded;
}

Result<Loaded> load_side(const CompareJobOptions& job, const CompareJobOptions::Side& side,
                         const JobControl& control) {
  if (is_elastic(side.model)) return load_variant(side);
  Loaded loaded;
  ImageOptions image = job.image;
  LIMBER_ASSIGN(const auto recorded, checkpoint_of(side.model));
  if (recorded) {
    use_recorded(image, recorded->input);
    loaded.classes = recorded->classes;
    loaded.trained = recorded->trained;
  }
  loaded.unsaid = is_unsaid(image);
  LIMBER_ASSIGN(loaded.classifier,
                load_classifier({.model = side.model, .batch = 0, .dims = {}, .shapes = {}}, image, control));
  return loaded;
}

JobOptions options_of(const CompareJobOptions& job, int64_t batch) {
  JobOptions options;
  static_cast<EngineOptions&>(options) = job;
  options.batch = batch;
  return options;
}

// The best class of each image, in the loader's order.
Result<std::vector<int64_t>> classify(const CompareJobOptions& job, const Loaded& loaded,
                                      const std::string& name, const std::shared_ptr<const Dataset>& data,
                                      int64_t count, std::vector<int64_t>& labels,
                                      const JobControl& control) {
  LIMBER_ASSIGN(auto plan, build(loaded.classifier.model, options_of(job, job.batch), false, control));
  LIMBER_ASSIGN(const auto session, Session::create(std::move(plan)));
  LoaderOptions how;
  how.batch = session->input(0).shape().dim(0);
  how.seed = job.seed;
  how.workers = job.workers;
  how.threads = thread_count({.threads = job.threads});
  how.augment = false;
  how.input = loaded.classifier.input;
  if (loaded.unsaid) {
    const ThreadScope threads(how.threads);
    tell_doubts(name, *data, how.input, *session, control);
  }
  LIMBER_ASSIGN(const auto loader, Loader::make(data, how));
  LIMBER_TRY(loader->start_epoch(0));
  std::vector<int64_t> found;
  labels.clear();
  while (static_cast<int64_t>(found.size()) < count) {
    if (control.stop_asked()) return error(Code::kResourceExhausted, "stopped while images were judged");
    LIMBER_ASSIGN(const Batch batch, loader->next());
    if (batch.size == 0) break;
    std::memcpy(session->input(0).raw(), batch.images.raw(), batch.images.bytes());
    LIMBER_TRY(session->run());
    const Tensor output = session->output(0);
    const auto all = output.data<float>();
    const size_t classes = all.size() / static_cast<size_t>(output.shape().dim(0));
    for (size_t i = 0; i < static_cast<size_t>(batch.size) && static_cast<int64_t>(found.size()) < count;
         ++i) {
      const auto row = all.subspan(i * classes, classes);
      if (std::any_of(row.begin(), row.end(), [](float x) { return std::isnan(x); }))
        return error(Code::kInternal, "{}: what it says to {} is not a number", name,
                     data->name(batch.samples[i]));
      found.push_back(std::max_element(row.begin(), row.end()) - row.begin());
      labels.push_back(batch.labels.data<int64_t>()[i]);
    }
    control.progress({"judging", static_cast<double>(found.size()) / static_cast<double>(count), name});
  }
  return found;
}

// Of data that was held out from an elastic model or a training, what was held out; of any other what is
// given.
Result<JudgedData> open_data(const CompareJobOptions& job, const Loaded& a, const Loaded& b,
                             const JobControl& control) {
  const ClassNames& expected = a.classes.empty() ? b.classes : a.classes;
  if (job.split == Split::kTrain && (a.info || b.info)) return open_seen(job.data, expected);
  if (a.info || b.info) return open_unseen(job.data, a.info ? *a.info : *b.info, expected, control);
  LIMBER_ASSIGN(JudgedData judged,
                open_judged(job.data, job.split, a.trained ? a.trained : b.trained, expected));
  const bool apart = a.trained && b.trained && !(*a.trained == *b.trained);
  if (apart && judged.images.part == JudgedImages::Part::kHeldOut)
    control.note(NoteKind::kWarning, "the second model held out other images: it learnt from some of these");
  return judged;
}

Status judge(const CompareJobOptions& job, const Loaded& a, const Loaded& b, CompareOutcome& out,
             const JobControl& control) {
  LIMBER_ASSIGN(const JudgedData opened, open_data(job, a, b, control));
  out.images = opened.images;
  if (job.images > 0) out.images.count = std::min(out.images.count, job.images);
  std::vector<int64_t> labels;
  const int64_t count = out.images.count;
  LIMBER_ASSIGN(const auto by_a, classify(job, a, out.a.name, opened.data, count, labels, control));
  LIMBER_ASSIGN(const auto by_b, classify(job, b, out.b.name, opened.data, count, labels, control));
  const auto classes = static_cast<int64_t>(opened.data->class_names().size());
  out.labelled = classes == out.a.classes && classes == out.b.classes;
  if (!out.labelled)
    control.note(NoteKind::kWarning,
                 fmt::format("{} has {} classes, the models {} and {}: nobody knows what is right", job.data,
                             classes, out.a.classes, out.b.classes));
  for (size_t i = 0; i < labels.size(); ++i) {
    const bool right_a = by_a[i] == labels[i], right_b = by_b[i] == labels[i];
    out.same += by_a[i] == by_b[i] ? 1 : 0;
    out.both += right_a && right_b ? 1 : 0;
    out.only_a += right_a && !right_b ? 1 : 0;
    out.only_b += right_b && !right_a ? 1 : 0;
  }
  if (!out.labelled) return {};
  const auto all = static_cast<double>(labels.size());
  out.a.accuracy = static_cast<double>(out.both + out.only_a) / all;
  out.b.accuracy = static_cast<double>(out.both + out.only_b) / all;
  return {};
}

Result<ComparedModel> describe(const CompareJobOptions::Side& side, const Loaded& loaded, const Plan& plan) {
  ComparedModel model{.name = side.variant.empty() ? side.model : side.model + " " + side.variant};
  LIMBER_ASSIGN(model.classes, count_classes(loaded.classifier.model.graph));
  LIMBER_ASSIGN(const GraphCost cost, cost_of(plan.graph));
  model.flops = cost.flops;
  for (const std::string& name : parameters_of(loaded.classifier.model.graph)) {
    LIMBER_ASSIGN(const TensorType type, loaded.classifier.model.params->type(name));
    model.parameters += type.shape.elements();
    model.parameter_bytes += type.bytes();
  }
  model.memory_bytes = plan.memory_bytes();
  return model;
}

}  // namespace

double CompareOutcome::gain() const {
  return static_cast<double>(only_b - only_a) / static_cast<double>(std::max<int64_t>(1, images.count));
}

// Of a difference of two shares of the same images only those count on which the two differ.
Interval CompareOutcome::gain_95() const {
  const auto n = static_cast<double>(std::max<int64_t>(1, images.count));
  const auto differ = static_cast<double>(only_a + only_b);
  // A half more on each side, as is usual where there may be none at all.
  const double reach = 1.96 * std::sqrt(std::max(0.0, (differ + 1) / n - gain() * gain()) / n);
  return {std::max(-1.0, gain() - reach), std::min(1.0, gain() + reach)};
}

Status check(const CompareJobOptions& job) {
  for (const CompareJobOptions::Side* side : {&job.a, &job.b}) {
    if (side->model.empty()) return invalid("two models are needed to compare");
    if (!side->variant.empty() && !is_elastic(side->model))
      return invalid("{} is no elastic model and has no variant '{}'", side->model, side->variant);
  }
  if (job.images < 0) return invalid("images is {}; expected 0 or more", job.images);
  if (job.batch < 1) return invalid("batch is {}; expected 1 or more", job.batch);
  if (!(job.seconds >= 0 && job.seconds <= 3600))
    return invalid("seconds is {}; expected 0 to 3600", job.seconds);
  return {};
}

Result<CompareOutcome> run_compare(const CompareJobOptions& job, const JobControl& control) {
  LIMBER_TRY(check(job));
  CompareOutcome out;
  std::vector<Loaded> loaded;
  std::vector<std::unique_ptr<Session>> sessions;
  TurnTimer timer({.seconds = job.seconds});
  for (const CompareJobOptions::Side* side : {&job.a, &job.b}) {
    LIMBER_ASSIGN(Loaded one, load_side(job, *side, control));
    LIMBER_ASSIGN(const auto plan, build(one.classifier.model, options_of(job, 1), false, control));
    LIMBER_ASSIGN((side == &job.a ? out.a : out.b), describe(*side, one, *plan));
    LIMBER_ASSIGN(auto session, Session::create(plan));
    fill_random(*session, job.seed);
    timer.add(*session);
    sessions.push_back(std::move(session));
    loaded.push_back(std::move(one));
  }
  if (!job.data.empty()) LIMBER_TRY(judge(job, loaded[0], loaded[1], out, control));
  control.progress({"timing in turns", -1, ""});
  LIMBER_TRY(timer.run(control.stop));
  out.a.seconds = timer.seconds(0);
  out.b.seconds = timer.seconds(1);
  return out;
}

}  // namespace limber
