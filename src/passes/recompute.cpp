#include "passes/recompute.h"

#include <algorithm>
#include <functional>
#include <map>

#include "ops/op_def.h"

namespace limber {
namespace {

constexpr size_t kSmall = 16;    // what is so many times smaller than what is saved may be kept for it
constexpr int kMaxPasses = 4;    // over memory, to make one value again
constexpr int kImpossible = 99;  // passes

// The same bytes under another name.
bool is_view(OpKind op) { return op == OpKind::kReshape; }

// One pass over memory, or little more.
bool is_cheap(OpKind op) {
  if (is_unary(op) || is_binary(op)) return true;
  switch (op) {
    case OpKind::kBatchNorm:
    case OpKind::kBatchNormTraining:
    case OpKind::kLayerNorm:
    case OpKind::kSoftmax:
    case OpKind::kTranspose:
    case OpKind::kConcat:
    case OpKind::kSlice:
    case OpKind::kPad:
    case OpKind::kMaxPool:
    case OpKind::kAveragePool:
      return true;
    default:
      return is_view(op);
  }
}

// Does the graph have the statistics of the batch that a BatchNormTraining normalised with?
bool gives_statistics(const Node& node) {
  return node.outputs.size() == 5 && node.outputs[3] != kNoValue && node.outputs[4] != kNoValue;
}

// By value: do nodes from `backward` on read it?
std::vector<bool> read_from(const Graph& graph, NodeId backward) {
  std::vector<bool> read(graph.num_values(), false);
  for (uint32_t n = backward.index; n < graph.num_nodes(); ++n) {
    for (ValueId v : graph.node(NodeId{n}).inputs) {
      if (v != kNoValue) read[v.index] = true;
    }
  }
  return read;
}

// Decides which of the values that the backward pass reads are made again for it.
class Choice {
 public:
  Choice(const Graph& graph, NodeId backward)
      : graph_(graph), backward_(backward), read_later_(read_from(graph, backward)) {
    cheap_.resize(graph.num_values(), false);
    dear_.resize(graph.num_values(), false);
  }

  Recomputable run() {
    Recomputable result;
    result.values = pick(cheap_, [this](ValueId v) { return passes(v, kMaxPasses) == 1; });
    result.cheap = result.values.size();
    for (const bool heavy : {false, true}) {
      const auto more = pick(dear_, [&](ValueId v) {
        return heavy ? inputs_passes(v, kMaxPasses) < kImpossible : passes(v, kMaxPasses) < kImpossible;
      });
      result.values.insert(result.values.end(), more.begin(), more.end());
    }
    return result;
  }

 private:
  // Adds what `wanted` accepts to `chosen`, in the order of the graph; returns it with the largest first.
  std::vector<ValueId> pick(std::vector<bool>& chosen, const std::function<bool(ValueId)>& wanted) {
    std::vector<ValueId> values;
    for (uint32_t n = 0; n < backward_.index; ++n) {
      const ValueId v = graph_.node(NodeId{n}).outputs[0];
      if (v == kNoValue || graph_.is_output(v) || !kept(v) || !wanted(v)) continue;
      chosen[v.index] = true;
      values.push_back(v);
    }
    std::stable_sort(values.begin(), values.end(),
                     [&](ValueId a, ValueId b) { return graph_.type(a).bytes() > graph_.type(b).bytes(); });
    return values;
  }

  bool kept(ValueId v) const { return read_later_[v.index] && !cheap_[v.index] && !dear_[v.index]; }

  // How many passes over memory make `v` again from what is kept, at most `limit`.
  int passes(ValueId v, int limit) const {
    const Node& node = graph_.node(graph_.value(v).producer);
    if (!is_cheap(node.op) || node.outputs[0] != v) return kImpossible;
    if (node.op == OpKind::kBatchNormTraining && !gives_statistics(node)) return kImpossible;
    const int own = is_view(node.op) ? 0 : 1;
    return std::min(kImpossible, own + inputs_passes(v, limit - own));
  }

  int inputs_passes(ValueId v, int limit) const {
    int total = 0;
    for (ValueId in : graph_.node(graph_.value(v).producer).inputs) {
      if (in == kNoValue || graph_.value(in).producer == kNoNode || kept(in) ||
          graph_.type(in).bytes() * kSmall < graph_.type(v).bytes())
        continue;
      if (limit <= 0 || dear_[in.index]) return kImpossible;
      total += passes(in, limit - total);
      if (total > limit) return kImpossible;
    }
    return total;
  }

  const Graph& graph_;
  const NodeId backward_;
  const std::vector<bool> read_later_;  // by value
  std::vector<bool> cheap_, dear_;      // by value: chosen
};

// Makes values again at the end of the graph.
class Remaker {
 public:
  Remaker(Graph& graph, NodeId backward) : graph_(graph), read_later_(read_from(graph, backward)) {}

  Status make(ValueId v) { return again(v, graph_.type(v).bytes()).status(); }
  const std::map<ValueId, ValueId>& copies() const { return copies_; }

 private:
  // A copy of what is there anyway is itself.
  Result<ValueId> at_hand(ValueId v, size_t bytes) {
    if (v == kNoValue) return v;
    if (const auto copy = copies_.find(v); copy != copies_.end()) return copy->second;
    const bool stays = graph_.value(v).producer == kNoNode || read_later_[v.index] ||
                       graph_.type(v).bytes() * kSmall < bytes;
    return stays ? v : again(v, bytes);
  }

  // The node again, as far as its first output goes. Running statistics are not needed for that.
  Result<ValueId> again(ValueId v, size_t bytes) {
    const Node node = graph_.node(graph_.value(v).producer);
    const std::string name = node.name + "/again";
    std::vector<ValueId> inputs;
    if (node.op == OpKind::kBatchNormTraining) {
      LIMBER_ASSIGN(const ValueId x, at_hand(node.inputs[0], bytes));
      inputs = {x, node.inputs[1], node.inputs[2], node.outputs[3], node.outputs[4]};
      const Attrs attrs{{"act", node.attrs.s("act", "")}};
      LIMBER_ASSIGN(copies_[v], emit(graph_, OpKind::kBatchNormApply, std::move(inputs), attrs, name));
      return copies_[v];
    }
    for (ValueId in : node.inputs) {
      LIMBER_ASSIGN(const ValueId there, at_hand(in, bytes));
      inputs.push_back(there);
    }
    const int outputs = op_def(node.op).min_outputs;
    LIMBER_ASSIGN(const NodeId made,
                  emit_node(graph_, node.op, std::move(inputs), node.attrs, outputs, name));
    for (size_t k = 1; k < graph_.node(made).outputs.size(); ++k)
      graph_.mutable_node(made).outputs[k] = kNoValue;
    return copies_[v] = graph_.node(made).outputs[0];
  }

  Graph& graph_;
  const std::vector<bool> read_later_;
  std::map<ValueId, ValueId> copies_;
};

}  // namespace

Recomputable recomputable(const Graph& graph, NodeId backward) { return Choice(graph, backward).run(); }

Status recompute(Graph& graph, std::span<const ValueId> values, NodeId backward) {
  std::vector<ValueId> ordered(values.begin(), values.end());
  std::sort(ordered.begin(), ordered.end(),
            [&](ValueId a, ValueId b) { return graph.value(a).producer < graph.value(b).producer; });
  const auto last = static_cast<uint32_t>(graph.num_nodes());
  Remaker remaker(graph, backward);
  for (ValueId v : ordered) {
    LIMBER_ASSERT(graph.value(v).producer < backward);
    LIMBER_TRY(remaker.make(v));
  }
  for (uint32_t n = backward.index; n < last; ++n) {
    for (ValueId& v : graph.mutable_node(NodeId{n}).inputs) {
      if (const auto copy = remaker.copies().find(v); copy != remaker.copies().end()) v = copy->second;
    }
  }
  graph.compact();  // pulls each copy to its first reader
  return {};
}

}  // namespace limber
