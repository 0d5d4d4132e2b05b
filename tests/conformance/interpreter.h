// Runs a graph node by node with the reference backend: the oracle that the compiled plans and exported
// files are compared with.
#pragma once

#include <memory>
#include <vector>

#include "backend/ref/ref_backend.h"
#include "ir/graph.h"
#include "ir/parameters.h"

namespace limber::conformance {

using Tensors = std::vector<Tensor>;

// Each value has memory of its own. REQUIRES: constant shapes
class Interpreter {
 public:
  Interpreter(const Graph& graph, const Parameters& params)
      : graph_(graph),
        params_(params),
        backend_(make_ref_backend()),
        nodes_(backend_->begin(graph, {})),
        values_(graph.num_values()) {}

  Result<Tensors> run(const Tensors& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) values_[graph_.inputs()[i].index] = inputs[i];
    for (uint32_t v = 0; v < graph_.num_values(); ++v) {
      const Value& value = graph_.value(ValueId{v});
      if (value.role == Role::kConstant) values_[v] = value.constant;
      if (value.role == Role::kParameter) {
        LIMBER_ASSIGN(values_[v], params_.get(value.name));
      }
    }
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) LIMBER_TRY(run_node(NodeId{n}));
    Tensors outputs;
    for (const Output& output : graph_.outputs()) outputs.push_back(result(output));
    return outputs;
  }

 private:
  Status run_node(NodeId id) {
    const Node& node = graph_.node(id);
    const std::string where = fmt::format("node '{}' ({})", node.name, op_name(node.op));
    if (!nodes_->supports(id)) return unsupported("{}: not in the reference backend", where);
    LIMBER_ASSIGN(const auto candidates, nodes_->candidates(id, {}));
    LIMBER_ASSIGN(const auto kernel, nodes_->compile(id, candidates.at(0)));
    KernelIo io;
    for (ValueId v : node.inputs) io.inputs.push_back(v == kNoValue ? nullptr : values_[v.index].raw());
    for (ValueId v : node.outputs) {
      if (v == kNoValue) {
        io.outputs.push_back(nullptr);
        continue;
      }
      LIMBER_ASSIGN(values_[v.index], Tensor::allocate(graph_.type(v)));
      io.outputs.push_back(values_[v.index].raw());
    }
    LIMBER_ASSIGN(const auto scratch, Buffer::allocate(kernel->scratch_bytes()));
    io.scratch = scratch->data();
    LIMBER_ASSIGN(const auto bound, kernel->bind(std::move(io)));
    bound->run();
    return {};
  }

  Tensor result(const Output& output) const {
    Tensor value = values_[output.value.index];
    if (output.rows == kNoValue) return value;
    TensorType type = value.type();
    type.shape[0] = Dim(element_as_int(values_[output.rows.index], 0));
    return Tensor(type, value.buffer());
  }

  const Graph& graph_;
  const Parameters& params_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<NodeCompiler> nodes_;
  std::vector<Tensor> values_;
};

}  // namespace limber::conformance
