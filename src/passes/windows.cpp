#include <algorithm>
#include <numeric>

#include "passes/match.h"
#include "passes/passes.h"

namespace limber {
namespace {

// The pads of a Pad node as those of a window over [N,C,spatial..], when it only adds zeros in space.
std::optional<std::vector<int64_t>> spatial_pads(const Node& pad) {
  if (pad.attrs.s("mode", "constant") != "constant" || pad.attrs.f("value", 0) != 0) return std::nullopt;
  const auto& all = pad.attrs.ints("pads");
  const size_t rank = all.size() / 2;
  if (rank < 3) return std::nullopt;
  std::vector<int64_t> pads;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool spatial = i % rank >= 2;
    if (all[i] < 0 || (!spatial && all[i] != 0)) return std::nullopt;
    if (spatial) pads.push_back(all[i]);
  }
  return pads;
}

bool is_zero(const std::vector<int64_t>& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t v) { return v == 0; });
}

// An average counts the zeros of a Pad, so the window must count all its padding.
bool counts_zeros(const Attrs& attrs) {
  if (attrs.i("ceil_mode", 0) != 0) return false;
  return is_zero(attrs.ints("pads")) || attrs.i("count_include_pad", 0) == 1;
}

Status pad_rule(Rewriter& r, NodeId n) {
  const OpKind op = r.node(n).op;
  if (op != OpKind::kConv && op != OpKind::kAveragePool) return {};
  const NodeId pad = r.producer(r.input(n, 0), OpKind::kPad);
  if (pad == kNoNode || !r.used_once(r.input(n, 0))) return {};
  auto pads = spatial_pads(r.node(pad));
  if (!pads || (op == OpKind::kAveragePool && !counts_zeros(r.node(n).attrs))) return {};
  const auto& own = r.node(n).attrs.ints("pads");
  for (size_t i = 0; i < own.size(); ++i) (*pads)[i] += own[i];

  Attrs attrs = r.node(n).attrs;
  attrs.set("pads", *std::move(pads));
  if (op == OpKind::kAveragePool) attrs.set("count_include_pad", int64_t{1});
  std::vector<ValueId> inputs = r.node(n).inputs;
  inputs[0] = r.input(pad, 0);
  const auto types = infer_types(r.graph(), op, inputs, attrs, 1);
  if (!types.ok() || (*types)[0] != r.graph().type(r.output(n))) return {};  // a window larger than allowed
  r.set_input(n, 0, inputs[0]);
  r.edit_attrs(n) = std::move(attrs);
  return {};
}

// --- windows and means over all of space ------------------------------------------------------------------

bool is_dense(const std::vector<int64_t>& dilations) {
  return std::all_of(dilations.begin(), dilations.end(), [](int64_t v) { return v == 1; });
}

bool covers_space(const Shape& x, const Node& node) {
  if (node.op == OpKind::kReduceMean || node.op == OpKind::kReduceMax) {
    const auto& axes = node.attrs.ints("axes");
    if (x.rank() < 4) return false;  // with three axes the last is more often the features of a token
    std::vector<int64_t> spatial(static_cast<size_t>(x.rank() - 2));
    std::iota(spatial.begin(), spatial.end(), 2);
    return axes == spatial;
  }
  if (node.outputs.size() != 1 || !is_zero(node.attrs.ints("pads"))) return false;
  if (node.op == OpKind::kMaxPool && !is_dense(node.attrs.ints("dilations"))) return false;
  const auto& kernel = node.attrs.ints("kernel");
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (x[static_cast<int>(i) + 2] != Dim(kernel[i])) return false;
  }
  return true;
}

// Backends have a fast kernel for the global pools, in every layout.
Status global_pool_rule(Rewriter& r, NodeId n) {
  const Node& node = r.node(n);
  const bool mean = node.op == OpKind::kReduceMean || node.op == OpKind::kAveragePool;
  if (!mean && node.op != OpKind::kReduceMax && node.op != OpKind::kMaxPool) return {};
  const ValueId x = r.input(n, 0), y = r.output(n);
  if (!is_float(r.graph().type(x).dtype) || !covers_space(r.graph().type(x).shape, node)) return {};
  const std::string name = node.name;
  const OpKind op = mean ? OpKind::kGlobalAveragePool : OpKind::kGlobalMaxPool;
  LIMBER_ASSIGN(ValueId pooled, r.emit(op, {x}, {}, name));
  if (const Shape shape = r.graph().type(y).shape; r.graph().type(pooled).shape != shape) {
    LIMBER_ASSIGN(pooled, r.emit(OpKind::kReshape, {pooled}, {{"shape", shape}}, name));
  }
  r.replace(y, pooled);
  return {};
}

}  // namespace

Status use_global_pools(Graph& graph) { return sweep(graph, global_pool_rule).status(); }
Status fold_pad(Graph& graph) { return sweep(graph, pad_rule).status(); }

}  // namespace limber
