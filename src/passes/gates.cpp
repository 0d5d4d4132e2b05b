#include "passes/gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/op_def.h"

namespace limber {
namespace {

// Less than a filter: 0.07 of 100 are 7, though the product of these doubles is a little more.
constexpr double kRounding = 1e-9;

class GateInserter {
 public:
  GateInserter(Graph& graph, const GateOptions& options)
      : graph_(graph), options_(options), readers_(graph.readers()) {}

  Result<std::vector<FilterGate>> run() {
    const auto count = static_cast<uint32_t>(graph_.num_nodes());
    std::vector<FilterGate> gates;
    std::vector<std::string> values;  // names stay when numbers change
    for (uint32_t n = 0; n < count; ++n) {
      const Node conv = graph_.node(NodeId{n});
      if (!is_gated(conv)) continue;
      LIMBER_ASSIGN(FilterGate gate, make_gate(conv));
      LIMBER_TRY(multiply(behind_norm(conv.outputs[0]), gate.value, conv));
      values.push_back(graph_.value(gate.value).name);
      gates.push_back(std::move(gate));
    }
    if (gates.empty()) return invalid("there is no convolution with weights of its own to put a gate behind");
    graph_.compact();
    for (size_t i = 0; i < gates.size(); ++i) gates[i].value = *graph_.find(values[i]);
    return gates;
  }

 private:
  bool is_gated(const Node& node) const {
    return node.op == OpKind::kConv && graph_.value(node.inputs[1]).role == Role::kParameter &&
           node.attrs.s("act", "").empty() && (node.inputs.size() < 4 || node.inputs[3] == kNoValue);
  }

  ValueId behind_norm(ValueId v) const {
    const auto& readers = readers_[v.index];
    if (readers.size() != 1 || graph_.is_output(v)) return v;
    const Node& reader = graph_.node(readers[0]);
    return reader.op == OpKind::kBatchNorm && reader.inputs[0] == v ? reader.outputs[0] : v;
  }

  Result<FilterGate> make_gate(const Node& conv) {
    const std::string layer = graph_.value(conv.inputs[1]).name, name = "gate/" + layer;
    const TensorType x = graph_.type(conv.inputs[0]);
    const Dim channels = x.shape[1], filters = graph_.type(conv.inputs[1]).shape[0];
    std::vector<int64_t> space;
    for (int axis = 2; axis < x.rank(); ++axis) space.push_back(axis);
    FilterGate gate{layer, name + "/weight", name + "/bias", kNoValue};
    const ValueId weight = graph_.add_parameter(gate.weight, {DType::kF32, Shape{channels, filters}});
    const ValueId bias = graph_.add_parameter(gate.bias, {DType::kF32, Shape{filters}});
    gate.weight = graph_.value(weight).name;
    gate.bias = graph_.value(bias).name;
    LIMBER_ASSIGN(const ValueId size, emit(graph_, OpKind::kAbs, {conv.inputs[0]}, {}, name + "/size"));
    LIMBER_ASSIGN(const ValueId mean, emit(graph_, OpKind::kReduceMean, {size},
                                           {{"axes", space}, {"keepdims", int64_t{0}}}, name + "/mean"));
    LIMBER_ASSIGN(const ValueId sum, emit(graph_, OpKind::kMatMul, {mean, weight, bias}, {}, name + "/sum"));
    LIMBER_ASSIGN(gate.value, emit(graph_, OpKind::kRelu, {sum}, {}, options_.kept ? name + "/all" : name));
    if (options_.kept) {
      LIMBER_ASSIGN(gate.value, largest(gate.value, filters.value(), name));
    }
    return gate;
  }

  // Zeros, with the largest in their places.
  Result<ValueId> largest(ValueId gates, int64_t filters, const std::string& name) {
    const auto kept =
        static_cast<int64_t>(std::ceil(*options_.kept * static_cast<double>(filters) - kRounding));
    LIMBER_ASSIGN(
        const NodeId top,
        emit_node(graph_, OpKind::kTopK, {gates},
                  {{"axis", int64_t{1}}, {"k", std::clamp<int64_t>(kept, 1, filters)}}, 2, name + "/top"));
    const std::vector<ValueId> found = graph_.node(top).outputs;
    const ValueId zero = graph_.add_constant(name + "/zero", Tensor::scalar(0.0f));
    LIMBER_ASSIGN(const ValueId none, emit(graph_, OpKind::kMul, {gates, zero}, {}, name + "/none"));
    return emit(graph_, OpKind::kScatterElements, {none, found[1], found[0]}, {{"axis", int64_t{1}}}, name);
  }

  Status multiply(ValueId channels, ValueId gate, const Node& conv) {
    const TensorType type = graph_.type(channels);
    std::vector<Dim> dims = {type.shape[0], type.shape[1]};
    dims.resize(static_cast<size_t>(type.rank()), Dim(1));
    const std::string name = graph_.value(channels).name + "/gated";
    LIMBER_ASSIGN(const ValueId wide, emit(graph_, OpKind::kReshape, {gate},
                                           {{"shape", Shape(std::move(dims))}}, conv.name + "/gate"));
    const NodeId product{static_cast<uint32_t>(graph_.num_nodes())};
    LIMBER_ASSIGN(const ValueId gated, emit(graph_, OpKind::kMul, {channels, wide}, {}, name));
    graph_.replace_uses(channels, gated);
    graph_.mutable_node(product).inputs[0] = channels;
    return {};
  }

  Graph& graph_;
  const GateOptions& options_;
  const std::vector<std::vector<NodeId>> readers_;
};

}  // namespace

Result<std::vector<FilterGate>> insert_gates(Graph& graph, const GateOptions& options) {
  if (options.kept && !(*options.kept > 0 && *options.kept <= 1)) {
    return invalid("the share {} of the filters is to be kept, expected more than 0 and at most 1",
                   *options.kept);
  }
  Graph gated = graph;
  LIMBER_ASSIGN(std::vector<FilterGate> gates, GateInserter(gated, options).run());
  graph = std::move(gated);
  return gates;
}

std::vector<FilterGate> find_gates(const Graph& graph) {
  constexpr std::string_view kBegin = "gate/", kEnd = "/weight";
  std::vector<FilterGate> gates;
  for (const Node& node : graph.nodes()) {
    if (node.op != OpKind::kRelu) continue;
    const NodeId made_by = graph.value(node.inputs[0]).producer;
    if (made_by == kNoNode || graph.node(made_by).op != OpKind::kMatMul) continue;
    const Node& sum = graph.node(made_by);
    if (sum.inputs.size() < 3 || sum.inputs[2] == kNoValue) continue;
    const std::string &weight = graph.value(sum.inputs[1]).name, &bias = graph.value(sum.inputs[2]).name;
    if (!weight.starts_with(kBegin) || !weight.ends_with(kEnd)) continue;
    const std::string layer = weight.substr(kBegin.size(), weight.size() - kBegin.size() - kEnd.size());
    if (bias == fmt::format("{}{}/bias", kBegin, layer))
      gates.push_back({layer, weight, bias, node.outputs[0]});
  }
  return gates;
}

Status open_gates(const Graph& graph, const std::vector<FilterGate>& gates, Parameters& params) {
  for (const FilterGate& gate : gates) {
    LIMBER_ASSIGN(Tensor weight, Tensor::zeros(graph.type(*graph.find(gate.weight))));
    LIMBER_ASSIGN(Tensor bias, Tensor::zeros(graph.type(*graph.find(gate.bias))));
    std::fill(bias.data<float>().begin(), bias.data<float>().end(), 1.0f);
    params.set(gate.weight, std::move(weight));
    params.set(gate.bias, std::move(bias));
  }
  return {};
}

}  // namespace limber
