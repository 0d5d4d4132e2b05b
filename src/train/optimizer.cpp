#include "train/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/hash.h"
#include "ops/op_def.h"

namespace limber {
namespace {

constexpr std::array<std::string_view, 3> kOptimizers = {"sgd", "adam", "adamw"};
constexpr std::array<std::string_view, 3> kSchedules = {"constant", "step", "cosine"};

class OptimizerWriter {
 public:
  OptimizerWriter(Graph& graph, ValueId rate, const OptimizerOptions& options)
      : graph_(graph), rate_(rate), options_(options) {}

  Status run(const std::vector<Trained>& trained) {
    if (options_.clip_norm > 0 && !trained.empty()) {
      LIMBER_ASSIGN(factor_, clip_factor(trained));
    }
    for (const Trained& t : trained) LIMBER_TRY(options_.kind == OptimizerKind::kSgd ? sgd(t) : adam(t));
    return {};
  }

 private:
  // min(1, clip / norm of all gradients)
  Result<ValueId> clip_factor(const std::vector<Trained>& trained) {
    ValueId sum = kNoValue;
    for (const Trained& t : trained) {
      std::vector<int64_t> axes;
      for (int i = 0; i < graph_.type(t.gradient).rank(); ++i) axes.push_back(i);
      LIMBER_ASSIGN(const ValueId square, emit(graph_, OpKind::kReduceSumSquare, {t.gradient},
                                               {{"axes", axes}, {"keepdims", int64_t{0}}}, "clip"));
      if (sum == kNoValue) {
        sum = square;
        continue;
      }
      LIMBER_ASSIGN(sum, emit(graph_, OpKind::kAdd, {sum, square}, {}, "clip"));
    }
    LIMBER_ASSIGN(const ValueId norm, emit(graph_, OpKind::kSqrt, {sum}, {}, "clip"));
    const ValueId tiny = graph_.add_constant("clip/tiny", Tensor::scalar(1e-6f));
    const ValueId limit =
        graph_.add_constant("clip/limit", Tensor::scalar(static_cast<float>(options_.clip_norm)));
    LIMBER_ASSIGN(const ValueId safe, emit(graph_, OpKind::kAdd, {norm, tiny}, {}, "clip"));
    LIMBER_ASSIGN(const ValueId ratio, emit(graph_, OpKind::kDiv, {limit, safe}, {}, "clip"));
    const ValueId one = graph_.add_constant("clip/one", Tensor::scalar(1.0f));
    return emit(graph_, OpKind::kMin, {ratio, one}, {}, "clip");
  }

  ValueId state(std::string_view what, std::string_view of, const TensorType& type) {
    return graph_.add_parameter(fmt::format("optimizer/{}/{}", what, of), type, Role::kState);
  }

  void add_effect(NodeId update, size_t output, const std::string& parameter) {
    if (!options_.effects) return;
    const std::string name = "effect/" + parameter;
    const TensorType type{DType::kF32, Shape{kUpdateEffects}};
    graph_.add_output(graph_.add_optional_output(update, output, type, name), name);
  }

  // What a step reads and writes: the parameter, or the part of it that is trained.
  struct Target {
    ValueId value;
    std::string name;
    TensorType type;
  };

  Result<Target> target(const Trained& t) {
    const Value& parameter = graph_.value(t.parameter);
    Target target{t.parameter, trained_name(parameter.name, t.part), parameter.type};
    if (t.part.empty()) return target;
    LIMBER_ASSIGN(target.value, emit(graph_, OpKind::kGather, {t.parameter, indices(t)},
                                     {{"axis", int64_t{t.axis}}}, target.name));
    target.type = graph_.type(target.value);
    return target;
  }

  ValueId indices(const Trained& t) {
    Tensor index = *Tensor::allocate({DType::kI64, Shape{static_cast<int64_t>(t.part.size())}});
    std::copy(t.part.begin(), t.part.end(), index.data<int64_t>().begin());
    return graph_.add_constant("part", std::move(index));
  }

  // The parameter holds `updated`, or has it in the place of the part.
  Status put(const Trained& t, ValueId updated) {
    if (t.part.empty()) {
      graph_.add_update(t.parameter, updated);
      return {};
    }
    const std::string name = graph_.value(t.parameter).name + "/update";
    const bool rows = t.axis == 0;
    const ValueId places = graph_.add_constant("part/places", places_of(t, graph_.type(updated).shape));
    Attrs attrs;
    if (!rows) attrs.set("axis", int64_t{t.axis});
    LIMBER_ASSIGN(const ValueId whole, emit(graph_, rows ? OpKind::kScatterND : OpKind::kScatterElements,
                                            {t.parameter, places, updated}, std::move(attrs), name));
    graph_.add_update(t.parameter, whole);
    return {};
  }

  // [part, 1] of rows; for another axis one index per element of the part.
  static Tensor places_of(const Trained& t, const Shape& part) {
    const auto count = static_cast<int64_t>(t.part.size());
    Tensor places = *Tensor::allocate({DType::kI64, t.axis == 0 ? Shape{count, 1} : part});
    int64_t inner = 1;
    for (int axis = t.axis + 1; t.axis > 0 && axis < part.rank(); ++axis) inner *= part.dim(axis);
    for (int64_t i = 0; i < places.elements(); ++i)
      places.data<int64_t>()[static_cast<size_t>(i)] = t.part[static_cast<size_t>(i / inner % count)];
    return places;
  }

  Status sgd(const Trained& t) {
    LIMBER_ASSIGN(const Target w, target(t));
    std::vector<ValueId> inputs = {w.value, t.gradient, rate_};
    const bool velocity = options_.momentum > 0;
    if (velocity || factor_ != kNoValue) inputs.push_back(kNoValue);
    if (velocity) inputs[3] = state("velocity", w.name, w.type);
    if (factor_ != kNoValue) inputs.push_back(factor_);
    LIMBER_ASSIGN(const NodeId node, emit_node(graph_, OpKind::kSgdUpdate, inputs,
                                               {{"momentum", options_.momentum},
                                                {"nesterov", int64_t{options_.nesterov}},
                                                {"decay", options_.decay},
                                                {"decoupled", int64_t{options_.decoupled}}},
                                               velocity ? 2 : 1, w.name + "/update"));
    LIMBER_TRY(put(t, graph_.node(node).outputs[0]));
    if (velocity) graph_.add_update(inputs[3], graph_.node(node).outputs[1]);
    add_effect(node, 2, graph_.value(t.parameter).name);
    return {};
  }

  Status adam(const Trained& t) {
    LIMBER_ASSIGN(const Target w, target(t));
    const ValueId m = state("mean", w.name, w.type);
    const ValueId v = state("square", w.name, w.type);
    // Of each parameter by itself: not all are trained in every step.
    const ValueId step = state("step", w.name, {DType::kF32, {}});
    std::vector<ValueId> inputs = {w.value, t.gradient, rate_, m, v, step};
    if (factor_ != kNoValue) inputs.push_back(factor_);
    const bool decoupled = options_.kind == OptimizerKind::kAdamW;
    LIMBER_ASSIGN(const NodeId node, emit_node(graph_, OpKind::kAdamUpdate, inputs,
                                               {{"beta1", options_.beta1},
                                                {"beta2", options_.beta2},
                                                {"epsilon", options_.epsilon},
                                                {"decay", options_.decay},
                                                {"decoupled", int64_t{decoupled}}},
                                               4, w.name + "/update"));
    const std::vector<ValueId> outputs = graph_.node(node).outputs;
    LIMBER_TRY(put(t, outputs[0]));
    graph_.add_update(m, outputs[1]);
    graph_.add_update(v, outputs[2]);
    graph_.add_update(step, outputs[3]);
    add_effect(node, 4, graph_.value(t.parameter).name);
    return {};
  }

  Graph& graph_;
  const ValueId rate_;
  const OptimizerOptions& options_;
  ValueId factor_ = kNoValue;
};

}  // namespace

std::string_view optimizer_name(OptimizerKind kind) { return kOptimizers[static_cast<size_t>(kind)]; }
std::string_view schedule_name(ScheduleKind kind) { return kSchedules[static_cast<size_t>(kind)]; }

Status add_optimizer(Graph& graph, const std::vector<Trained>& trained, ValueId rate,
                     const OptimizerOptions& options) {
  return OptimizerWriter(graph, rate, options).run(trained);
}

std::string trained_name(std::string_view parameter, const std::vector<int64_t>& part) {
  if (part.empty()) return std::string(parameter);
  Hasher hasher;
  for (const int64_t index : part) hasher.add(static_cast<uint64_t>(index));
  return fmt::format("{}@{:016x}", parameter, hasher.digest());
}

std::vector<std::string> optimizer_state(std::string_view trained) {
  std::vector<std::string> names;
  for (const char* what : {"velocity", "mean", "square", "step"})
    names.push_back(fmt::format("optimizer/{}/{}", what, trained));
  return names;
}

double rate_at(const ScheduleOptions& options, int64_t step, int64_t total) {
  const double span = static_cast<double>(std::max<int64_t>(1, total - options.warm_up));
  return rate_when(options, step, std::min(1.0, static_cast<double>(step - options.warm_up) / span));
}

double rate_when(const ScheduleOptions& options, int64_t step, double done) {
  if (step < options.warm_up) {
    return options.rate * static_cast<double>(step + 1) / static_cast<double>(options.warm_up);
  }
  switch (options.kind) {
    case ScheduleKind::kConstant:
      return options.rate;
    case ScheduleKind::kStep: {
      double rate = options.rate;
      for (double milestone : options.milestones) {
        if (done >= milestone) rate *= options.step_factor;
      }
      return rate;
    }
    case ScheduleKind::kCosine:
      return options.final_rate + (options.rate - options.final_rate) * 0.5 * (1 + std::cos(M_PI * done));
  }
  LIMBER_UNREACHABLE();
}

}  // namespace limber
