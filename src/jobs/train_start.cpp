#include "jobs/train_start.h"

#include "data/subset.h"
#include "jobs/identity.h"
#include "jobs/judged_images.h"
#include "train/head.h"
#include "train/init.h"

namespace limber {
namespace {

constexpr const char* kModelText = "model";

// --- images ---------------------------------------------------------------------------------------------

Result<std::shared_ptr<const Dataset>> open_part(const std::string& spec, const OpenOptions& how) {
  LIMBER_ASSIGN(std::unique_ptr<Dataset> data, open_dataset(spec, how));
  return std::shared_ptr<const Dataset>(std::move(data));
}

Status hold_images_out(const TrainJobOptions& options, TrainStart& start, const JobControl& control) {
  const size_t all = start.data->size();
  LIMBER_ASSIGN(SplitDataset parts, hold_out_per_class(start.data, options.validation_share, options.seed));
  start.options[TrainingSplit::kShareText] = fmt::format("{}", options.validation_share);
  start.options[TrainingSplit::kDataText] = fmt::format("{:016x}", digest_names(*start.data));
  start.data = std::move(parts.rest);
  start.validation = std::move(parts.held);
  start.validated_on = ValidatedOn::kHeldOut;
  control.note(
      NoteKind::kNote,
      fmt::format("{} has no test part: {} of its {} images, some of each class, are held out to evaluate on "
                  "and not trained on",
                  options.data, start.validation->size(), all));
  return {};
}

// Opens what is trained and evaluated on. `classes`: those of a training that goes on, else empty.
Status open_images(const TrainJobOptions& options, const ClassNames& classes, TrainStart& start,
                   const JobControl& control) {
  LIMBER_ASSIGN(start.data, open_part(options.data, {.expected = classes}));
  if (!options.validate) return {};
  const OpenOptions how{
      .split = Split::kTest, .need_split = options.validation.empty(), .expected = start.data->class_names()};
  auto other = open_part(options.validation.empty() ? options.data : options.validation, how);
  if (!other.ok() && options.validation.empty() && other.status().code() == Code::kNotFound)
    return hold_images_out(options, start, control);
  LIMBER_TRY(other.status());
  start.validation = *std::move(other);
  start.validated_on = options.validation.empty() ? ValidatedOn::kTestPart : ValidatedOn::kGiven;
  return {};
}

// --- the model ------------------------------------------------------------------------------------------

Status fit_head(const TrainJobOptions& options, Model& model, const Dataset& data,
                const JobControl& control) {
  const auto classes = static_cast<int64_t>(data.class_names().size());
  LIMBER_ASSIGN(const int64_t before, count_classes(model.graph));
  if (options.head == HeadChoice::kKeep || (options.head == HeadChoice::kAuto && before == classes))
    return {};
  LIMBER_TRY(replace_head(model.graph, *model.params, classes, options.seed));
  control.note(NoteKind::kNote, fmt::format("a new classifier for {} classes takes the place of that for {}",
                                            classes, before));
  return {};
}

// Divided by the root of a mean: a normalisation that the exporter spelled out, as it does for LayerNorm in
// operator sets before 17.
bool is_root_of_mean(const Graph& graph, const Node& node) {
  constexpr int kNear = 3;  // Add of epsilon, a change of shape
  if (node.op != OpKind::kSqrt) return false;
  ValueId value = node.inputs[0];
  for (int i = 0; i < kNear; ++i) {
    const NodeId producer = graph.value(value).producer;
    if (producer == kNoNode) return false;
    const Node& before = graph.node(producer);
    if (before.op == OpKind::kReduceMean) return true;
    value = before.inputs[0];
    if (value == kNoValue) return false;
  }
  return false;
}

bool is_norm(const Graph& graph, const Node& node) {
  return node.op == OpKind::kBatchNorm || node.op == OpKind::kLayerNorm || node.op == OpKind::kGroupNorm ||
         node.op == OpKind::kInstanceNorm || is_root_of_mean(graph, node);
}

// Deep networks whose normalisation was folded into the weights diverge at rates that are usual otherwise.
void warn_without_norms(const Graph& graph, const JobControl& control) {
  constexpr int64_t kDeep = 10;  // convolutions that make a network deep
  int64_t convolutions = 0, norms = 0;
  for (const Node& node : graph.nodes()) {
    convolutions += node.op == OpKind::kConv ? 1 : 0;
    norms += is_norm(graph, node) ? 1 : 0;
  }
  if (norms > 0 || convolutions < kDeep) return;
  control.note(
      NoteKind::kNote,
      fmt::format("{} convolutions and no normalisation (folded when the model was exported?); if training "
                  "diverges, use a learning rate of 0.001 and clip gradients to a norm of 1, or export the "
                  "model in training mode",
                  convolutions));
}

// --- going on -------------------------------------------------------------------------------------------

// What a checkpoint was made with must be what is asked for now, but for what only changes the outcome.
Status check_same(const OptionTexts& before, const OptionTexts& now, const JobControl& control) {
  for (const auto& [name, value] : now) {
    const auto old = before.find(name);
    const std::string was = old == before.end() ? "" : old->second;
    if (was == value) continue;
    if (name != "epochs" && name != "threads" && name != "time") {
      return invalid(
          "{} is '{}', the training was begun with '{}'; use that, or another folder to begin anew", name,
          value, was);
    }
    control.note(
        NoteKind::kNote,
        fmt::format("{} is {} now and was {}; the outcome is not what it would have been", name, value, was));
  }
  return {};
}

Status check_same_data(const OptionTexts& before, const Dataset& data, const std::string& spec) {
  const auto old = before.find("images");
  const std::string now = fmt::format("{}", data.size());
  if (old == before.end() || old->second == now) return {};
  return invalid(
      "{} has {} images to train on, the training was begun with {}; give the same data, or "
      "another folder to begin anew",
      spec, now, old->second);
}

// Checkpoints of 0.1 do not say which model they began with.
Status check_same_model(const TrainJobOptions& options, const OptionTexts& before, const std::string& now) {
  const auto old = before.find(kModelText);
  if (old == before.end() || old->second == now) return {};
  return invalid(
      "{} is not the model that the training in {} was begun with; give that one, or another "
      "folder to begin anew",
      options.model, options.output);
}

Status check_same_input(const Preprocess& before, const Preprocess& now) {
  if (before == now) return {};
  return invalid(
      "images are prepared as {}, the training was begun with {}; use that, or another folder to begin anew",
      describe(now), describe(before));
}

// What is trained may be used with another number of images at a time than its file was made for.
Result<Classifier> load_trainable(const TrainJobOptions& options, const ImageOptions& image,
                                  const JobControl& control) {
  ModelSource source = options;
  source.open_batch = true;
  return load_classifier(source, image, control);
}

}  // namespace

Result<TrainStart> begin_training(const TrainJobOptions& options, const JobControl& control) {
  TrainStart start;
  LIMBER_TRY(open_images(options, {}, start, control));
  ImageOptions image = options.image;
  LIMBER_ASSIGN(const auto recorded, checkpoint_of(options.model));
  if (recorded) use_recorded(image, recorded->input);
  LIMBER_ASSIGN(Classifier classifier, load_trainable(options, image, control));
  LIMBER_ASSIGN(start.options[kModelText], identity_of(classifier.model));
  if (is_unsaid(image) && !options.from_scratch) tell_doubts(options, *start.data, classifier, control);
  if (options.from_scratch)
    LIMBER_TRY(initialise(classifier.model.graph, *classifier.model.params, options.seed).status());
  LIMBER_TRY(fit_head(options, classifier.model, *start.data, control));
  warn_without_norms(classifier.model.graph, control);
  start.model = std::move(classifier.model);
  start.input = classifier.input;
  return start;
}

Result<TrainStart> go_on(const TrainJobOptions& options, Checkpoint checkpoint, const JobControl& control) {
  const CheckpointInfo& info = checkpoint.info;
  TrainStart start;
  LIMBER_TRY(open_images(options, info.classes, start, control));
  LIMBER_TRY(check_same_data(info.options, *start.data, options.data));
  ImageOptions image = options.image;
  use_recorded(image, info.input);
  LIMBER_ASSIGN(const Classifier before, load_trainable(options, image, control));
  LIMBER_TRY(check_same_input(info.input, before.input));
  LIMBER_ASSIGN(start.options[kModelText], identity_of(before.model));
  LIMBER_TRY(check_same_model(options, info.options, start.options[kModelText]));
  start.input = info.input;
  TrainSettings settings = settle(options);
  settings.trainer.input = start.input;
  OptionTexts now = describe(settings);
  if (start.validated_on == ValidatedOn::kHeldOut)
    now[TrainingSplit::kShareText] = start.options[TrainingSplit::kShareText];
  LIMBER_TRY(check_same(info.options, now, control));
  control.note(NoteKind::kNote,
               fmt::format("going on after step {} (epoch {}, batch {}) from {}", info.state.step,
                           info.state.epoch + 1, info.state.batch, checkpoint.path));
  start.state = info.state;
  start.notes = info.notes;
  start.model.graph = std::move(checkpoint.graph);
  start.model.params = std::move(checkpoint.params);
  return start;
}

}  // namespace limber
