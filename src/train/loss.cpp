#include "train/loss.h"

#include <array>

#include "train/loss_alignment.h"
#include "train/loss_writer.h"

namespace limber {
namespace {

constexpr std::array<std::string_view, 11> kNames = {"cross-entropy", "mse",        "kl",    "bce",
                                                     "entropy",       "infomax",    "dice",  "shot",
                                                     "moments",       "covariance", "kernel"};

Shape without_classes(const Shape& logits) {
  std::vector<Dim> dims(logits.begin(), logits.end());
  dims.erase(dims.begin() + 1);
  return Shape(std::move(dims));
}

// One number per class: `off` everywhere, `on` at the label.
ValueId one_hot(LossWriter& w, Graph& graph, ValueId labels, int64_t classes, double off, double on) {
  const ValueId values = graph.add_constant(
      "loss/one_hot", Tensor::from({static_cast<float>(off), static_cast<float>(on)}, {2}));
  return w.emit(OpKind::kOneHot, {labels, values}, {{"axis", int64_t{1}}, {"depth", classes}});
}

// Each row of `values` [N, classes, ..] times its number in the input "weights".
ValueId weigh(LossWriter& w, Graph& graph, ValueId values) {
  const Shape shape = graph.type(values).shape;
  const ValueId weights = graph.add_input("weights", {DType::kF32, without_classes(shape)});
  std::vector<Dim> dims(shape.begin(), shape.end());
  dims[1] = Dim(1);
  return w.mul(values, w.emit(OpKind::kReshape, {weights}, {{"shape", Shape(std::move(dims))}}));
}

ValueId cross_entropy(LossWriter& w, Graph& graph, ValueId logits, const LossOptions& options, bool soft) {
  const TensorType type = graph.type(logits);
  const int64_t classes = type.shape.dim(1);
  const double rows = static_cast<double>(type.shape.elements()) / static_cast<double>(classes);
  const double spread = options.label_smoothing / static_cast<double>(classes);
  ValueId targets;
  if (soft) {
    targets = graph.add_input("targets", type);
    if (spread > 0) targets = w.add(w.scale(targets, 1 - options.label_smoothing), w.number(spread));
  } else {
    const ValueId labels = graph.add_input("labels", {DType::kI64, without_classes(type.shape)});
    targets = one_hot(w, graph, labels, classes, spread, 1 - options.label_smoothing + spread);
  }
  if (options.weighted) targets = weigh(w, graph, targets);
  return w.cross(targets, w.log_softmax(logits), rows);
}

ValueId distillation(LossWriter& w, Graph& graph, ValueId logits, double temperature) {
  const TensorType type = graph.type(logits);
  const double rows = static_cast<double>(type.shape.elements()) / static_cast<double>(type.shape.dim(1));
  const ValueId teacher = w.scale(graph.add_input("targets", type), 1 / temperature);
  const ValueId difference = w.sub(w.log_softmax(teacher), w.log_softmax(w.scale(logits, 1 / temperature)));
  return w.scale(w.sum_all(w.mul(w.softmax(teacher), difference)), temperature * temperature / rows);
}

// max(x, 0) - x * t + log(1 + exp(-|x|)): exact for any x.
ValueId binary_cross_entropy(LossWriter& w, Graph& graph, ValueId logits) {
  const TensorType type = graph.type(logits);
  const ValueId targets = graph.add_input("targets", type);
  const ValueId positive = w.emit(OpKind::kRelu, {logits});
  const ValueId tail = w.emit(OpKind::kSoftplus, {w.emit(OpKind::kNeg, {w.emit(OpKind::kAbs, {logits})})});
  const ValueId each = w.add(w.sub(positive, w.mul(logits, targets)), tail);
  return w.scale(w.sum_all(each), 1 / static_cast<double>(type.shape.elements()));
}

ValueId entropy(LossWriter& w, Graph& graph, ValueId logits, bool weighted) {
  const TensorType type = graph.type(logits);
  const double rows = static_cast<double>(type.shape.elements()) / static_cast<double>(type.shape.dim(1));
  const ValueId p = w.softmax(logits);
  return w.cross(weighted ? weigh(w, graph, p) : p, w.log_softmax(logits), rows);
}

// Least when every prediction is sure and all classes together are predicted equally often.
ValueId information(LossWriter& w, Graph& graph, ValueId logits) {
  std::vector<int64_t> axes;
  for (int i = 0; i < graph.type(logits).rank(); ++i) {
    if (i != 1) axes.push_back(i);
  }
  const ValueId sure = entropy(w, graph, logits, false);
  const ValueId mean =
      w.emit(OpKind::kReduceMean, {w.softmax(logits)}, {{"axes", axes}, {"keepdims", int64_t{0}}});
  const ValueId log_mean = w.emit(OpKind::kLog, {w.add(mean, w.number(1e-8))});
  return w.add(sure, w.sum_all(w.mul(mean, log_mean)));
}

ValueId dice(LossWriter& w, Graph& graph, ValueId logits) {
  const TensorType type = graph.type(logits);
  const ValueId targets = graph.add_input("targets", type);
  std::vector<int64_t> axes;
  for (int i = 0; i < type.rank(); ++i) {
    if (i != 1) axes.push_back(i);
  }
  const auto per_class = [&](ValueId v) {
    return w.emit(OpKind::kReduceSum, {v}, {{"axes", axes}, {"keepdims", int64_t{0}}});
  };
  const ValueId p = w.softmax(logits);
  const ValueId both = w.add(w.scale(per_class(w.mul(p, targets)), 2), w.number(1));
  const ValueId each = w.add(w.add(per_class(p), per_class(targets)), w.number(1));
  const double classes = static_cast<double>(type.shape.dim(1));
  return w.sub(w.number(1), w.scale(w.sum_all(w.div(both, each)), 1 / classes));
}

}  // namespace

std::string_view loss_name(LossKind kind) { return kNames[static_cast<size_t>(kind)]; }

Result<ValueId> add_loss(Graph& graph, ValueId logits, const LossOptions& options, bool soft) {
  const TensorType type = graph.type(logits);
  if (type.dtype != DType::kF32 || type.rank() < 2 || type.shape.elements() == 0) {
    return invalid("'{}' has type {}, expected f32[N,classes,..] to compute a loss from",
                   graph.value(logits).name, type.to_string());
  }
  LossWriter w(graph);
  switch (options.kind) {
    case LossKind::kCrossEntropy:
      return w.done(cross_entropy(w, graph, logits, options, soft));
    case LossKind::kMse: {
      const ValueId d = w.sub(logits, graph.add_input("targets", type));
      return w.done(w.scale(w.sum_all(w.mul(d, d)), 1 / static_cast<double>(type.shape.elements())));
    }
    case LossKind::kKl:
      return w.done(distillation(w, graph, logits, options.temperature));
    case LossKind::kBce:
      return w.done(binary_cross_entropy(w, graph, logits));
    case LossKind::kEntropy:
      return w.done(entropy(w, graph, logits, options.weighted));
    case LossKind::kInfoMax:
      return w.done(information(w, graph, logits));
    case LossKind::kShot:
      return w.done(w.add(information(w, graph, logits),
                          w.scale(cross_entropy(w, graph, logits, options, soft), options.pseudo_share)));
    case LossKind::kMoments:
    case LossKind::kCovariance:
    case LossKind::kKernel:
      return add_alignment(graph, logits, options);
    case LossKind::kDice:
      return w.done(dice(w, graph, logits));
  }
  LIMBER_UNREACHABLE();
}

}  // namespace limber
