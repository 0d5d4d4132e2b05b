#include "backend/ref/ref_backend.h"

#include <array>

#include "backend/ref/factory.h"
#include "ops/op_def.h"

namespace limber {
namespace {

using ref::KernelResult;
using ref::NodeView;

constexpr std::array<KernelResult (*)(const NodeView&), kOpCount> kFactories = {
#define LIMBER_OP(name) &ref::make<OpKind::k##name>,
#include "ir/op_list.inc"
#undef LIMBER_OP
};

Status check_type(const Graph& graph, const Node& node, ValueId value) {
  if (value == kNoValue) return {};
  const TensorType& type = graph.type(value);
  if (!type.shape.is_constant()) {
    return invalid("{} '{}': shape [{}] of '{}' is symbolic; bind the graph first", op_name(node.op),
                   node.name, type.shape.to_string(), graph.value(value).name);
  }
  if (type.rank() > kMaxRank) {
    return unsupported("{} '{}': '{}' has rank {}, the limit is {}", op_name(node.op), node.name,
                       graph.value(value).name, type.rank(), kMaxRank);
  }
  return {};
}

KernelResult make_for(const Graph& graph, const Node& node) {
  for (ValueId v : node.inputs) LIMBER_TRY(check_type(graph, node, v));
  for (ValueId v : node.outputs) LIMBER_TRY(check_type(graph, node, v));
  return kFactories[static_cast<size_t>(node.op)]({graph, node});
}

// Assumes 10 ns per element and 1 GFLOP/s: slow enough that any faster backend is preferred.
double estimated_seconds(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  int64_t elements = 0;
  const auto count = [&](const std::vector<ValueId>& values) {
    for (ValueId v : values) {
      if (v != kNoValue) elements += graph.type(v).shape.elements();
    }
  };
  count(node.inputs);
  count(node.outputs);
  return static_cast<double>(elements) * 1e-8 + node_flops(graph, id) * 1e-9;
}

class RefNodeCompiler : public NodeCompiler {
 public:
  explicit RefNodeCompiler(const Graph& graph) : graph_(graph) {}

  bool supports(NodeId node) override { return make_for(graph_, graph_.node(node)).ok(); }

  Result<std::vector<Candidate>> candidates(NodeId id, std::span<const Layout>) override {
    const Node& node = graph_.node(id);
    LIMBER_TRY(make_for(graph_, node).status());
    Candidate candidate = plain_candidate(node, "ref", estimated_seconds(graph_, id));
    candidate.view = node.op == OpKind::kIdentity || node.op == OpKind::kReshape;
    return std::vector<Candidate>{std::move(candidate)};
  }

  Result<std::unique_ptr<Kernel>> compile(NodeId node, const Candidate&) override {
    return make_for(graph_, graph_.node(node));
  }

 private:
  const Graph& graph_;
};

class RefBackend : public Backend {
 public:
  std::string_view name() const override { return "ref"; }

  std::unique_ptr<NodeCompiler> begin(const Graph& graph, const std::vector<bool>&) override {
    return std::make_unique<RefNodeCompiler>(graph);
  }
};

}  // namespace

std::unique_ptr<Backend> make_ref_backend() { return std::make_unique<RefBackend>(); }

namespace ref {

Status no_kernel(const NodeView& v, DType dtype) {
  return unsupported("{} '{}': the reference backend has no kernel for {}", op_name(v.node.op), v.node.name,
                     dtype_name(dtype));
}

Status check_floats(const NodeView& v) {
  for (const auto* ids : {&v.node.inputs, &v.node.outputs}) {
    for (ValueId id : *ids) {
      if (id != kNoValue && !is_float(v.graph.type(id).dtype)) return no_kernel(v, v.graph.type(id).dtype);
    }
  }
  return {};
}

}  // namespace ref
}  // namespace limber
