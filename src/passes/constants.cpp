#include <map>
#include <unordered_map>

#include "base/hash.h"
#include "ops/static_value.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace limber {
namespace {

// --- folding -------------------------------------------------------------------------------------------

class ConstantFolder {
 public:
  Status operator()(Rewriter& r, NodeId n) {
    const Node& node = r.node(n);
    std::vector<const TensorType*> types;
    std::vector<const StaticValue*> values;
    for (ValueId v : node.inputs) {
      types.push_back(v == kNoValue ? nullptr : &r.graph().type(v));
      values.push_back(v == kNoValue ? nullptr : known(r.graph(), v));
      if (v != kNoValue && values.back() == nullptr) return {};
    }
    std::vector<TensorType> outputs;
    for (ValueId v : node.outputs) {
      if (v == kNoValue) return {};
      outputs.push_back(r.graph().type(v));
    }
    const auto results = evaluate_static(node.op, node.attrs, types, values, outputs);
    if (!results) return {};
    replace_outputs(r, n, *results);
    return {};
  }

 private:
  // What `v` holds when it is a small constant, else nullptr.
  const StaticValue* known(const Graph& graph, ValueId v) {
    const Value& value = graph.value(v);
    if (value.role != Role::kConstant) return nullptr;
    auto it = known_.find(v.index);
    if (it == known_.end()) it = known_.emplace(v.index, static_from_tensor(value.constant)).first;
    return it->second ? &*it->second : nullptr;
  }

  static void replace_outputs(Rewriter& r, NodeId n, const std::vector<StaticValue>& results) {
    const std::vector<ValueId> outputs = r.node(n).outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!results[i].is_constant()) continue;
      Tensor tensor = tensor_from_static(results[i]);
      if (tensor.type() != r.graph().type(outputs[i])) continue;
      const std::string name = r.graph().value(outputs[i]).name;
      r.replace(outputs[i], r.graph().add_constant(name, std::move(tensor)));
    }
  }

  std::map<uint32_t, std::optional<StaticValue>> known_;
};

// --- common subexpressions -------------------------------------------------------------------------------

constexpr int64_t kMaxMergedElements = 4096;  // equal large constants are rare and slow to compare

// Equal things have equal keys, and the other way round as far as 64 bits go.
class Merger {
 public:
  explicit Merger(const Graph& graph) {
    for (uint32_t v = 0; v < graph.num_values(); ++v) add_constant(graph, ValueId{v});
  }

  Status operator()(Rewriter& r, NodeId n) {
    merge_constants(r, n);
    const auto [begin, end] = nodes_.equal_range(key(r.node(n)));
    for (auto it = begin; it != end; ++it) {
      if (same(r.node(it->second), r.node(n)) && merge(r, it->second, n)) return {};
    }
    nodes_.emplace(key(r.node(n)), n);
    return {};
  }

 private:
  static bool same_bytes(const Tensor& a, const Tensor& b) {
    return a.type() == b.type() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  }

  void add_constant(const Graph& graph, ValueId v) {
    const Value& value = graph.value(v);
    if (value.role != Role::kConstant || value.constant.elements() > kMaxMergedElements) return;
    const std::string_view bytes(static_cast<const char*>(value.constant.raw()), value.constant.bytes());
    const uint64_t key = Hasher().add(value.type.to_string()).add(bytes).digest();
    const auto [it, added] = constants_.emplace(key, v);
    if (!added && same_bytes(graph.value(it->second).constant, value.constant)) twins_.emplace(v, it->second);
  }

  void merge_constants(Rewriter& r, NodeId n) {
    for (size_t i = 0; i < r.node(n).inputs.size(); ++i) {
      const auto twin = twins_.find(r.input(n, i));
      if (twin != twins_.end()) r.set_input(n, i, twin->second);
    }
  }

  static uint64_t key(const Node& node) {
    Hasher hasher;
    hasher.add(static_cast<uint64_t>(node.op)).add(uint64_t{node.outputs.size()});
    for (ValueId v : node.inputs) hasher.add(uint64_t{v.index});
    for (const auto& [name, value] : node.attrs.entries()) {
      hasher.add(name);
      if (const auto* i = std::get_if<int64_t>(&value)) hasher.add(static_cast<uint64_t>(*i));
      if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
        for (int64_t i : *list) hasher.add(static_cast<uint64_t>(i));
      }
    }
    return hasher.digest();
  }

  static bool same(const Node& a, const Node& b) {
    return a.op == b.op && a.inputs == b.inputs && a.attrs == b.attrs && a.outputs.size() == b.outputs.size();
  }

  static bool merge(Rewriter& r, NodeId kept, NodeId n) {
    const std::vector<ValueId> to = r.node(kept).outputs, from = r.node(n).outputs;
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] != kNoValue && to[i] == kNoValue) return false;
    }
    bool all = true;
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] != kNoValue && !r.unused(from[i])) all = r.replace(from[i], to[i]) && all;
    }
    return all;
  }

  std::unordered_map<uint64_t, ValueId> constants_;
  std::map<ValueId, ValueId> twins_;
  std::unordered_multimap<uint64_t, NodeId> nodes_;
};

}  // namespace

Status fold_constants(Graph& graph) {
  ConstantFolder folder;
  return sweep(graph, std::ref(folder)).status();
}

Status merge_common(Graph& graph) {
  Merger merger(graph);
  return sweep(graph, std::ref(merger)).status();
}

}  // namespace limber
