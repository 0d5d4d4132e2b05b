// What is known about an operator without running it. One file per family in this folder defines the
// OpDefs; ir/op_list.inc is the list.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace limber {

struct AttrSpec {
  std::string_view name;
  AttrKind kind;
  bool required;
};

// What a type rule may look at. Absent optional inputs are nullptr.
struct InferArgs {
  std::span<const TensorType* const> inputs;
  const Attrs& attrs;
  int num_outputs;  // how many the node has; a rule returns exactly as many types

  const TensorType& input(int i) const { return *inputs[static_cast<size_t>(i)]; }
  bool has(int i) const {
    return static_cast<size_t>(i) < inputs.size() && inputs[static_cast<size_t>(i)] != nullptr;
  }
};

class GradientContext;

struct InPlace {
  int output, input;
};

enum class OpFamily : uint8_t { kOther, kUnary, kBinary, kComparison, kReduction };

struct OpDef {
  OpKind op;
  int min_inputs, max_inputs;    // max -1: any number, none absent; inputs below min are never absent
  int min_outputs, max_outputs;  // max -1: any number
  std::span<const AttrSpec> attrs;
  // Output types from input types and attributes. The caller has checked counts and attribute kinds;
  // values (axes out of range, channels that do not match) are checked here.
  Result<std::vector<TensorType>> (*infer)(const InferArgs& args);
  // Floating-point operations of one execution; a multiply-add counts two. REQUIRES: constant shapes
  double (*flops)(const Graph& graph, const Node& node);
  OpFamily family = OpFamily::kOther;
  // Writes the gradients of the inputs as nodes; see ops/gradient.h. nullptr: there is no rule.
  void (*gradient)(GradientContext& context) = nullptr;
  // Outputs that any kernel of this operator may write over an input of equal type, so that updating a
  // parameter or state needs no second copy of it.
  std::span<const InPlace> in_place = {};
};

const OpDef& op_def(OpKind op);

// A tensor type the engine can work with: rank <= kMaxRank, no negative dimension, at most 2^40
// elements. infer_types asks it of inputs and outputs.
Status check_type(const TensorType& type);

// Checks counts and attributes against the definition, then applies the type rule. The message of a
// failure starts with the operator.
Result<std::vector<TensorType>> infer_types(const Graph& graph, OpKind op, std::span<const ValueId> inputs,
                                            const Attrs& attrs, int num_outputs);

// Adds a node with inferred output types. The message of a failure names the operator and `name`.
Result<NodeId> emit_node(Graph& graph, OpKind op, std::vector<ValueId> inputs, Attrs attrs, int num_outputs,
                         std::string_view name = {});
// The same for the usual case of one output.
Result<ValueId> emit(Graph& graph, OpKind op, std::vector<ValueId> inputs, Attrs attrs = {},
                     std::string_view name = {});

// verify_structure and, for every node, that its outputs have the types its rule gives.
Status verify(const Graph& graph);

// The graph with every symbolic dimension replaced by the given number: types re-inferred, dims
// attributes bound, ShapeOf folded to constants. Fails naming the symbol when one is left.
Result<Graph> bind(const Graph& graph, const std::map<std::string, int64_t>& symbols);
// Names of all symbols in input types, in order of appearance.
std::vector<std::string> symbols(const Graph& graph);

// The last output of SgdUpdate (2) and AdamUpdate (4), f32[kUpdateEffects]: sums over the parameter's
// elements. The gradient is that of the loss, without weight decay.
enum UpdateEffect : int {
  kEffectGain,             // gradient * (old - new): to first order, how far this step lowers the loss
  kEffectGradientSquares,  // gradient^2
  kEffectWeightSquares,    // old^2
  kUpdateEffects
};

double node_flops(const Graph& graph, NodeId node);  // REQUIRES: constant shapes
double node_bytes(const Graph& graph, NodeId node);  // bytes read and written once each

// Families, for code that treats them alike.
bool is_unary(OpKind op);       // x -> y, element-wise, same shape
bool is_binary(OpKind op);      // a, b -> y, element-wise with broadcasting
bool is_comparison(OpKind op);  // those of is_binary that give bool from numbers
bool is_reduction(OpKind op);   // Reduce*

// The activations that fuse into Conv and MatMul ("act"), as the unary operator they stand for.
struct Activation {
  OpKind op = OpKind::kIdentity;  // kIdentity: none
  double alpha = 0, beta = 0;
  bool tanh_gelu = false;
};
Activation fused_activation(const Attrs& attrs);                  // of a Conv or MatMul
std::optional<Activation> as_activation(const Node& unary);       // nullopt: cannot be fused
void set_activation(Attrs& attrs, const Activation& activation);  // writes act, act_alpha, act_beta

}  // namespace limber
