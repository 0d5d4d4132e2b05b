#include <algorithm>

#include "ops/op_def.h"

namespace limber {
namespace {

// Replaces symbols and remembers those that have no number.
class Binder {
 public:
  explicit Binder(const std::map<std::string, int64_t>& numbers) {
    for (const auto& [name, number] : numbers) numbers_[Symbol(name)] = number;
  }

  Status check() const {
    for (const auto& [symbol, number] : numbers_) {
      if (number < 1)
        return invalid("symbol '{}' is given {}, expected a number of at least 1", symbol.name(), number);
    }
    return {};
  }

  Status apply(Shape& shape) {
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i].is_constant()) continue;
      const auto number = numbers_.find(shape[i].symbol());
      if (number == numbers_.end()) {
        note_unbound(shape[i].symbol());
        continue;
      }
      const auto bound = shape[i].bind(number->first, number->second);
      if (!bound)
        return invalid("dimension {} overflows with {}={}", shape[i].to_string(), number->first.name(),
                       number->second);
      shape[i] = *bound;
    }
    return {};
  }

  Status unbound() const {
    if (unbound_.empty()) return {};
    std::string names, example;
    for (const Symbol& symbol : unbound_) {
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", symbol.name());
      example += fmt::format("{}{}=1", example.empty() ? "" : ", ", symbol.name());
    }
    return invalid("no number for the symbolic dimension{} {}; give every symbol one, for instance {}",
                   unbound_.size() == 1 ? "" : "s", names, example);
  }

 private:
  void note_unbound(Symbol symbol) {
    if (std::find(unbound_.begin(), unbound_.end(), symbol) == unbound_.end()) unbound_.push_back(symbol);
  }

  std::map<Symbol, int64_t> numbers_;
  std::vector<Symbol> unbound_;
};

Status bind_value(Binder& binder, Value& value) {
  LIMBER_TRY(binder.apply(value.type.shape));
  return check_type(value.type);
}

Status bind_attrs(Binder& binder, Node& node) {
  const Attrs before = node.attrs;
  for (const auto& [name, value] : before.entries()) {
    if (value.index() != static_cast<size_t>(AttrKind::kDims)) continue;
    Shape dims = std::get<Shape>(value);
    LIMBER_TRY(binder.apply(dims));
    node.attrs.set(name, std::move(dims));
  }
  return {};
}

// What the node produces becomes a constant of the same name; the node is left without outputs.
void fold_shape(Graph& graph, Node& node) {
  const ValueId v = node.outputs[0];
  if (v == kNoValue) return;
  const std::vector<int64_t> dims = graph.type(node.inputs[0]).shape.dims();
  Value& value = graph.mutable_value(v);
  value.constant = Tensor::from<int64_t>(dims, Shape{static_cast<int64_t>(dims.size())});
  value.role = Role::kConstant;
  value.producer = kNoNode;
  node.outputs[0] = kNoValue;
}

Status retype_node(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  LIMBER_ASSIGN(auto types,
                infer_types(graph, node.op, node.inputs, node.attrs, static_cast<int>(node.outputs.size())));
  for (size_t i = 0; i < types.size(); ++i) {
    if (node.outputs[i] != kNoValue) graph.mutable_value(node.outputs[i]).type = std::move(types[i]);
  }
  return {};
}

}  // namespace

Result<Graph> bind(const Graph& graph, const std::map<std::string, int64_t>& symbols) {
  Graph bound = graph;
  Binder binder(symbols);
  LIMBER_TRY(binder.check());
  for (uint32_t v = 0; v < bound.num_values(); ++v) {
    Value& value = bound.mutable_value(ValueId{v});
    if (value.role == Role::kActivation) continue;
    if (Status status = bind_value(binder, value); !status.ok())
      return status.in(fmt::format("value '{}'", value.name));
  }
  for (uint32_t n = 0; n < bound.num_nodes(); ++n)
    LIMBER_TRY(bind_attrs(binder, bound.mutable_node(NodeId{n})));
  LIMBER_TRY(binder.unbound());

  bool folded = false;
  for (uint32_t n = 0; n < bound.num_nodes(); ++n) {
    Node& node = bound.mutable_node(NodeId{n});
    if (Status status = retype_node(bound, NodeId{n}); !status.ok()) {
      return status.in(fmt::format("node '{}'", node.name));
    }
    if (node.op == OpKind::kShapeOf) {
      fold_shape(bound, node);
      folded = true;
    }
  }
  if (folded) bound.compact();
  return bound;
}

std::vector<std::string> symbols(const Graph& graph) {
  std::vector<std::string> names;
  for (ValueId v : graph.inputs()) {
    for (const Dim& d : graph.type(v).shape) {
      if (d.is_constant()) continue;
      std::string name(d.symbol().name());
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace limber
