#include "jobs/classifier.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/parallel.h"
#include "train/evaluate.h"
#include "train/run_folder.h"

namespace limber {
namespace {

struct Side {
  int64_t height = 0, width = 0;  // 0: not given
};

Side asked_side(const ImageOptions& image) {
  if (image.crop > 0) return {image.crop, image.crop};
  if (image.size.empty()) return {};
  return {image.size[0], image.size.back()};
}

Result<TensorType> image_input(const Graph& graph) {
  if (graph.inputs().size() != 1)
    return invalid("the model has {} inputs; images go into exactly one", graph.inputs().size());
  const TensorType& type = graph.type(graph.inputs()[0]);
  const bool channels = type.rank() == 4 && type.shape[1].is_constant() &&
                        (type.shape[1].value() == 1 || type.shape[1].value() == 3);
  if (channels && type.dtype == DType::kF32) return type;
  return invalid("the model's input '{}' is {}; images need f32[N,3,H,W] or f32[N,1,H,W]",
                 graph.value(graph.inputs()[0]).name, type.to_string());
}

// The shape to load the model with, when it is not what the file says.
Result<std::vector<int64_t>> wanted_shape(const TensorType& type, const Side& side) {
  const auto fixed = [&](int axis) { return type.shape[axis].is_constant() ? type.shape[axis].value() : 0; };
  const int64_t height = side.height > 0 ? side.height : fixed(2),
                width = side.width > 0 ? side.width : fixed(3);
  if (height == 0 || width == 0)
    return invalid("the model takes images of any size ({}); choose one (size)", type.to_string());
  if (height == fixed(2) && width == fixed(3)) return std::vector<int64_t>();
  return std::vector<int64_t>{-1, -1, height, width};
}

}  // namespace

Result<std::optional<Recorded>> checkpoint_of(const std::string& model) {
  if (!is_run(model) && !is_checkpoint(model)) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(model, ignored)) return std::optional<Recorded>();
    LIMBER_ASSIGN(auto card, read_card(model));
    return card ? std::optional(Recorded{*std::move(card), {}}) : std::nullopt;
  }
  LIMBER_TRY(refuse_elastic(model));
  std::vector<std::string> warnings;
  LIMBER_ASSIGN(const std::string path, find_checkpoint(model, Which::kBest, warnings));
  LIMBER_ASSIGN(CheckpointInfo info, check_checkpoint(path));
  return std::optional(Recorded{{info.input, std::move(info.classes)}, read_split(info)});
}

void use_recorded(ImageOptions& image, const Preprocess& recorded) {
  if (!image.preset && !image.normalisation) image.normalisation = recorded.normalisation;
  if (image.crop > 0 || !image.size.empty()) return;
  if (recorded.resize > 0) {
    image.size = {recorded.resize};
    image.crop = recorded.height;
  } else {
    image.size = {recorded.height, recorded.width};
  }
}

Result<Classifier> load_classifier(const ModelSource& source, const ImageOptions& image,
                                   const JobControl& control) {
  LIMBER_ASSIGN(Model model, load(source, control));
  LIMBER_ASSIGN(TensorType type, image_input(model.graph));
  LIMBER_ASSIGN(auto shape, wanted_shape(type, asked_side(image)));
  if (!shape.empty()) {
    LoadSpec spec{source.shapes, source.dims, source.batch, source.open_batch};
    spec.shapes[model.graph.value(model.graph.inputs()[0]).name] = std::move(shape);
    LIMBER_ASSIGN(model, change_shapes(model, source.model, spec));
    LIMBER_ASSIGN(type, image_input(model.graph));
  }
  model.origin = nullptr;  // its shapes are settled: the file's structure need not stay in memory
  Classifier made{std::move(model), {}};
  made.input.channels = static_cast<int>(type.shape[1].value());
  made.input.height = static_cast<int>(type.shape[2].value());
  made.input.width = static_cast<int>(type.shape[3].value());
  if (image.crop > 0 && !image.size.empty()) made.input.resize = static_cast<int>(image.size[0]);
  if (image.preset) use_preset(*image.preset, made.input);
  if (image.normalisation) made.input.normalisation = *image.normalisation;
  LIMBER_TRY(check_preprocess(made.input));
  return made;
}

Result<Classifier> load_classifier(ModelSource& source, int64_t batch, const ImageOptions& image,
                                   const JobControl& control) {
  if (source.batch > 0) return load_classifier(source, image, control);
  source.batch = batch;
  auto made = load_classifier(source, image, control);
  if (made.ok()) return made;
  source.batch = 0;
  auto as_it_is = load_classifier(source, image, control);
  return as_it_is.ok() ? std::move(as_it_is) : std::move(made);
}

bool is_unsaid(const ImageOptions& image) { return !image.preset && !image.normalisation; }

void tell_doubts(const std::string& name, const Dataset& data, const Preprocess& input, Session& session,
                 const JobControl& control) {
  const AnswerImages answer = [&](const Tensor& images) -> Result<Tensor> {
    if (control.stop_asked()) return error(Code::kResourceExhausted, "stopped");
    Tensor to = session.input(0);
    std::memcpy(to.raw(), images.raw(), images.bytes());
    LIMBER_TRY(session.run());
    return session.output(0);
  };
  const auto verdict = judge_input(data, input, answer, {.batch = session.input(0).shape().dim(0)});
  if (verdict.ok() && verdict->doubtful) control.note(NoteKind::kWarning, name + ": " + verdict->advice);
}

void tell_doubts(const JobOptions& options, const Dataset& data, const Classifier& classifier,
                 const JobControl& control) {
  JobOptions how = options;
  how.batch = JudgeOptions().batch;
  how.tune = Tune::kOff;
  const auto plan = build(classifier.model, how, false, control);
  if (!plan.ok()) return;
  const auto session = Session::create(*plan);
  if (!session.ok()) return;
  const ThreadScope threads((*plan)->threads);
  tell_doubts(options.model, data, classifier.input, **session, control);
}

bool are_numbers(const std::vector<std::string>& classes) {
  for (size_t i = 0; i < classes.size(); ++i) {
    if (classes[i] != fmt::format("{}", i)) return false;
  }
  return true;
}

Status check_classes(const Graph& model, const std::vector<std::string>& classes, const std::string& data) {
  LIMBER_ASSIGN(const int64_t outputs, count_classes(model));
  const auto count = static_cast<int64_t>(classes.size());
  if (outputs == count || are_numbers(classes)) return {};
  return invalid(
      "the model tells {} classes apart and {} has {} ({}{}); which is which is not known. Give the names of "
      "the "
      "model's classes in their order (labels), or images of all {} classes",
      outputs, data, count, fmt::join(classes.begin(), classes.begin() + std::min<int64_t>(count, 3), ", "),
      count > 3 ? " ..." : "", outputs);
}

}  // namespace limber
