#include "passes/match.h"
#include "passes/passes.h"

namespace limber {
namespace {

// The Conv or MatMul that makes `v`, can still take an activation, and serves nobody else.
NodeId open_producer(const Rewriter& r, ValueId v) {
  NodeId n = r.producer(v, OpKind::kConv);
  if (n == kNoNode) n = r.producer(v, OpKind::kMatMul);
  if (n == kNoNode || !r.used_once(v) || r.is_static(v)) return kNoNode;
  if (!is_float(r.graph().type(v).dtype)) return kNoNode;
  return fused_activation(r.node(n).attrs).op == OpKind::kIdentity ? n : kNoNode;
}

Status activation_rule(Rewriter& r, NodeId n) {
  if (!is_unary(r.node(n).op)) return {};
  const auto activation = as_activation(r.node(n));
  if (!activation) return {};
  const ValueId x = r.input(n, 0);
  const NodeId producer = open_producer(r, x);
  if (producer == kNoNode || !r.replace(r.output(n), x)) return {};
  set_activation(r.edit_attrs(producer), *activation);
  return {};
}

bool takes_residual(const Rewriter& r, NodeId producer, NodeId add, ValueId y, ValueId other) {
  return producer != kNoNode && r.input(producer, 3) == kNoValue && y != other &&
         r.graph().type(other) == r.graph().type(y) && r.graph().type(r.output(add)) == r.graph().type(y);
}

Status residual_rule(Rewriter& r, NodeId n) {
  if (r.node(n).op != OpKind::kAdd) return {};
  const ValueId a = r.input(n, 0), b = r.input(n, 1);
  NodeId first = open_producer(r, a), second = open_producer(r, b);
  if (!takes_residual(r, first, n, a, b)) first = kNoNode;
  if (!takes_residual(r, second, n, b, a)) second = kNoNode;
  if (first == kNoNode && second == kNoNode) return {};
  // Nobody but this Add reads what the chosen one makes, so the other operand cannot depend on it.
  const bool take_second = first == kNoNode || (second != kNoNode && second.index > first.index);
  const NodeId producer = take_second ? second : first;
  const ValueId y = take_second ? b : a, other = take_second ? a : b;
  r.set_input(producer, 3, other);
  LIMBER_ASSERT(r.replace(r.output(n), y));
  return {};
}

}  // namespace

Status fuse_activation(Graph& graph) { return sweep(graph, activation_rule).status(); }
Status fuse_residual(Graph& graph) { return sweep(graph, residual_rule).status(); }

}  // namespace limber
