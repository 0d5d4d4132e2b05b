// How gradients are written: one rule per operator (OpDef::gradient) adds nodes to the graph.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "ops/op_def.h"

namespace limber {

// What a rule sees of one node, and its pen. Nodes are emitted into the graph that holds the node; the
// first failure sticks and turns later calls into no-ops that return kNoValue, so rules read like
// formulas. REQUIRES: constant shapes.
class GradientContext {
 public:
  // `dys`: the gradient of each output, kNoValue where the loss does not depend on it (at least one is
  // there). `wanted`: by input.
  GradientContext(Graph& graph, NodeId node, std::vector<ValueId> dys, std::vector<bool> wanted);

  // --- the node -------------------------------------------------------------------------------------
  const Node& node() const { return node_; }
  const Attrs& attrs() const { return node_.attrs; }
  bool has(size_t input) const { return input < node_.inputs.size() && node_.inputs[input] != kNoValue; }
  ValueId x(size_t input) const { return node_.inputs[input]; }
  ValueId y(size_t output = 0) const { return node_.outputs[output]; }
  ValueId dy(size_t output = 0) const { return dys_[output]; }
  bool wants(size_t input) const { return input < wanted_.size() && wanted_[input]; }
  // By value, since emitting moves values; a scalar for kNoValue, which only a failed rule asks about.
  TensorType type(ValueId v) const { return v == kNoValue ? TensorType{} : graph_.type(v); }
  Shape shape(ValueId v) const { return type(v).shape; }
  // The bytes of a constant; invalid for everything else.
  Tensor constant_of(ValueId v) const { return graph_.value(v).constant; }

  // The gradient of an input. It is summed over axes the input was broadcast along and reshaped to the
  // input's type. Ignored unless wanted. REQUIRES: not given yet
  void give(size_t input, ValueId gradient);
  // The rule cannot treat this node (an attribute without a gradient).
  void fail(const Status& status);

  // --- emitting -------------------------------------------------------------------------------------
  ValueId emit(OpKind op, std::vector<ValueId> inputs, Attrs attrs = {});
  // Several outputs; those not in `wanted` are absent.
  std::vector<ValueId> emit_all(OpKind op, std::vector<ValueId> inputs, Attrs attrs,
                                std::initializer_list<bool> wanted);
  ValueId add(ValueId a, ValueId b) { return emit(OpKind::kAdd, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return emit(OpKind::kSub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return emit(OpKind::kMul, {a, b}); }
  ValueId div(ValueId a, ValueId b) { return emit(OpKind::kDiv, {a, b}); }
  ValueId neg(ValueId a) { return emit(OpKind::kNeg, {a}); }
  // A number in the dtype of `like`, as a scalar that broadcasts.
  ValueId number(double value, ValueId like);
  ValueId constant(Tensor value);
  ValueId scale(ValueId a, double factor);
  ValueId zeros(const TensorType& type);
  ValueId reshape(ValueId a, const Shape& shape);
  ValueId expand(ValueId a, const Shape& shape);
  ValueId sum(ValueId a, std::vector<int64_t> axes, bool keepdims);
  // Summed over broadcast axes and reshaped until it has this shape.
  ValueId sum_to(ValueId a, const Shape& shape);

  // --- for the caller -------------------------------------------------------------------------------
  const Status& status() const { return status_; }
  // By input; kNoValue for those not wanted or not given (a gradient that is zero everywhere).
  const std::vector<ValueId>& gradients() const { return gradients_; }

 private:
  Graph& graph_;
  const Node node_;  // a copy: emitting moves nodes
  const std::vector<ValueId> dys_;
  const std::vector<bool> wanted_;
  std::vector<ValueId> gradients_;
  Status status_;
};

// What `limber check` says about training through an operator.
enum class GradientSupport : uint8_t {
  kRule,  // has a rule
  kZero,  // is flat wherever it has a gradient at all (Floor, Sign ...): what comes before gets none
  kNone,  // has none: its results are integers or booleans, or it is itself a backward operator
};
GradientSupport gradient_support(OpKind op);

}  // namespace limber
