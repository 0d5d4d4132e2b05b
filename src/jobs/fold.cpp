#include "jobs/fold.h"

#include <cstring>

#include "backend/ref/ref_backend.h"
#include "passes/passes.h"
#include "runtime/compile.h"
#include "runtime/session.h"

namespace limber {
namespace {

// Depends on constants, parameters and state only, and takes work to get.
std::vector<bool> computed_statics(const Graph& graph) {
  std::vector<bool> fixed(graph.num_values());
  for (size_t v = 0; v < fixed.size(); ++v) {
    const Role role = graph.values()[v].role;
    fixed[v] = role == Role::kParameter || role == Role::kConstant || role == Role::kState;
  }
  std::vector<bool> computed(graph.num_values());
  for (const Node& node : graph.nodes()) {
    bool all = true;
    for (ValueId input : node.inputs) all = all && (input == kNoValue || fixed[input.index]);
    if (!all) continue;
    for (ValueId output : node.outputs) {
      if (output != kNoValue) fixed[output.index] = computed[output.index] = true;
    }
  }
  return computed;
}

// Those that something outside of their kind reads. An output of the graph stays computed: a parameter
// cannot be an output.
std::vector<ValueId> frontier(const Graph& graph, const std::vector<bool>& computed) {
  std::vector<ValueId> values;
  const auto readers = graph.readers();
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    if (!computed[v] || graph.is_output(ValueId{v})) continue;
    bool wanted = false;
    for (NodeId reader : readers[v]) wanted = wanted || !computed[graph.node(reader).outputs[0].index];
    if (wanted) values.push_back(ValueId{v});
  }
  return values;
}

// The values of `wanted`, by name.
Result<std::vector<Tensor>> evaluate(const Graph& graph, const std::shared_ptr<Parameters>& params,
                                     const std::vector<ValueId>& wanted) {
  Graph part = graph;
  part.mutable_outputs().clear();
  for (ValueId v : wanted) part.add_output(v, graph.value(v).name);
  part.compact();
  CompileSettings options;
  options.optimize = false;
  // Inputs stay in the graph although nothing reads them; any size will do.
  for (const Value& value : part.values()) {
    for (const Dim& dim : value.type.shape) {
      if (!dim.is_constant()) options.symbols[std::string(dim.symbol().name())] = 1;
    }
  }
  LIMBER_ASSIGN(const auto plan, compile(part, params, {make_ref_backend()}, options));
  LIMBER_ASSIGN(const auto session, Session::create(plan));
  LIMBER_TRY(session->run());
  std::vector<Tensor> values;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Tensor result = session->output(i);
    LIMBER_ASSIGN(Tensor copy, Tensor::allocate(result.type()));
    std::memcpy(copy.raw(), result.raw(), result.bytes());
    values.push_back(std::move(copy));
  }
  return values;
}

}  // namespace

Result<Model> fold_for_inference(const Model& model) {
  Model folded = model;
  LIMBER_TRY(optimize_for_inference(folded.graph));
  const auto wanted = frontier(folded.graph, computed_statics(folded.graph));
  folded.params = std::make_shared<Parameters>();
  if (!wanted.empty()) {
    LIMBER_ASSIGN(const auto values, evaluate(folded.graph, model.params, wanted));
    for (size_t i = 0; i < wanted.size(); ++i) {
      const std::string name = folded.graph.value(wanted[i]).name + ".folded";
      const ValueId parameter = folded.graph.add_parameter(name, values[i].type());
      folded.params->set(folded.graph.value(parameter).name, values[i]);
      folded.graph.replace_uses(wanted[i], parameter);
    }
    folded.graph.compact();
  }
  for (const Value& value : folded.graph.values()) {
    if (value.role != Role::kParameter && value.role != Role::kState) continue;
    if (folded.params->contains(value.name)) continue;
    LIMBER_ASSIGN(Tensor tensor, model.params->get(value.name));
    folded.params->set(value.name, std::move(tensor));
  }
  return folded;
}

}  // namespace limber
