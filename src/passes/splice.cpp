#include "passes/splice.h"

#include <algorithm>

#include "passes/cut_points.h"
#include "passes/graph_copy.h"

namespace limber {
namespace {

Status check_block(const Graph& block) {
  if (block.inputs().size() == 1 && block.outputs().size() == 1) return {};
  return invalid("block '{}' has {} inputs and {} outputs, expected one of each", block.name,
                 block.inputs().size(), block.outputs().size());
}

const TensorType& input_type(const Graph& block) { return block.type(block.inputs()[0]); }
const TensorType& output_type(const Graph& block) { return block.type(block.outputs()[0].value); }

class Splicer {
 public:
  Splicer(const Graph& graph, ValueId from, ValueId to, const Graph& block)
      : graph_(graph), from_(from), to_(to), block_(block), outer_(graph, result_), inner_(block, result_) {}

  Result<Graph> run() {
    LIMBER_TRY(check());
    LIMBER_ASSIGN(replaced_, nodes_between(graph_, from_, to_));
    find_live();
    LIMBER_TRY(add_leaves());
    enter_block();
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      if (replaced_[n]) next_of_block();
      if (live_[n]) outer_.node(graph_.node(NodeId{n}));
      enter_block();
      if (NodeId{n} == graph_.value(to_).producer) finish_block();
    }
    for (const Output& o : graph_.outputs()) {
      result_.add_output(outer_.value(o.value), o.name, outer_.value(o.rows));
      result_.mutable_outputs().back().into = outer_.value(o.into);
    }
    return std::move(result_);
  }

 private:
  Status check() const {
    LIMBER_TRY(check_block(block_));
    const auto fits = [&](std::string_view what, ValueId v, const TensorType& type) -> Status {
      if (v.index >= graph_.num_values()) return invalid("graph '{}' has no such value", graph_.name);
      if (graph_.type(v) == type) return {};
      return invalid("the {} of block '{}' has type {}, '{}' has {}", what, block_.name, type.to_string(),
                     graph_.value(v).name, graph_.type(v).to_string());
    };
    LIMBER_TRY(fits("input", from_, input_type(block_)));
    return fits("output", to_, output_type(block_));
  }

  // Nodes that outputs depend on when `to` is the block's.
  void find_live() {
    std::vector<bool> wanted(graph_.num_values(), false);
    const auto want = [&](ValueId v) {
      if (v != kNoValue) wanted[v.index] = true;
    };
    for (const Output& o : graph_.outputs()) want(o.value), want(o.rows);
    want(from_);
    live_.assign(graph_.num_nodes(), false);
    for (auto n = static_cast<uint32_t>(graph_.num_nodes()); n-- > 0;) {
      const Node& node = graph_.node(NodeId{n});
      live_[n] = std::any_of(node.outputs.begin(), node.outputs.end(),
                             [&](ValueId v) { return v != kNoValue && v != to_ && wanted[v.index]; });
      if (live_[n]) std::for_each(node.inputs.begin(), node.inputs.end(), want);
    }
  }

  Status add_leaves() {
    result_.name = graph_.name;
    for (ValueId v : graph_.inputs())
      outer_.stand_for(v, result_.add_input(graph_.value(v).name, graph_.type(v)));
    const auto share = [&](ValueId v) -> Status {
      if (v == kNoValue) return {};
      const Role role = graph_.value(v).role;
      return role == Role::kParameter || role == Role::kState ? outer_.share_parameter(v) : Status();
    };
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      if (!live_[n]) continue;
      for (ValueId v : graph_.node(NodeId{n}).inputs) LIMBER_TRY(share(v));
    }
    for (const Output& o : graph_.outputs()) {
      LIMBER_TRY(share(o.value));
      LIMBER_TRY(share(o.into));
    }
    if (Status status = inner_.share_parameters(); !status.ok())
      return status.in(fmt::format("block '{}'", block_.name));
    return {};
  }

  void enter_block() {
    const ValueId input = block_.inputs()[0];
    if (!inner_.has(input) && outer_.has(from_)) inner_.stand_for(input, outer_.value(from_));
  }

  // The block's nodes take the places of those they replace as far as they can, so that a block put back
  // where it came from changes no order.
  void next_of_block() {
    if (next_ == block_.num_nodes() || !inner_.ready(block_.nodes()[next_])) return;
    inner_.node(block_.nodes()[next_++]);
  }

  void finish_block() {
    while (next_ < block_.num_nodes()) inner_.node(block_.nodes()[next_++]);
    outer_.stand_for(to_, inner_.value(block_.outputs()[0].value));
  }

  const Graph& graph_;
  const ValueId from_, to_;
  const Graph& block_;
  Graph result_;
  GraphCopy outer_, inner_;
  std::vector<bool> replaced_, live_;  // by node of the graph
  size_t next_ = 0;                    // node of the block
};

}  // namespace

Result<Graph> splice(const Graph& graph, ValueId from, ValueId to, const Graph& block) {
  return Splicer(graph, from, to, block).run();
}

Result<Graph> chain(std::span<const Graph* const> blocks) {
  LIMBER_ASSERT(!blocks.empty());
  for (size_t i = 0; i < blocks.size(); ++i) {
    LIMBER_TRY(check_block(*blocks[i]));
    if (i == 0 || output_type(*blocks[i - 1]) == input_type(*blocks[i])) continue;
    return invalid("block {} '{}' gives {}, block {} '{}' expects {}", i - 1, blocks[i - 1]->name,
                   output_type(*blocks[i - 1]).to_string(), i, blocks[i]->name,
                   input_type(*blocks[i]).to_string());
  }
  Graph result;
  result.name = blocks.front()->name;
  const ValueId input = blocks.front()->inputs()[0];
  ValueId joint = result.add_input(blocks.front()->value(input).name, blocks.front()->type(input));
  std::vector<GraphCopy> copies;
  copies.reserve(blocks.size());
  for (const Graph* block : blocks) {
    copies.emplace_back(*block, result);
    if (Status status = copies.back().share_parameters(); !status.ok())
      return status.in(fmt::format("block '{}'", block->name));
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    copies[i].stand_for(blocks[i]->inputs()[0], joint);
    for (const Node& node : blocks[i]->nodes()) copies[i].node(node);
    joint = copies[i].value(blocks[i]->outputs()[0].value);
  }
  result.add_output(joint, blocks.back()->outputs()[0].name);
  return result;
}

}  // namespace limber
