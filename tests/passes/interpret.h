// Runs a graph node by node on the reference kernels, without compiling a plan: what passes are
// compared on.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/ref/ref_backend.h"
#include "base/random.h"
#include "ops/op_def.h"

namespace limber {

using TensorMap = std::map<std::string, Tensor>;

// Outputs in graph order. `stored` has every input and parameter by name. REQUIRES: constant shapes
inline std::vector<Tensor> interpret(const Graph& graph, const TensorMap& stored) {
  const std::unique_ptr<Backend> backend = make_ref_backend();
  const auto nodes = backend->begin(graph, {});
  std::vector<Tensor> tensors(graph.num_values());
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    const Value& value = graph.values()[v];
    tensors[v] = value.role == Role::kConstant     ? value.constant
                 : value.role == Role::kActivation ? *Tensor::zeros(value.type)
                                                   : stored.at(value.name);
  }
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.nodes()[n];
    const auto candidates = nodes->candidates(NodeId{n}, {});
    EXPECT_TRUE(candidates.ok()) << candidates.status().message();
    const auto kernel = nodes->compile(NodeId{n}, candidates->front());
    EXPECT_TRUE(kernel.ok()) << kernel.status().message();
    KernelIo io;
    for (ValueId v : node.inputs) io.inputs.push_back(v == kNoValue ? nullptr : tensors[v.index].raw());
    for (ValueId v : node.outputs) io.outputs.push_back(v == kNoValue ? nullptr : tensors[v.index].raw());
    const auto scratch = *Buffer::allocate((*kernel)->scratch_bytes());
    io.scratch = scratch->data();
    (*(*kernel)->bind(std::move(io)))->run();
  }
  std::vector<Tensor> outputs;
  for (const Output& output : graph.outputs()) outputs.push_back(tensors[output.value.index]);
  return outputs;
}

// Inputs, parameters and states of the graph, filled with numbers from [0.5, 1.5) for states (they are
// variances) and [-1, 1) for the rest.
inline TensorMap random_tensors(const Graph& graph, uint64_t seed) {
  Random random(seed);
  TensorMap tensors;
  for (const Value& value : graph.values()) {
    if (value.role == Role::kConstant || value.role == Role::kActivation) continue;
    Tensor tensor = *Tensor::allocate(value.type);
    const bool positive = value.role == Role::kState;
    for (float& v : tensor.data<float>())
      v = static_cast<float>(random.uniform(positive ? 0.5 : -1, positive ? 1.5 : 1));
    tensors.emplace(value.name, std::move(tensor));
  }
  return tensors;
}

}  // namespace limber
