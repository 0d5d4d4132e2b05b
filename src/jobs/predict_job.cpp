#include "jobs/predict_job.h"

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/parallel.h"
#include "data/archive.h"
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

// Images of which nobody says what they show: files, what folders hold, what archives hold.
class Pictures : public Dataset {
 public:
  Pictures() : Dataset({""}) {}

  Status add(const std::string& place) {
    std::error_code ignored;
    if (!fs::is_directory(place, ignored)) {
      if (is_archive_name(place)) return add_archive(place);
      pictures_.push_back({place, {}, false});
      return {};
    }
    LIMBER_ASSIGN(const auto inside, images_in(place));
    for (const std::string& file : inside) pictures_.push_back({file, {}, false});
    return {};
  }

  size_t size() const override { return pictures_.size(); }
  int64_t label(size_t /*index*/) const override { return 0; }
  std::string name(size_t index) const override { return pictures_[index].name; }
  Result<Sample> get(size_t index) const override {
    const Picture& one = pictures_[index];
    auto image = one.archived ? decode_image(one.bytes) : load_image(one.name);
    if (!image.ok()) return one.archived ? image.status().in(one.name) : image.status();
    return Sample{*std::move(image), 0};
  }

 private:
  struct Picture {
    std::string name;
    std::span<const std::byte> bytes;  // of one in an archive
    bool archived = false;
  };

  Status add_archive(const std::string& path) {
    LIMBER_ASSIGN(Archive archive, read_archive(path));
    if (archive.images.empty()) return error(Code::kNotFound, "{}: holds no images", path);
    for (const Member& one : archive.images) pictures_.push_back({path + "/" + one.path, one.bytes, true});
    owners_.push_back(std::move(archive.owner));
    return {};
  }

  std::vector<Picture> pictures_;
  std::vector<std::shared_ptr<const void>> owners_;  // of the bytes
};

// Reads `count` images into rows, all threads at once. `problems` has what went wrong with each, or nothing.
void read_rows(const Pictures& pictures, size_t first, size_t count, const Preprocessor& preprocessor,
               Tensor& batch, std::vector<Status>& problems) {
  problems.assign(count, {});
  const auto floats = batch.data<float>();
  const size_t row = preprocessor.output_size();
  parallel_for(static_cast<int64_t>(count), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const auto read = pictures.get(first + i);
      problems[i] =
          read.ok()
              ? preprocessor.apply(read->image, floats.subspan(i * row, row)).in(pictures.name(first + i))
              : read.status();
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
  if (o.images.empty()) return invalid("which images? None are named");
  Pictures pictures;
  for (const std::string& place : o.images) LIMBER_TRY(pictures.add(place));
  LIMBER_ASSIGN(const auto recorded, checkpoint_of(o.model));
  if (recorded) {
    use_recorded(o.image, recorded->input);
    if (o.classes.empty()) o.classes = recorded->classes;
  }
  const int64_t at_once = std::min<int64_t>(kPredictBatch, static_cast<int64_t>(pictures.size()));
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
  if (is_unsaid(o.image)) tell_doubts(o.model, pictures, classifier.input, *session, control);
  Tensor batch = session->input(0);
  const auto size = static_cast<size_t>(batch.shape().dim(0));

  PredictResult result;
  const double start = now_seconds();
  std::vector<Status> problems;
  for (size_t first = 0; first < pictures.size(); first += size) {
    if (control.stop_asked()) return std::optional<PredictResult>();
    const size_t count = std::min(size, pictures.size() - first);
    read_rows(pictures, first, count, preprocessor, batch, problems);
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
      LIMBER_TRY(check_row(row, pictures.name(first + i)));
      result.predictions.push_back({pictures.name(first + i), top_of_row(row, o.top, o.classes)});
    }
    control.progress({.stage = "predicting",
                      .share = static_cast<double>(first + count) / static_cast<double>(pictures.size()),
                      .text = ""});
  }
  std::stable_sort(result.predictions.begin(), result.predictions.end(), surer);
  result.seconds = now_seconds() - start;
  return std::optional(std::move(result));
}

}  // namespace limber
