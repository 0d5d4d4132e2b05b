#include "train/training_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "ops/gradient.h"
#include "ops/op_def.h"
#include "passes/differentiate.h"
#include "passes/passes.h"
#include "passes/recompute.h"
#include "train/norm_modes.h"

namespace limber {
namespace {

constexpr std::array<std::string_view, 3> kBatchNormNames = {"batch", "frozen", "auto"};

constexpr std::array kPreparation = {
    Pass{"fold_constants", fold_constants},
    Pass{"simplify", simplify},
    Pass{"merge_common", merge_common},
    Pass{"fuse_activation_patterns", fuse_activation_patterns},
    Pass{"fuse_norms", fuse_norms},
    Pass{"use_global_pools", use_global_pools},
    Pass{"gemm_to_matmul", gemm_to_matmul},
    Pass{"simplify", simplify},
    Pass{"fold_transpose_matmul", fold_transpose_matmul},
    Pass{"fold_pad", fold_pad},
};

// What differentiation leaves to do; where nothing is trained, also what inference does.
constexpr std::array kFinish = {
    Pass{"narrow_gradients", narrow_gradients},
    Pass{"fold_constants", fold_constants},
    Pass{"simplify", simplify},
    Pass{"merge_common", merge_common},
    Pass{"fold_batch_norm", fold_batch_norm},
    Pass{"fuse_activation", fuse_activation},
    Pass{"fuse_residual", fuse_residual},
    Pass{"fuse_activation", fuse_activation},
};

// By value: does `output` depend on it?
std::vector<bool> influences(const Graph& graph, ValueId output) {
  std::vector<bool> reached(graph.num_values(), false);
  reached[output.index] = true;
  for (size_t n = graph.num_nodes(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    const bool used = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId v) { return v != kNoValue && reached[v.index]; });
    if (!used) continue;
    for (ValueId v : node.inputs) {
      if (v != kNoValue) reached[v.index] = true;
    }
  }
  return reached;
}

// Moves every node that only updates state to where its inputs are ready and nobody reads the old value any
// more: gradients are consumed as they are made, and do not pile up.
void update_early(Graph& graph) {
  const auto readers = graph.readers();
  std::vector<ValueId> target(graph.num_values(), kNoValue);
  for (const Output& o : graph.outputs()) {
    if (o.into != kNoValue) target[o.value.index] = o.into;
  }
  std::vector<std::vector<uint32_t>> after(graph.num_nodes());  // by node: updates that follow it
  std::vector<bool> moved(graph.num_nodes(), false);
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.nodes()[n];
    int64_t ready = -1;
    bool only_updates = true, updates = false;
    for (ValueId v : node.inputs) {
      if (v == kNoValue || graph.value(v).producer == kNoNode) continue;
      ready = std::max<int64_t>(ready, graph.value(v).producer.index);
      only_updates = only_updates && !moved[graph.value(v).producer.index];
    }
    for (ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      only_updates = only_updates && graph.is_output(v) && readers[v.index].empty();
      if (!only_updates) break;
      if (target[v.index] == kNoValue) continue;
      updates = true;
      for (NodeId reader : readers[target[v.index].index]) {
        if (reader.index != n) ready = std::max<int64_t>(ready, reader.index);
      }
    }
    if (!only_updates || !updates || ready < 0 || ready >= n) continue;
    moved[n] = true;
    after[static_cast<size_t>(ready)].push_back(n);
  }
  std::vector<uint32_t> order;
  const auto place = [&](auto&& self, uint32_t n) -> void {
    order.push_back(n);
    for (uint32_t next : after[n]) self(self, next);
  };
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (!moved[n]) place(place, n);
  }
  graph.reorder(order);
}

class StepBuilder {
 public:
  StepBuilder(const Graph& prepared, const StepOptions& options, Phase phase, const TrainedChannels& channels)
      : graph_(prepared), options_(options), phase_(phase), channels_(channels) {}

  Result<Graph> build(std::span<const std::string> names) {
    if (options_.batch_norm == BatchNormMode::kAuto) LIMBER_TRY(freeze_unchanged_norms(graph_, names));
    LIMBER_ASSIGN(const std::vector<ValueId> targets, find(names));
    LIMBER_TRY(find_axes(targets));
    const ValueId logits = graph_.outputs()[0].value;
    LIMBER_ASSIGN(ValueId loss, add_loss(graph_, logits, options_.loss, options_.soft_targets));
    LIMBER_ASSIGN(loss, with_penalty(loss));
    set_outputs(loss, logits);
    LIMBER_ASSIGN(const Gradients gradients, differentiate(graph_, loss, targets));
    LIMBER_ASSIGN(std::vector<Trained> trained, in_order_of_completion(targets, gradients));
    LIMBER_TRY(take_channels(trained));
    if (phase_ == Phase::kMeasure) {
      give_gradients(targets, trained);
    } else {
      LIMBER_TRY(apply(trained));
    }
    graph_.compact();
    LIMBER_TRY(run_passes(graph_, kFinish));
    update_early(graph_);
    return std::move(graph_);
  }

 private:
  Result<ValueId> with_penalty(ValueId loss) {
    if (options_.penalty.empty()) return loss;
    const auto& outputs = graph_.outputs();
    const auto found = std::find_if(outputs.begin(), outputs.end(),
                                    [&](const Output& o) { return o.name == options_.penalty; });
    if (found == outputs.end() || graph_.type(found->value) != TensorType{DType::kF32, {}})
      return invalid("the model has no output '{}' of type f32[] to add to the loss", options_.penalty);
    return emit(graph_, OpKind::kAdd, {loss, found->value}, {}, "loss/penalised");
  }

  Result<std::vector<ValueId>> find(std::span<const std::string> names) const {
    std::vector<ValueId> targets;
    for (const std::string& name : names) {
      const auto v = graph_.find(name);
      if (!v || graph_.value(*v).role != Role::kParameter)
        return invalid("no parameter is called '{}'", name);
      targets.push_back(*v);
    }
    return targets;
  }

  // Loss and logits first; of the model's outputs only updates stay.
  void set_outputs(ValueId loss, ValueId logits) {
    std::vector<Output> outputs = {{loss, "loss", kNoValue, kNoValue},
                                   {logits, "logits", kNoValue, kNoValue}};
    for (const Output& o : graph_.outputs()) {
      if (o.into != kNoValue) outputs.push_back(o);
    }
    graph_.mutable_outputs() = std::move(outputs);
  }

  // Parameters whose gradient is made first come first. One the loss does not depend on is an error.
  Result<std::vector<Trained>> in_order_of_completion(const std::vector<ValueId>& targets,
                                                      const Gradients& gradients) const {
    std::vector<Trained> trained;
    for (size_t i = 0; i < targets.size(); ++i) {
      if (gradients.of[i] == kNoValue) {
        return invalid("the loss does not depend on parameter '{}'", graph_.value(targets[i]).name);
      }
      trained.push_back({targets[i], gradients.of[i]});
    }
    std::stable_sort(trained.begin(), trained.end(), [this](const Trained& a, const Trained& b) {
      return graph_.value(a.gradient).producer < graph_.value(b.gradient).producer;
    });
    return trained;
  }

  // Before the backward pass, which reads weights in ways of its own.
  Status find_axes(const std::vector<ValueId>& targets) {
    for (const ValueId target : targets) {
      if (!channels_.contains(graph_.value(target).name)) continue;
      LIMBER_ASSIGN(axes_[target], channel_axis(graph_, target));
    }
    return {};
  }

  // Leaves of the gradient of what is trained in part that part.
  Status take_channels(std::vector<Trained>& trained) {
    for (Trained& t : trained) {
      const auto axis = axes_.find(t.parameter);
      if (axis == axes_.end()) continue;
      const std::string name = graph_.value(t.parameter).name;
      t.axis = axis->second;
      t.part = channels_.find(name)->second;
      LIMBER_TRY(check_part(t));
      Tensor part = *Tensor::allocate({DType::kI64, Shape{static_cast<int64_t>(t.part.size())}});
      std::copy(t.part.begin(), t.part.end(), part.data<int64_t>().begin());
      const ValueId indices = graph_.add_constant("part", std::move(part));
      LIMBER_ASSIGN(t.gradient, emit(graph_, OpKind::kGather, {t.gradient, indices},
                                     {{"axis", int64_t{t.axis}}}, "gradient/" + name));
    }
    return {};
  }

  Status check_part(const Trained& t) const {
    const Value& parameter = graph_.value(t.parameter);
    const int64_t count = parameter.type.shape.dim(t.axis);
    if (t.part.empty()) {
      return invalid("no channel of '{}' is to be trained; leave it out of what is trained instead",
                     parameter.name);
    }
    int64_t last = -1;
    for (const int64_t channel : t.part) {
      if (channel <= last || channel >= count) {
        return invalid("channel {} of '{}' is to be trained, expected ascending numbers below {}", channel,
                       parameter.name, count);
      }
      last = channel;
    }
    return {};
  }

  void give_gradients(const std::vector<ValueId>& targets, const std::vector<Trained>& trained) {
    std::erase_if(graph_.mutable_outputs(), [](const Output& o) { return o.into != kNoValue; });
    for (const ValueId target : targets) {
      const auto found = std::find_if(trained.begin(), trained.end(),
                                      [&](const Trained& t) { return t.parameter == target; });
      graph_.add_output(found->gradient, "gradient/" + graph_.value(target).name);
    }
  }

  Status apply(std::vector<Trained>& trained) {
    if (phase_ != Phase::kUpdate) LIMBER_TRY(accumulate(trained));
    if (phase_ == Phase::kStart || phase_ == Phase::kAccumulate) return {};
    const ValueId rate = graph_.add_input("rate", {DType::kF32, {}});
    return add_optimizer(graph_, trained, rate, options_.optimizer);
  }

  // Replaces each gradient by its sum so far, as the mean over the micro-batches.
  Status accumulate(std::vector<Trained>& trained) {
    const ValueId share = graph_.add_constant(
        "gradient/share", Tensor::scalar(1.0f / static_cast<float>(options_.micro_batches)));
    for (Trained& t : trained) {
      const std::string name = "gradient/" + trained_name(graph_.value(t.parameter).name, t.part);
      const ValueId sum = graph_.add_parameter(name, graph_.type(t.gradient), Role::kState);
      LIMBER_ASSIGN(t.gradient, emit(graph_, OpKind::kMul, {t.gradient, share}, {}, name));
      if (phase_ != Phase::kStart) {
        LIMBER_ASSIGN(t.gradient, emit(graph_, OpKind::kAdd, {sum, t.gradient}, {}, name));
      }
      if (phase_ != Phase::kFinish) graph_.add_update(sum, t.gradient);
    }
    return {};
  }

  Graph graph_;
  const StepOptions& options_;
  const Phase phase_;
  const TrainedChannels& channels_;
  std::map<ValueId, int> axes_;  // of what is trained in part
};

// Of parameter `input` of a node; -1: none.
int channel_axis(const Node& node, size_t input, int rank) {
  switch (node.op) {
    case OpKind::kConv:
      return input == 1 || input == 2 ? 0 : -1;
    case OpKind::kBatchNorm:
    case OpKind::kBatchNormTraining:
      return input == 1 || input == 2 ? 0 : -1;
    case OpKind::kMatMul:
    case OpKind::kGemm:
      if (input == 1 && rank == 2) return node.attrs.i("trans_b", 0) != 0 ? 0 : 1;
      return input == 2 && rank > 0 ? rank - 1 : -1;
    default:
      return -1;
  }
}

}  // namespace

std::string_view batch_norm_name(BatchNormMode mode) { return kBatchNormNames[static_cast<size_t>(mode)]; }

Result<Graph> prepare_model(const Graph& model, const StepOptions& options) {
  if (model.outputs().empty()) return invalid("the model has no output to train");
  std::map<std::string, int64_t> bound;
  for (const std::string& name : symbols(model)) bound[name] = options.batch;
  LIMBER_ASSIGN(Graph graph, limber::bind(model, bound));
  const std::string first = graph.outputs()[0].name;
  std::erase_if(graph.mutable_outputs(), [&](const Output& o) {
    return o.name != first && (options.penalty.empty() || o.name != options.penalty);
  });
  LIMBER_TRY(run_passes(graph, kPreparation));
  if (options.batch_norm != BatchNormMode::kFrozen) {
    use_batch_statistics(graph);
    LIMBER_TRY(fuse_batch_norm_relu(graph));
  }
  return graph;
}

std::vector<std::string> trainable_parameters(const Graph& graph) {
  const std::vector<bool> reached = influences(graph, graph.outputs()[0].value);
  std::vector<std::string> names;
  std::set<ValueId> seen;
  for (const Node& node : graph.nodes()) {
    const bool norm = node.op == OpKind::kBatchNorm || node.op == OpKind::kBatchNormTraining;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == kNoValue || (norm && i >= 3) || !reached[v.index]) continue;
      const Value& value = graph.value(v);
      const bool weight =
          value.role == Role::kParameter && is_float(value.type.dtype) && value.type.rank() > 0;
      if (weight && gradient_support(node.op) == GradientSupport::kRule && seen.insert(v).second)
        names.push_back(value.name);
    }
  }
  return names;
}

Result<int> channel_axis(const Graph& graph, ValueId parameter) {
  const Value& value = graph.value(parameter);
  int axis = -1;
  for (const Node& node : graph.nodes()) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != parameter) continue;
      const int here = channel_axis(node, i, value.type.rank());
      if (here < 0 || (axis >= 0 && axis != here)) {
        return unsupported(
            "{} '{}' reads '{}' {}: it has no output channels to train some of; train it whole",
            op_name(node.op), node.name, value.name,
            here < 0 ? "otherwise than weights of a layer" : "along another axis");
      }
      axis = here;
    }
  }
  if (axis < 0) return unsupported("no layer reads '{}'", value.name);
  return axis;
}

Result<Graph> training_step(const Graph& prepared, std::span<const std::string> trained,
                            const StepOptions& options, Phase phase, const TrainedChannels& channels) {
  return StepBuilder(prepared, options, phase, channels).build(trained);
}

Result<Graph> statistics_step(const Graph& prepared, double kept) {
  Graph graph = prepared;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    Node& node = graph.mutable_node(NodeId{n});
    if (node.op == OpKind::kBatchNormTraining) node.attrs.set("momentum", kept);
  }
  graph.mutable_outputs()[0].name = "logits";
  LIMBER_TRY(run_passes(graph, kFinish));
  return graph;
}

Status add_missing_state(const Graph& step, Parameters& params) {
  for (const Value& value : step.values()) {
    if (value.role != Role::kState || params.contains(value.name)) continue;
    LIMBER_ASSIGN(Tensor zeros, Tensor::zeros(value.type));
    params.set(value.name, std::move(zeros));
  }
  return {};
}

namespace {

// The first node after the loss.
NodeId backward_start(const Graph& step) {
  return NodeId{step.value(step.outputs()[0].value).producer.index + 1};
}

}  // namespace

RecomputableActivations recomputable_activations(const Graph& step) {
  const Recomputable found = recomputable(step, backward_start(step));
  return {found.cheap, found.values.size()};
}

namespace {

Result<Graph> made_twice(const Graph& step, std::span<const ValueId> values) {
  Graph graph = step;
  LIMBER_TRY(recompute(graph, values, backward_start(graph)));
  update_early(graph);
  return graph;
}

}  // namespace

Result<Graph> recompute_activations(const Graph& step, size_t count) {
  const std::vector<ValueId> values = recomputable(step, backward_start(step)).values;
  return made_twice(step, std::span(values).first(std::min(values.size(), count)));
}

Result<Graph> recompute_beyond(const Graph& step, std::span<const std::string> names) {
  const std::set<std::string_view> wanted(names.begin(), names.end());
  const NodeId backward = backward_start(step);
  NodeId first = backward, last{0};
  for (uint32_t n = 0; n < backward.index; ++n) {
    for (ValueId v : step.node(NodeId{n}).inputs) {
      if (v == kNoValue || wanted.count(step.value(v).name) == 0) continue;
      first = std::min(first, NodeId{n});
      last = NodeId{n};
    }
  }
  const Recomputable found = recomputable(step, backward);
  std::vector<ValueId> values;
  for (size_t i = 0; i < found.values.size(); ++i) {
    const NodeId maker = step.value(found.values[i]).producer;
    if (i < found.cheap || maker < first || maker > last) values.push_back(found.values[i]);
  }
  return made_twice(step, values);
}

}  // namespace limber
