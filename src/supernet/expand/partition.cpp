#include "supernet/expand/partition.h"

#include <algorithm>
#include <set>

#include "ops/op_def.h"
#include "passes/cut_points.h"
#include "passes/passes.h"
#include "runtime/choice.h"
#include "supernet/operators/work.h"

namespace limber {
namespace {

// Fusions reach over a few cut points (product, bias, normalisation, activation), not over more than this.
constexpr size_t kFusionReach = 6;

size_t computed_nodes(const Graph& graph) {
  const std::vector<bool> statics = static_values(graph);
  size_t count = 0;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) count += !is_static_node(graph, statics, NodeId{n});
  return count;
}

// Would the runtime fuse what stands on both sides of cut `i`? It cannot when somebody else wants the value.
Result<bool> parts_fusion(const Graph& graph, const std::vector<ValueId>& cuts, size_t i) {
  const size_t first = i < kFusionReach ? 0 : i - kFusionReach;
  const size_t last = std::min(i + kFusionReach, cuts.size() - 1);
  LIMBER_ASSIGN(Graph whole, extract(graph, cuts[first], cuts[last]));
  Graph parted = whole;
  const auto value = parted.find(graph.value(cuts[i]).name);
  LIMBER_ASSERT(value);
  parted.add_output(*value, "cut");
  LIMBER_TRY(optimize_for_inference(whole));
  LIMBER_TRY(optimize_for_inference(parted));
  return computed_nodes(parted) > computed_nodes(whole);
}

// A layer and what scales or shifts its channels: both that layer and one that follows could take it in, but
// it was trained with the one it follows.
bool parts_layer(const Graph& graph, ValueId cut, const std::vector<NodeId>& readers,
                 const std::vector<bool>& statics) {
  const NodeId producer = graph.value(cut).producer;
  if (producer == kNoNode || !is_layer(graph, graph.node(producer), statics) || readers.size() != 1)
    return false;
  const Node& reader = graph.node(readers[0]);
  if (reader.op == OpKind::kBatchNorm || reader.op == OpKind::kBatchNormTraining) return true;
  return is_binary(reader.op) && statics[reader.inputs[reader.inputs[0] == cut ? 1 : 0].index];
}

Result<std::vector<ValueId>> free_cuts(const Graph& graph, const std::vector<bool>& statics) {
  const std::vector<ValueId> cuts = cut_points(graph);
  if (cuts.size() < 2 || cuts.front() != graph.inputs()[0]) {
    return unsupported("output '{}' of '{}' does not depend on its input", graph.outputs()[0].name,
                       graph.name);
  }
  const auto readers = graph.readers();
  std::vector<ValueId> free{cuts.front()};
  for (size_t i = 1; i + 1 < cuts.size(); ++i) {
    if (parts_layer(graph, cuts[i], readers[cuts[i].index], statics)) continue;
    LIMBER_ASSIGN(const bool parts, parts_fusion(graph, cuts, i));
    if (!parts) free.push_back(cuts[i]);
  }
  free.push_back(cuts.back());
  return free;
}

enum class PieceKind : uint8_t {
  kPlain,  // no layer
  kGate,   // scales its input by something computed from it: squeeze and excite
  kLayer,  // one layer, nothing beside it
  kUnit,   // several layers that no cut parts, or one with a way around it
};

// What lies between two cuts that may be made, and what joined it.
struct Piece {
  ValueId from, to;
  PieceKind kind = PieceKind::kPlain;
  bool depthwise = false;   // the layer is a depthwise convolution
  bool branches = false;    // a unit of layers side by side, without a sum and without a way around them
  bool opens_next = false;  // what has no layer belongs to what comes next, not to what came before
};

// Elements of one sample.
double sample_elements(const Graph& graph, ValueId v) {
  double product = 1;
  for (const Dim& d : graph.type(v).shape) product *= d.is_constant() ? static_cast<double>(d.value()) : 1;
  return product;
}

bool is_gate(const Graph& graph, ValueId from, ValueId to) {
  const Node& last = graph.node(graph.value(to).producer);
  return last.op == OpKind::kMul && std::count(last.inputs.begin(), last.inputs.end(), from) == 1;
}

bool is_depthwise(const Graph& graph, const Node& node) {
  const int64_t groups = node.attrs.i("groups", 1);
  return node.op == OpKind::kConv && groups > 1 && graph.type(node.inputs[1]).shape[1] == Dim(1);
}

// Normalisations and global pools prepare what follows; windows, shuffles and sums end what was there.
bool opens(OpKind op) {
  switch (op) {
    case OpKind::kBatchNorm:
    case OpKind::kBatchNormTraining:
    case OpKind::kLayerNorm:
    case OpKind::kInstanceNorm:
    case OpKind::kGroupNorm:
    case OpKind::kReduceMean:
    case OpKind::kGlobalAveragePool:
    case OpKind::kGlobalMaxPool:
      return true;
    default:
      return false;
  }
}

Result<Piece> describe_piece(const Graph& graph, ValueId from, ValueId to, const std::vector<bool>& statics) {
  LIMBER_ASSIGN(const std::vector<bool> inside, nodes_between(graph, from, to));
  Piece piece{from, to};
  int layers = 0, readers = 0;
  bool sums = false;
  std::vector<bool> bypass(graph.num_values(), false);  // reached from the input past all layers
  bypass[from.index] = true;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (!inside[n]) continue;
    const Node& node = graph.node(NodeId{n});
    readers += static_cast<int>(std::count(node.inputs.begin(), node.inputs.end(), from));
    piece.opens_next |= opens(node.op);
    sums |= node.op == OpKind::kAdd;
    if (is_layer(graph, node, statics)) {
      ++layers;
      piece.depthwise = is_depthwise(graph, node);
      continue;
    }
    const bool past = std::any_of(node.inputs.begin(), node.inputs.end(),
                                  [&](ValueId v) { return v != kNoValue && bypass[v.index]; });
    for (ValueId v : node.outputs) {
      if (v != kNoValue) bypass[v.index] = past;
    }
  }
  piece.branches = layers > 1 && !sums && !bypass[to.index];
  piece.opens_next |= graph.type(to).rank() < graph.type(from).rank() && graph.type(to).rank() <= 2;
  if (layers > 0 && is_gate(graph, from, to)) {
    piece.kind = PieceKind::kGate;
  } else if (layers > 1 || (layers == 1 && readers > 1)) {
    piece.kind = PieceKind::kUnit;
  } else if (layers == 1) {
    piece.kind = PieceKind::kLayer;
  }
  return piece;
}

// Pieces with layers, each with those without that belong to it.
std::vector<Piece> join_plain(const std::vector<Piece>& pieces) {
  std::vector<Piece> joined;
  ValueId pending = kNoValue;  // where the pieces start that wait for the next with layers
  for (const Piece& piece : pieces) {
    const bool joins = piece.kind == PieceKind::kPlain || piece.kind == PieceKind::kGate;
    if (joins && pending == kNoValue && !joined.empty() &&
        (piece.kind == PieceKind::kGate || !piece.opens_next)) {
      joined.back().to = piece.to;
    } else if (joins) {
      if (pending == kNoValue) pending = piece.from;
    } else {
      joined.push_back(piece);
      if (pending != kNoValue) joined.back().from = pending;
      pending = kNoValue;
    }
  }
  if (pending != kNoValue && !joined.empty()) joined.back().to = pieces.back().to;
  return joined;
}

Result<int64_t> count_parameters(const Graph& graph, ValueId from, ValueId to) {
  LIMBER_ASSIGN(const std::vector<bool> inside, nodes_between(graph, from, to));
  std::set<ValueId> seen;
  int64_t sum = 0;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (!inside[n]) continue;
    for (ValueId v : graph.node(NodeId{n}).inputs) {
      if (v == kNoValue || v == from || !seen.insert(v).second) continue;
      const Role role = graph.value(v).role;
      if (role == Role::kParameter || role == Role::kState) sum += graph.type(v).shape.elements();
    }
  }
  return sum;
}

class RunCutter {
 public:
  RunCutter(const Graph& graph, const PartitionOptions& options, std::vector<Piece> pieces)
      : graph_(graph), options_(options), pieces_(std::move(pieces)) {}

  Result<std::vector<BlockRange>> run() {
    limit_ = options_.gamma * static_cast<double>(parameter_elements(graph_));
    for (const Piece& piece : pieces_) {
      LIMBER_ASSIGN(const int64_t count, count_parameters(graph_, piece.from, piece.to));
      parameters_.push_back(count);
    }
    const size_t last = pieces_.size() - 1;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const bool joins = i > 0 && !ends_before(i);
      const bool stem = i == 0 && pieces_[i].kind == PieceKind::kLayer;
      if (!joins) {
        blocks_.push_back({pieces_[i].from, pieces_[i].to, parameters_[i], stem || i == last});
        layers_ = 1;
        continue;
      }
      BlockRange& block = blocks_.back();
      block.to = pieces_[i].to;
      LIMBER_ASSIGN(block.parameters, count_parameters(graph_, block.from, block.to));
      ++layers_;
    }
    return std::move(blocks_);
  }

 private:
  // Does a block end between pieces i-1 and i?
  bool ends_before(size_t i) const {
    if (pieces_[i - 1].kind != PieceKind::kLayer || blocks_.back().fixed || i + 1 == pieces_.size())
      return true;
    if (static_cast<double>(blocks_.back().parameters + parameters_[i]) > limit_) return true;
    const double before = sample_elements(graph_, pieces_[i - 1].from);
    const double here = sample_elements(graph_, pieces_[i - 1].to);
    const double after = sample_elements(graph_, pieces_[i].to);
    // Few channels in front of branches are theirs: squeeze and expand.
    if (pieces_[i].kind == PieceKind::kUnit) return !pieces_[i].branches || here >= before || here >= after;
    if (pieces_[i - 1].depthwise) return false;  // what mixes its channels comes next
    if (layers_ + (pieces_[i].depthwise ? 2 : 1) > options_.max_layers) return true;
    return here <= before && here <= after && (here < before || here < after);
  }

  const Graph& graph_;
  const PartitionOptions& options_;
  const std::vector<Piece> pieces_;
  std::vector<int64_t> parameters_;  // by piece
  std::vector<BlockRange> blocks_;
  double limit_ = 0;
  int layers_ = 0;  // in the last block
};

Status check_model(const Graph& model, const PartitionOptions& options) {
  if (!(options.gamma > 0)) return invalid("gamma is {}, expected more than 0", options.gamma);
  if (options.max_layers < 1) return invalid("max_layers is {}, expected 1 or more", options.max_layers);
  if (model.inputs().size() == 1 && model.outputs().size() == 1) return {};
  return unsupported("model '{}' has {} inputs and {} outputs; only one of each can be cut into blocks",
                     model.name, model.inputs().size(), model.outputs().size());
}

}  // namespace

Result<std::vector<BlockRange>> partition(const Graph& model, const PartitionOptions& options) {
  LIMBER_TRY(check_model(model, options));
  const std::vector<bool> statics = static_values(model);
  LIMBER_ASSIGN(const std::vector<ValueId> cuts, free_cuts(model, statics));
  std::vector<Piece> pieces;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    LIMBER_ASSIGN(const Piece piece, describe_piece(model, cuts[i], cuts[i + 1], statics));
    pieces.push_back(piece);
  }
  const size_t found = pieces.size();
  pieces = join_plain(pieces);
  if (pieces.empty())
    return unsupported("model '{}' has no convolution or matrix product with weights", model.name);
  LIMBER_ASSIGN(std::vector<BlockRange> blocks, RunCutter(model, options, std::move(pieces)).run());
  if (std::all_of(blocks.begin(), blocks.end(), [](const BlockRange& b) { return b.fixed; })) {
    return unsupported(
        "model '{}' has no block to replace: all data pass through one value at {} places, which leaves "
        "nothing between its first and its last layer",
        model.name, found + 1);
  }
  return blocks;
}

}  // namespace limber
