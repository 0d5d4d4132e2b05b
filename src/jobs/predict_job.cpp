#include "jobs/predict_job.h"

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/parallel.h"
#include "jobs/classifier.h"
#include "train/evaluate.h"

namespace limber {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPredictBatch = 32;  // images: more at once are hardly faster, and take their memory

// By name, so that the order does not depend on the file system.
Result<std::vector<std::string>> images_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code problem;
  for (fs::recursive_directory_iterator at(folder, problem), end; !problem && at != end;
       at.increment(problem)) {
    if (at->is_regular_file(problem) && is_image_name(at->path().string()))
      files.push_back(at->path().string());
  }
  if (problem) return error(Code::kIo, "{}: cannot be read: {}", folder, problem.message());
  if (files.empty()) return error(Code::kNotFound, "{}: holds no images", folder);
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::vector<std::string>> find_images(const std::vector<std::string>& places) {
  if (places.empty()) return invalid("which images? None are named");
  std::vector<std::string> files;
  for (const std::string& place : places) {
    std::error_code ignored;
    if (!fs::is_directory(place, ignored)) {
      files.push_back(place);
      continue;
    }
    LIMBER_ASSIGN(const auto inside, images_in(place));
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

// Images of which nobody says what they show.
class Unlabelled : public Dataset {
 public:
  explicit Unlabelled(const std::vector<std::string>& files) : Dataset({""}), files_(files) {}
  size_t size() const override { return files_.size(); }
  Result<Sample> get(size_t index) const override {
    LIMBER_ASSIGN(Tensor image, load_image(files_[index]));
    return Sample{std::move(image), 0};
  }
  int64_t label(size_t /*index*/) const override { return 0; }
  std::string name(size_t index) const override { return files_[index]; }

 private:
  const std::vector<std::string>& files_;
};

// Reads images into rows, all threads at once. `problems` has what went wrong with each, or nothing.
void read_rows(std::span<const std::string> files, const Preprocessor& preprocessor, Tensor& batch,
               std::vector<Status>& problems) {
  problems.assign(files.size(), {});
  const auto floats = batch.data<float>();
  const size_t row = preprocessor.output_size();
  parallel_for(static_cast<int64_t>(files.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const auto image = load_image(files[i]);
      problems[i] =
          image.ok() ? preprocessor.apply(*image, floats.subspan(i * row, row)).in(files[i]) : image.status();
    }
  });
}

Status check_row(std::span<const float> logits, const std::string& image) {
  if (std::none_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); })) return {};
  return invalid(
      "{}: the model's outputs are not numbers (NaN): its weights are damaged, or images need another "
      "preparation than they get",
      image);
}

bool surer(const Prediction& a, const Prediction& b) { return a.top[0].probability > b.top[0].probability; }

}  // namespace

Result<std::optional<PredictResult>> run_predict(const PredictJobOptions& options,
                                                 const JobControl& control) {
  PredictJobOptions o = options;
  if (o.top < 1) return invalid("top is {}; at least 1 is needed", o.top);
  LIMBER_ASSIGN(const auto files, find_images(o.images));
  LIMBER_ASSIGN(const auto recorded, checkpoint_of(o.model));
  if (recorded) {
    use_recorded(o.image, recorded->input);
    if (o.classes.empty()) o.classes = recorded->classes;
  }
  const int64_t at_once = std::min<int64_t>(kPredictBatch, static_cast<int64_t>(files.size()));
  LIMBER_ASSIGN(const Classifier classifier, load_classifier(o, at_once, o.image, control));
  LIMBER_ASSIGN(const int64_t outputs, count_classes(classifier.model.graph));
  if (outputs < 2)
    return invalid("{} gives one number for an image; a classifier tells 2 classes or more", o.model);
  if (!o.classes.empty() && static_cast<int64_t>(o.classes.size()) != outputs)
    return invalid(
        "{} names are given for classes (labels), and {} tells {} apart; one for each is needed, in "
        "their order",
        o.classes.size(), o.model, outputs);
  LIMBER_ASSIGN(const Preprocessor preprocessor, Preprocessor::make(classifier.input));
  Model model = classifier.model;
  model.graph = logits_of(model.graph);
  LIMBER_ASSIGN(const auto plan, build(model, o, false, control));
  LIMBER_ASSIGN(const auto session, Session::create(plan));
  const ThreadScope threads(plan->threads);
  if (is_unsaid(o.image)) tell_doubts(o.model, Unlabelled(files), classifier.input, *session, control);
  Tensor batch = session->input(0);
  const auto size = static_cast<size_t>(batch.shape().dim(0));

  PredictResult result;
  const double start = now_seconds();
  std::vector<Status> problems;
  for (size_t first = 0; first < files.size(); first += size) {
    if (control.stop_asked()) return std::optional<PredictResult>();
    const size_t count = std::min(size, files.size() - first);
    read_rows(std::span(files).subspan(first, count), preprocessor, batch, problems);
    LIMBER_TRY(session->run());
    const Tensor output = session->output(0);
    const auto logits = output.data<float>();
    const size_t classes = logits.size() / size;
    for (size_t i = 0; i < count; ++i) {
      if (!problems[i].ok()) {
        if (o.on_bad_image == OnBadImage::kFail) return problems[i];
        result.skipped.push_back(problems[i].message());
        continue;
      }
      const auto row = logits.subspan(i * classes, classes);
      LIMBER_TRY(check_row(row, files[first + i]));
      result.predictions.push_back({files[first + i], top_of_row(row, o.top, o.classes)});
    }
    control.progress({.stage = "predicting",
                      .share = static_cast<double>(first + count) / static_cast<double>(files.size()),
                      .text = ""});
  }
  std::stable_sort(result.predictions.begin(), result.predictions.end(), surer);
  result.seconds = now_seconds() - start;
  return std::optional(std::move(result));
}

}  // namespace limber
