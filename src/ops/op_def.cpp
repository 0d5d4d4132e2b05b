#include "ops/op_def.h"

#include <algorithm>
#include <array>

#include "ops/definitions.h"
#include "ops/rules.h"

namespace limber {
namespace {

constinit const std::array<const OpDef*, kOpCount> kTable = {
#define LIMBER_OP(name) &k##name##Op,
#include "ir/op_list.inc"
#undef LIMBER_OP
};

Status check_count(std::string_view what, size_t count, int min, int max) {
  if (count >= static_cast<size_t>(min) && (max < 0 || count <= static_cast<size_t>(max))) return {};
  if (max < 0) return invalid("{} {}, expected at least {}", count, what, min);
  if (min == max) return invalid("{} {}, expected {}", count, what, min);
  return invalid("{} {}, expected {} to {}", count, what, min, max);
}

Status check_attrs(const OpDef& def, const Attrs& attrs) {
  for (const auto& [name, value] : attrs.entries()) {
    const auto spec = std::find_if(def.attrs.begin(), def.attrs.end(),
                                   [&name = name](const AttrSpec& s) { return s.name == name; });
    if (spec == def.attrs.end()) return invalid("unknown attribute '{}'", name);
    if (value.index() != static_cast<size_t>(spec->kind)) {
      return invalid("attribute '{}' is of kind {}, expected {}", name,
                     attr_kind_name(static_cast<AttrKind>(value.index())), attr_kind_name(spec->kind));
    }
  }
  for (const AttrSpec& spec : def.attrs) {
    if (spec.required && !attrs.has(spec.name)) {
      return invalid("attribute '{}' ({}) is missing", spec.name, attr_kind_name(spec.kind));
    }
  }
  return {};
}

Result<std::vector<TensorType>> apply_rule(const Graph& graph, const OpDef& def,
                                           std::span<const ValueId> inputs, const Attrs& attrs,
                                           int num_outputs) {
  LIMBER_TRY(check_count("inputs", inputs.size(), def.min_inputs, def.max_inputs));
  LIMBER_TRY(check_count("outputs", static_cast<size_t>(std::max(num_outputs, 0)), def.min_outputs,
                         def.max_outputs));
  LIMBER_TRY(check_attrs(def, attrs));
  std::vector<const TensorType*> types;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == kNoValue) {
      if (def.max_inputs < 0 || i < static_cast<size_t>(def.min_inputs))
        return invalid("input {} is missing", i);
      types.push_back(nullptr);
      continue;
    }
    if (inputs[i].index >= graph.num_values()) return invalid("input {} does not exist", i);
    types.push_back(&graph.type(inputs[i]));
    if (Status status = check_type(*types.back()); !status.ok()) {
      return status.in(fmt::format("input {} '{}'", i, graph.value(inputs[i]).name));
    }
  }
  LIMBER_ASSIGN(auto outputs, def.infer({types, attrs, num_outputs}));
  LIMBER_ASSERT(outputs.size() == static_cast<size_t>(num_outputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (Status status = check_type(outputs[i]); !status.ok()) return status.in(fmt::format("output {}", i));
  }
  return outputs;
}

}  // namespace

const OpDef& op_def(OpKind op) {
  LIMBER_ASSERT(static_cast<size_t>(op) < kTable.size());
  return *kTable[static_cast<size_t>(op)];
}

Status check_type(const TensorType& type) {
  constexpr int64_t kLimit = rules::kMaxElements;
  if (type.rank() > kMaxRank)
    return invalid("type {} has rank {}, expected at most {}", type.to_string(), type.rank(), kMaxRank);
  std::vector<int64_t> constants;
  for (const Dim& d : type.shape) {
    if (d.is_constant()) {
      if (d.value() < 0) return invalid("type {} has a negative dimension", type.to_string());
      constants.push_back(d.value());
    } else if (d.scale() < 0 || d.scale() > kLimit || d.offset() < -kLimit || d.offset() > kLimit) {
      return invalid("type {}: dimension {} is negative or too large", type.to_string(), d.to_string());
    }
  }
  if (!checked_elements(constants, kLimit)) {
    return error(Code::kResourceExhausted, "type {} has more than 2^40 elements", type.to_string());
  }
  return {};
}

Result<std::vector<TensorType>> infer_types(const Graph& graph, OpKind op, std::span<const ValueId> inputs,
                                            const Attrs& attrs, int num_outputs) {
  auto types = apply_rule(graph, op_def(op), inputs, attrs, num_outputs);
  if (!types.ok()) return types.status().in(op_name(op));
  return types;
}

Result<NodeId> emit_node(Graph& graph, OpKind op, std::vector<ValueId> inputs, Attrs attrs, int num_outputs,
                         std::string_view name) {
  auto types = infer_types(graph, op, inputs, attrs, num_outputs);
  if (!types.ok()) return types.status().in(fmt::format("node '{}'", name));
  return graph.add_node(op, std::move(inputs), std::move(attrs), *std::move(types), name);
}

Result<ValueId> emit(Graph& graph, OpKind op, std::vector<ValueId> inputs, Attrs attrs,
                     std::string_view name) {
  LIMBER_ASSIGN(const NodeId node, emit_node(graph, op, std::move(inputs), std::move(attrs), 1, name));
  return graph.node(node).outputs[0];
}

double node_flops(const Graph& graph, NodeId node) {
  const Node& n = graph.node(node);
  return op_def(n.op).flops(graph, n);
}

double node_bytes(const Graph& graph, NodeId node) {
  const Node& n = graph.node(node);
  std::vector<ValueId> values = n.inputs;
  values.insert(values.end(), n.outputs.begin(), n.outputs.end());
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  double bytes = 0;
  for (ValueId v : values) {
    if (v != kNoValue)
      bytes += rules::elements(graph, v) * static_cast<double>(dtype_size(graph.type(v).dtype));
  }
  return bytes;
}

bool is_unary(OpKind op) { return op_def(op).family == OpFamily::kUnary; }
bool is_binary(OpKind op) { return op_def(op).family == OpFamily::kBinary || is_comparison(op); }
bool is_comparison(OpKind op) { return op_def(op).family == OpFamily::kComparison; }
bool is_reduction(OpKind op) { return op_def(op).family == OpFamily::kReduction; }

}  // namespace limber
