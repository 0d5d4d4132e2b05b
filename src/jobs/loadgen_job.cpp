#include "jobs/loadgen_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/file.h"
#include "base/show.h"
#include "jobs/classifier.h"
#include "jobs/output.h"
#include "variant/elastic_folder.h"

namespace limber {
namespace {

constexpr double kAskSeconds = 10;  // that the server gets to describe itself
constexpr int kRandomRows = 16;     // different ones, so that a server that remembers answers gains little

std::vector<LoadPhase> phases_of(const LoadgenJobOptions& job) {
  return job.phases.empty() ? std::vector<LoadPhase>{{job.rate, job.seconds}} : job.phases;
}

// Everything but when requests are due.
LoadPlan plan_of(const LoadgenJobOptions& job) {
  LoadPlan plan;
  plan.closed = job.closed;
  plan.seconds = job.seconds;
  plan.connections = job.connections;
  plan.deadline = job.deadline;
  plan.send_deadline = job.send_deadline;
  plan.give_up = job.give_up;
  plan.malformed = job.malformed;
  plan.seed = job.seed;
  return plan;
}

// What a model on this machine knows of its images.
struct Known {
  std::optional<ElasticInfo> info;
  ClassNames classes;  // empty: unknown
};

Result<Known> look_at(const std::string& like, ImageOptions& image) {
  Known known;
  if (like.empty()) return known;
  if (is_elastic(like)) {
    LIMBER_ASSIGN(known.info, load_elastic_info(like));
    known.classes = known.info->classes;
    use_recorded(image, known.info->input);
    return known;
  }
  LIMBER_ASSIGN(const auto recorded, checkpoint_of(like));
  if (!recorded)
    return invalid("{} has no record of what images become for it; say so (preprocess, size, mean, std)",
                   like);
  known.classes = recorded->classes;
  use_recorded(image, recorded->input);
  return known;
}

// What images must become for the input that the server describes.
Result<Preprocess> preprocess_for(const ModelMetadata& model, const ImageOptions& image) {
  const TensorSpec& spec = model.inputs[0];
  const bool fits = model.inputs.size() == 1 && spec.dtype == DType::kF32 && spec.shape.size() == 4 &&
                    (spec.shape[1] == 1 || spec.shape[1] == 3);
  if (!fits)
    return invalid("model '{}' takes no images: expected one input FP32[-1,3,H,W] or FP32[-1,1,H,W]",
                   model.name);
  const auto side = [&](size_t axis, int64_t asked) {
    return spec.shape[axis] > 0 ? spec.shape[axis] : asked;
  };
  const int64_t height = image.crop > 0 ? image.crop : image.size.empty() ? 0 : image.size[0];
  const int64_t width = image.crop > 0 ? image.crop : image.size.empty() ? 0 : image.size.back();
  Preprocess how;
  how.channels = static_cast<int>(spec.shape[1]);
  how.height = static_cast<int>(side(2, height));
  how.width = static_cast<int>(side(3, width));
  if (how.height <= 0 || how.width <= 0)
    return invalid("model '{}' takes images of any size; choose one (size)", model.name);
  if (image.crop > 0 && !image.size.empty()) how.resize = static_cast<int>(image.size[0]);
  if (image.preset) use_preset(*image.preset, how);
  if (image.normalisation) how.normalisation = *image.normalisation;
  LIMBER_TRY(check_preprocess(how));
  return how;
}

Result<JudgedData> open_images(const LoadgenJobOptions& job, const Known& known, const JobControl& control) {
  if (job.split == Split::kTrain) return open_seen(job.data, known.classes);
  if (known.info) return open_unseen(job.data, *known.info, known.classes, control);
  LIMBER_ASSIGN(std::shared_ptr<const Dataset> data,
                open_dataset(job.data, {.split = job.split, .expected = known.classes}));
  const auto count = static_cast<int64_t>(data->size());
  return JudgedData{std::move(data), {job.data, JudgedImages::Part::kGiven, count}};
}

// Labels mean something only where the model has the data's classes.
bool labels_mean_something(const ModelMetadata& model, const Dataset& data) {
  if (model.outputs.empty() || model.outputs[0].shape.empty()) return false;
  const int64_t classes = model.outputs[0].shape.back();
  return classes < 0 || classes == static_cast<int64_t>(data.class_names().size());
}

Result<std::vector<LoadRow>> read_images(const LoadgenJobOptions& job, const ModelMetadata& model,
                                         JudgedImages& judged, const JobControl& control) {
  ImageOptions image = job.image;
  LIMBER_ASSIGN(const Known known, look_at(job.like, image));
  LIMBER_ASSIGN(const Preprocess how, preprocess_for(model, image));
  LIMBER_ASSIGN(const JudgedData opened, open_images(job, known, control));
  const bool labelled = labels_mean_something(model, *opened.data);
  if (!labelled)
    control.note(
        NoteKind::kWarning,
        fmt::format("{} has {} classes, which are not those of model '{}': nobody knows what is right",
                    job.data, opened.data->class_names().size(), model.name));
  judged = opened.images;
  judged.count = std::min(judged.count, job.images);
  LoaderOptions options{.batch = 1, .seed = job.seed, .workers = 0, .input = how, .augment = false};
  LIMBER_ASSIGN(const auto loader, Loader::make(opened.data, options));
  LIMBER_TRY(loader->start_epoch(0));
  std::vector<LoadRow> rows;
  while (static_cast<int64_t>(rows.size()) < judged.count) {
    if (control.stop_asked()) return error(Code::kResourceExhausted, "stopped while images were read");
    LIMBER_ASSIGN(Batch batch, loader->next());
    if (batch.size == 0) break;
    rows.push_back({{std::move(batch.images)}, labelled ? batch.labels.data<int64_t>()[0] : -1});
    const double share = static_cast<double>(rows.size()) / static_cast<double>(judged.count);
    control.progress({"reading images", share, job.data});
  }
  return rows;
}

Result<std::vector<LoadRow>> rows_for(const LoadgenJobOptions& job, const ModelMetadata& model,
                                      JudgedImages& judged, const JobControl& control) {
  if (job.data.empty()) return random_rows(model, kRandomRows, job.seed);
  return read_images(job, model, judged, control);
}

void report(const LoadProgress& at, const JobControl& control) {
  std::string text = fmt::format("{} sent", at.sent);
  if (at.latency > 0) text += ", mean latency " + show_seconds(at.latency);
  if (at.refused > 0) text += fmt::format(", {} refused", at.refused);
  if (at.lost > 0) text += fmt::format(", {} lost", at.lost);
  control.progress({"under load", at.share, text});
}

std::string time_text(double seconds) {
  return seconds == LoadRecord::kNever ? "" : fmt::format("{:.6f}", seconds);
}

}  // namespace

std::string records_csv(const LoadLog& log) {
  std::string text = "due_s,sent_s,done_s,status,variant,predicted,label,malformed\n";
  for (const LoadRecord& record : log.records) {
    const int64_t label = log.labels.empty() ? -1 : log.labels[static_cast<size_t>(record.row)];
    const bool judged = label >= 0 && !record.malformed;
    text += fmt::format("{},{},{},{},", time_text(record.due), time_text(record.sent), time_text(record.done),
                        record.status);
    if (record.variant >= 0) text += '"' + log.variants[static_cast<size_t>(record.variant)] + '"';
    text += fmt::format(",{},{},{}\n", record.predicted >= 0 ? std::to_string(record.predicted) : "",
                        judged ? std::to_string(label) : "", record.malformed ? 1 : 0);
  }
  return text;
}

Status check(const LoadgenJobOptions& job) {
  LIMBER_TRY(parse_url(job.url).status());
  if (job.closed == 0) {
    LIMBER_TRY(check(phases_of(job)));
  } else if (!job.phases.empty()) {
    return invalid("closed is {} and there are phases; a closed loop has no rate: give one of them",
                   job.closed);
  }
  LoadPlan plan = plan_of(job);
  plan.due = {0};
  LIMBER_TRY(check(plan));
  if (job.images < 1) return invalid("images is {}; expected 1 or more", job.images);
  if (!job.like.empty() && job.data.empty())
    return invalid("like names a model, but there are no images to prepare for it (data)");
  if (!job.records.empty()) LIMBER_TRY(check_output_file(job.records, job.data));
  return {};
}

Result<LoadgenOutcome> run_loadgen(const LoadgenJobOptions& job, const JobControl& control) {
  LIMBER_TRY(check(job));
  LoadgenOutcome out;
  LIMBER_ASSIGN(out.target, parse_url(job.url));
  out.target.model = job.model;
  out.target.version = job.version;
  if (job.model.empty()) {
    LIMBER_ASSIGN(out.target.model, only_model(out.target, kAskSeconds));
  }
  LIMBER_ASSIGN(out.model, fetch_metadata(out.target, kAskSeconds));
  LIMBER_ASSIGN(std::vector<LoadRow> rows, rows_for(job, out.model, out.images, control));
  const RequestWriter writer(out.target, out.model, std::move(rows), job.encoding);
  LoadPlan plan = plan_of(job);
  if (job.closed == 0) plan.due = due_times(phases_of(job), job.arrivals, job.seed);
  if (job.closed == 0 && plan.due.empty())
    return invalid("no request is due within {:.3g} s; more seconds, or a higher rate",
                   total_seconds(phases_of(job)));
  const LoadWatcher watcher = [&](const LoadProgress& at) { report(at, control); };
  LIMBER_ASSIGN(const LoadLog log, run_load(out.target, writer, plan, watcher, control.stop));
  if (!job.records.empty()) LIMBER_TRY(os_files().write(job.records, records_csv(log)));
  out.summary = summarize(log, job.deadline);
  out.variants = log.variants;
  out.problems = log.problems;
  out.malformed = log.malformed;
  out.started_unix = log.started_unix;
  out.seconds = log.seconds;
  out.connections = log.connections;
  out.stopped = log.stopped;
  return out;
}

}  // namespace limber
