#include "train/loss.h"

#include <array>

#include "ops/op_def.h"

namespace limber {
namespace {

constexpr std::array<std::string_view, 7> kNames = {"cross-entropy", "mse",     "kl",  "bce",
                                                    "entropy",       "infomax", "dice"};

// Emits nodes until one fails; the rest are then no-ops.
class Writer {
 public:
  explicit Writer(Graph& graph) : graph_(graph) {}

  ValueId emit(OpKind op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    if (!status_.ok()) return kNoValue;
    auto made = limber::emit(graph_, op, std::move(inputs), std::move(attrs), "loss");
    if (made.ok()) return *made;
    status_ = made.status();
    return kNoValue;
  }
  ValueId number(double value) {
    return graph_.add_constant("loss/number", Tensor::scalar(static_cast<float>(value)));
  }
  ValueId add(ValueId a, ValueId b) { return emit(OpKind::kAdd, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return emit(OpKind::kSub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return emit(OpKind::kMul, {a, b}); }
  ValueId div(ValueId a, ValueId b) { return emit(OpKind::kDiv, {a, b}); }
  ValueId scale(ValueId a, double by) { return by == 1 ? a : mul(a, number(by)); }
  ValueId softmax(ValueId a) { return emit(OpKind::kSoftmax, {a}, {{"axis", int64_t{1}}}); }
  ValueId log_softmax(ValueId a) { return emit(OpKind::kLogSoftmax, {a}, {{"axis", int64_t{1}}}); }
  ValueId sum_all(ValueId a) {
    if (!status_.ok()) return kNoValue;
    std::vector<int64_t> axes;
    for (int i = 0; i < graph_.type(a).rank(); ++i) axes.push_back(i);
    return emit(OpKind::kReduceSum, {a}, {{"axes", axes}, {"keepdims", int64_t{0}}});
  }
  // -sum(targets * log_probabilities) / rows: the mean over everything but the classes.
  ValueId cross(ValueId targets, ValueId log_probabilities, double rows) {
    return scale(sum_all(mul(targets, log_probabilities)), -1 / rows);
  }

  Result<ValueId> done(ValueId loss) const {
    if (!status_.ok()) return status_;
    return loss;
  }

 private:
  Graph& graph_;
  Status status_;
};

Shape without_classes(const Shape& logits) {
  std::vector<Dim> dims(logits.begin(), logits.end());
  dims.erase(dims.begin() + 1);
  return Shape(std::move(dims));
}

// One number per class: `off` everywhere, `on` at the label.
ValueId one_hot(Writer& w, Graph& graph, ValueId labels, int64_t classes, double off, double on) {
  const ValueId values = graph.add_constant(
      "loss/one_hot", Tensor::from({static_cast<float>(off), static_cast<float>(on)}, {2}));
  return w.emit(OpKind::kOneHot, {labels, values}, {{"axis", int64_t{1}}, {"depth", classes}});
}

ValueId cross_entropy(Writer& w, Graph& graph, ValueId logits, const LossOptions& options, bool soft) {
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
  return w.cross(targets, w.log_softmax(logits), rows);
}

ValueId distillation(Writer& w, Graph& graph, ValueId logits, double temperature) {
  const TensorType type = graph.type(logits);
  const double rows = static_cast<double>(type.shape.elements()) / static_cast<double>(type.shape.dim(1));
  const ValueId teacher = w.scale(graph.add_input("targets", type), 1 / temperature);
  const ValueId difference = w.sub(w.log_softmax(teacher), w.log_softmax(w.scale(logits, 1 / temperature)));
  return w.scale(w.sum_all(w.mul(w.softmax(teacher), difference)), temperature * temperature / rows);
}

// max(x, 0) - x * t + log(1 + exp(-|x|)): exact for any x.
ValueId binary_cross_entropy(Writer& w, Graph& graph, ValueId logits) {
  const TensorType type = graph.type(logits);
  const ValueId targets = graph.add_input("targets", type);
  const ValueId positive = w.emit(OpKind::kRelu, {logits});
  const ValueId tail = w.emit(OpKind::kSoftplus, {w.emit(OpKind::kNeg, {w.emit(OpKind::kAbs, {logits})})});
  const ValueId each = w.add(w.sub(positive, w.mul(logits, targets)), tail);
  return w.scale(w.sum_all(each), 1 / static_cast<double>(type.shape.elements()));
}

ValueId entropy(Writer& w, Graph& graph, ValueId logits, bool diverse) {
  const TensorType type = graph.type(logits);
  const double rows = static_cast<double>(type.shape.elements()) / static_cast<double>(type.shape.dim(1));
  const ValueId p = w.softmax(logits);
  const ValueId sure = w.cross(p, w.log_softmax(logits), rows);
  if (!diverse) return sure;
  std::vector<int64_t> axes;
  for (int i = 0; i < type.rank(); ++i) {
    if (i != 1) axes.push_back(i);
  }
  const ValueId mean = w.emit(OpKind::kReduceMean, {p}, {{"axes", axes}, {"keepdims", int64_t{0}}});
  const ValueId log_mean = w.emit(OpKind::kLog, {w.add(mean, w.number(1e-8))});
  return w.add(sure, w.sum_all(w.mul(mean, log_mean)));
}

ValueId dice(Writer& w, Graph& graph, ValueId logits) {
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
  Writer w(graph);
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
    case LossKind::kInfoMax:
      return w.done(entropy(w, graph, logits, options.kind == LossKind::kInfoMax));
    case LossKind::kDice:
      return w.done(dice(w, graph, logits));
  }
  LIMBER_UNREACHABLE();
}

}  // namespace limber
