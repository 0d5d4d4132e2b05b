#include "train/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

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

  Status sgd(const Trained& t) {
    const Value parameter = graph_.value(t.parameter);
    std::vector<ValueId> inputs = {t.parameter, t.gradient, rate_};
    const bool velocity = options_.momentum > 0;
    if (velocity || factor_ != kNoValue) inputs.push_back(kNoValue);
    if (velocity) inputs[3] = state("velocity", parameter.name, parameter.type);
    if (factor_ != kNoValue) inputs.push_back(factor_);
    LIMBER_ASSIGN(const NodeId node, emit_node(graph_, OpKind::kSgdUpdate, inputs,
                                               {{"momentum", options_.momentum},
                                                {"nesterov", int64_t{options_.nesterov}},
                                                {"decay", options_.decay},
                                                {"decoupled", int64_t{options_.decoupled}}},
                                               velocity ? 2 : 1, parameter.name + "/update"));
    graph_.add_update(t.parameter, graph_.node(node).outputs[0]);
    if (velocity) graph_.add_update(inputs[3], graph_.node(node).outputs[1]);
    add_effect(node, 2, parameter.name);
    return {};
  }

  Status adam(const Trained& t) {
    const Value parameter = graph_.value(t.parameter);
    const ValueId m = state("mean", parameter.name, parameter.type);
    const ValueId v = state("square", parameter.name, parameter.type);
    // Of each parameter by itself: not all are trained in every step.
    const ValueId step = state("step", parameter.name, {DType::kF32, {}});
    std::vector<ValueId> inputs = {t.parameter, t.gradient, rate_, m, v, step};
    if (factor_ != kNoValue) inputs.push_back(factor_);
    const bool decoupled = options_.kind == OptimizerKind::kAdamW;
    LIMBER_ASSIGN(const NodeId node, emit_node(graph_, OpKind::kAdamUpdate, inputs,
                                               {{"beta1", options_.beta1},
                                                {"beta2", options_.beta2},
                                                {"epsilon", options_.epsilon},
                                                {"decay", options_.decay},
                                                {"decoupled", int64_t{decoupled}}},
                                               4, parameter.name + "/update"));
    const std::vector<ValueId> outputs = graph_.node(node).outputs;
    graph_.add_update(t.parameter, outputs[0]);
    graph_.add_update(m, outputs[1]);
    graph_.add_update(v, outputs[2]);
    graph_.add_update(step, outputs[3]);
    add_effect(node, 4, parameter.name);
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

std::vector<std::string> optimizer_state(std::string_view parameter) {
  std::vector<std::string> names;
  for (const char* what : {"velocity", "mean", "square", "step"})
    names.push_back(fmt::format("optimizer/{}/{}", what, parameter));
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
