// Operators that keep the layers of a block as they are and leave out some of them, or parts.
#include <algorithm>

#include "ops/op_def.h"
#include "passes/channel_rank.h"
#include "passes/slice_channels.h"
#include "passes/unshare.h"
#include "supernet/operators/operators.h"
#include "supernet/operators/work.h"

namespace limber {
namespace {

const TensorType& block_input_type(const Graph& block) { return block.type(block.inputs()[0]); }
const TensorType& block_output_type(const Graph& block) { return block.type(block.outputs()[0].value); }
bool changes_type(const Graph& block) { return block_input_type(block) != block_output_type(block); }

// Does the input reach the output through sums and activations alone?
bool adds_to_input(const Graph& block) {
  std::vector<bool> reached(block.num_values(), false);
  reached[block.inputs()[0].index] = true;
  for (const Node& node : block.nodes()) {
    const bool passes = node.op == OpKind::kAdd || node.op == OpKind::kIdentity ||
                        (is_unary(node.op) && as_activation(node).has_value());
    if (!passes || block.type(node.outputs[0]) != block_input_type(block)) continue;
    reached[node.outputs[0].index] = std::any_of(
        node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v != kNoValue && reached[v.index]; });
  }
  return reached[block.outputs()[0].value.index];
}

size_t kept_units(int64_t units, double share) {
  if (share >= 1) return static_cast<size_t>(units);
  return static_cast<size_t>(std::min(round_channels(share * static_cast<double>(units)), units));
}

}  // namespace

Result<ReplacementPtr> make_skip(const BlockView& view, double /*amount*/) {
  const Graph& block = view.graph();
  if (changes_type(block) || !adds_to_input(block)) return ReplacementPtr();
  auto result = std::make_unique<Replacement>();
  const ValueId input = result->graph.add_input(block.value(block.inputs()[0]).name, block_input_type(block));
  LIMBER_ASSIGN(const ValueId output, emit(result->graph, OpKind::kIdentity, {input}, {}, "skip"));
  result->graph.add_output(output, block.outputs()[0].name);
  return result;
}

Result<ReplacementPtr> make_merged(const BlockView& view, double /*amount*/) {
  const Graph* kept = nullptr;
  for (const Graph* block : view.blocks) {
    if (!changes_type(*block)) continue;
    if (kept != nullptr) return ReplacementPtr();
    kept = block;
  }
  if (kept == nullptr) {
    kept = *std::max_element(view.blocks.begin(), view.blocks.end(), [](const Graph* a, const Graph* b) {
      return parameter_elements(*a) < parameter_elements(*b);
    });
  }
  auto result = std::make_unique<Replacement>();
  result->graph = *kept;
  return result;
}

Result<ReplacementPtr> make_shrunk(const BlockView& view, double amount) {
  Graph block = view.graph();
  auto result = std::make_unique<Replacement>();
  // Whatever else reads a shared tensor is not in this block, or only by accident the same.
  Parameters own;
  const std::vector<ParameterCopy> copies = unshare_parameters(block);
  for (const Value& value : block.values()) {
    if (value.role != Role::kParameter && value.role != Role::kState) continue;
    const auto copy = std::find_if(copies.begin(), copies.end(),
                                   [&](const ParameterCopy& c) { return c.name == value.name; });
    LIMBER_ASSIGN(Tensor tensor, view.params.get(copy == copies.end() ? value.name : copy->of));
    own.set(value.name, std::move(tensor));
  }
  const ChannelGroups groups = channel_groups(block);
  std::vector<std::vector<int64_t>> kept;
  bool smaller = false;
  for (const ChannelGroup& group : groups.groups) {
    LIMBER_ASSIGN(const std::vector<double> scores, unit_scores(block, group, own));
    kept.push_back(best_units(scores, kept_units(group.units, amount)));
    smaller |= kept.back().size() < static_cast<size_t>(group.units);
  }
  if (!smaller && amount < 1) return ReplacementPtr();
  LIMBER_ASSIGN(SlicedGraph sliced, slice_channels(block, groups, kept));
  LIMBER_TRY(slice_parameters(sliced, own, result->tensors));
  result->graph = std::move(sliced.graph);
  return result;
}

}  // namespace limber
