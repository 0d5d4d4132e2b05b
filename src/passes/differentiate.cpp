#include "passes/differentiate.h"

#include <algorithm>

#include "ops/gradient.h"

namespace limber {
namespace {

// Outputs a node's gradient rule reads, and what to call those it does not have yet.
struct NeededOutput {
  OpKind op;
  size_t index;
  std::string_view name;
};
constexpr NeededOutput kNeededOutputs[] = {{OpKind::kBatchNormTraining, 3, "/mean"},
                                           {OpKind::kBatchNormTraining, 4, "/inv_std"},
                                           {OpKind::kLayerNorm, 1, "/mean"},
                                           {OpKind::kLayerNorm, 2, "/inv_std"},
                                           {OpKind::kTopK, 1, "/indices"}};

class Differentiator {
 public:
  Differentiator(Graph& graph, ValueId loss, std::span<const ValueId> targets)
      : graph_(graph), loss_(loss), targets_(targets), num_nodes_(static_cast<uint32_t>(graph.num_nodes())) {}

  Result<Gradients> run() {
    LIMBER_TRY(check_arguments());
    find_dependents();
    find_path();
    LIMBER_TRY(check_rules());
    LIMBER_TRY(add_needed_outputs());
    on_path_.resize(graph_.num_values(), false);
    gradients_.resize(graph_.num_values(), kNoValue);
    if (on_path_[loss_.index]) LIMBER_TRY(seed());
    for (uint32_t n = num_nodes_; n-- > 0;) LIMBER_TRY(node(NodeId{n}));
    Gradients result;
    for (ValueId target : targets_) result.of.push_back(gradients_[target.index]);
    return result;
  }

 private:
  Status check_arguments() const {
    const TensorType& type = graph_.type(loss_);
    if (!is_float(type.dtype) || !type.shape.is_constant() || type.shape.elements() != 1) {
      return invalid("the loss '{}' has type {}, expected one floating-point number",
                     graph_.value(loss_).name, type.to_string());
    }
    for (ValueId target : targets_) {
      if (!is_float(graph_.type(target).dtype)) {
        return invalid("'{}' has type {}: there are no gradients of what is not floating-point",
                       graph_.value(target).name, graph_.type(target).to_string());
      }
    }
    for (const Value& value : graph_.values()) {
      if (value.type.shape.is_constant()) continue;
      return invalid("'{}' has the symbolic type {}; bind the graph before it is differentiated", value.name,
                     value.type.to_string());
    }
    return {};
  }

  bool depends(ValueId v) const { return v != kNoValue && depends_[v.index]; }

  // Which values a target can change smoothly.
  void find_dependents() {
    depends_.assign(graph_.num_values(), false);
    for (ValueId target : targets_) depends_[target.index] = true;
    for (const Node& node : graph_.nodes()) {
      if (gradient_support(node.op) == GradientSupport::kZero) continue;
      if (std::none_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return depends(v); }))
        continue;
      for (ValueId v : node.outputs) {
        if (v != kNoValue && is_float(graph_.type(v).dtype)) depends_[v.index] = true;
      }
    }
  }

  bool on_path(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId v) { return v != kNoValue && on_path_[v.index]; }) &&
           std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return depends(v); });
  }

  // Which of them change the loss.
  void find_path() {
    on_path_.assign(graph_.num_values(), false);
    on_path_[loss_.index] = depends(loss_);
    for (uint32_t n = num_nodes_; n-- > 0;) {
      const Node& node = graph_.node(NodeId{n});
      if (gradient_support(node.op) == GradientSupport::kZero || !on_path(node)) continue;
      for (ValueId v : node.inputs) {
        if (depends(v)) on_path_[v.index] = true;
      }
    }
  }

  bool is_differentiated(NodeId n) const {
    const Node& node = graph_.node(n);
    return gradient_support(node.op) != GradientSupport::kZero && on_path(node);
  }

  Status check_rules() const {
    std::string missing;
    for (uint32_t n = 0; n < num_nodes_; ++n) {
      const Node& node = graph_.node(NodeId{n});
      if (!is_differentiated(NodeId{n}) || op_def(node.op).gradient != nullptr) continue;
      missing += fmt::format("{}{} '{}'", missing.empty() ? "" : ", ", op_name(node.op), node.name);
    }
    if (missing.empty()) return {};
    return unsupported("there is no gradient rule for {}", missing);
  }

  Status add_needed_outputs() {
    for (uint32_t n = 0; n < num_nodes_; ++n) {
      if (!is_differentiated(NodeId{n})) continue;
      for (const NeededOutput& needed : kNeededOutputs) {
        if (needed.op == graph_.node(NodeId{n}).op) LIMBER_TRY(add_output(NodeId{n}, needed));
      }
    }
    return {};
  }

  Status add_output(NodeId n, const NeededOutput& needed) {
    const Node& node = graph_.node(n);
    if (needed.index < node.outputs.size() && node.outputs[needed.index] != kNoValue) return {};
    const auto count = std::max(node.outputs.size(), needed.index + 1);
    LIMBER_ASSIGN(auto types, infer_types(graph_, node.op, node.inputs, node.attrs, static_cast<int>(count)));
    const std::string name = node.name + std::string(needed.name);
    graph_.add_optional_output(n, needed.index, std::move(types[needed.index]), name);
    return {};
  }

  Status seed() {
    const std::string name = graph_.value(loss_).name + "/grad";
    const TensorType type = graph_.type(loss_);
    ValueId one = graph_.add_constant(name, Tensor::scalar(1.0f));
    if (type.dtype != DType::kF32) {
      LIMBER_ASSIGN(one,
                    emit(graph_, OpKind::kCast, {one}, {{"to", std::string(dtype_name(type.dtype))}}, name));
    }
    if (type.rank() != 0) {
      LIMBER_ASSIGN(one, emit(graph_, OpKind::kReshape, {one}, {{"shape", type.shape}}, name));
    }
    gradients_[loss_.index] = one;
    return {};
  }

  Status node(NodeId n) {
    if (!is_differentiated(n)) return {};
    std::vector<ValueId> dys;
    for (ValueId v : graph_.node(n).outputs) dys.push_back(v == kNoValue ? kNoValue : gradients_[v.index]);
    if (std::all_of(dys.begin(), dys.end(), [](ValueId v) { return v == kNoValue; })) return {};
    const std::vector<ValueId> inputs = graph_.node(n).inputs;
    std::vector<bool> wanted;
    for (ValueId v : inputs) wanted.push_back(depends(v));
    GradientContext context(graph_, n, std::move(dys), std::move(wanted));
    op_def(graph_.node(n).op).gradient(context);
    LIMBER_TRY(context.status());
    for (size_t i = 0; i < inputs.size(); ++i) LIMBER_TRY(accumulate(inputs[i], context.gradients()[i]));
    return {};
  }

  Status accumulate(ValueId v, ValueId gradient) {
    if (gradient == kNoValue) return {};
    LIMBER_ASSERT(graph_.type(gradient) == graph_.type(v));
    ValueId& sum = gradients_[v.index];
    if (sum == kNoValue) {
      sum = gradient;
      return {};
    }
    const std::string name = graph_.value(v).name + "/grad";
    LIMBER_ASSIGN(sum, emit(graph_, OpKind::kAdd, {sum, gradient}, {}, name));
    return {};
  }

  Graph& graph_;
  const ValueId loss_;
  const std::span<const ValueId> targets_;
  const uint32_t num_nodes_;        // of the forward graph
  std::vector<bool> depends_;       // by forward value: on a target
  std::vector<bool> on_path_;       // by forward value: depends on a target, and the loss on it
  std::vector<ValueId> gradients_;  // by value, the sum so far
};

}  // namespace

Result<Gradients> differentiate(Graph& graph, ValueId loss, std::span<const ValueId> targets) {
  Graph result = graph;
  LIMBER_ASSIGN(Gradients gradients, Differentiator(result, loss, targets).run());
  graph = std::move(result);
  return gradients;
}

}  // namespace limber
