#include "base/hash.h"

#include <bit>

#include "ir/graph.h"
#include "ir/text_format.h"

namespace limber {
namespace {

class GraphHasher {
 public:
  explicit GraphHasher(const Graph& graph) : graph_(graph), keys_(graph.num_values(), 0) {}

  uint64_t run() {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) set_key(graph_.inputs()[i], "input", i);
    for (uint32_t v = 0; v < graph_.num_values(); ++v) stored(ValueId{v});
    // Unused inputs count; unused parameters and constants do not.
    hasher_.add(uint64_t{graph_.inputs().size()});
    for (ValueId v : graph_.inputs()) hasher_.add(graph_.value(v).name).add(graph_.type(v).to_string());
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) node(n);
    hasher_.add(uint64_t{graph_.outputs().size()});
    for (const Output& o : graph_.outputs()) {
      hasher_.add(o.name).add(key(o.value)).add(key(o.rows));
      if (o.into != kNoValue) hasher_.add("into").add(key(o.into));
    }
    return hasher_.digest();
  }

 private:
  uint64_t key(ValueId v) const { return v == kNoValue ? 0 : keys_[v.index]; }

  void set_key(ValueId v, std::string_view kind, uint64_t number) {
    keys_[v.index] = Hasher().add(kind).add(number).digest();
  }

  void stored(ValueId v) {
    const Value& value = graph_.value(v);
    if (value.role == Role::kConstant) set_key(v, "const", text::constant_hash(value.constant));
    if (value.role == Role::kParameter || value.role == Role::kState) {
      const uint64_t number = Hasher().add(value.name).add(value.type.to_string()).digest();
      set_key(v, value.role == Role::kState ? "state" : "param", number);
    }
  }

  void attribute(const AttrValue& value) {
    hasher_.add(uint64_t{value.index()});
    std::visit([this](const auto& v) { add(v); }, value);
  }
  void add(int64_t v) { hasher_.add(static_cast<uint64_t>(v)); }
  void add(double v) { hasher_.add(std::bit_cast<uint64_t>(v)); }
  void add(const std::string& v) { hasher_.add(v); }
  void add(const Shape& v) { hasher_.add(v.to_string()); }
  template <typename T>
  void add(const std::vector<T>& values) {
    hasher_.add(uint64_t{values.size()});
    for (const T& v : values) add(v);
  }

  void node(uint32_t index) {
    const Node& node = graph_.nodes()[index];
    hasher_.add(op_name(node.op)).add(uint64_t{node.inputs.size()});
    for (ValueId v : node.inputs) hasher_.add(key(v));
    hasher_.add(uint64_t{node.attrs.entries().size()});
    for (const auto& [name, value] : node.attrs.entries()) {
      hasher_.add(name);
      attribute(value);
    }
    hasher_.add(uint64_t{node.outputs.size()});
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId v = node.outputs[i];
      if (v == kNoValue) {
        hasher_.add(uint64_t{0});
      } else {
        set_key(v, "node", (uint64_t{index} << 32) | i);
        hasher_.add(key(v)).add(graph_.type(v).to_string());
      }
    }
  }

  const Graph& graph_;
  Hasher hasher_;
  std::vector<uint64_t> keys_;  // by value: where it comes from, never its name or number
};

}  // namespace

uint64_t hash(const Graph& graph) { return GraphHasher(graph).run(); }

}  // namespace limber
