// A graph whose gradients can be held against difference quotients.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/op_def.h"
#include "passes/differentiate.h"
#include "tests/supernet/models.h"

namespace limber::test {

// sum(answer * weights) for `batch` samples, with random weights, and its gradients by `targets` as further
// outputs.
inline Graph with_gradients(const Graph& graph, const std::vector<std::string>& targets, int64_t batch) {
  std::map<std::string, int64_t> dims;
  for (const std::string& name : symbols(graph)) dims[name] = batch;
  Graph bound = *limber::bind(graph, dims);
  const ValueId y = bound.outputs()[0].value;
  Tensor weights = *Tensor::allocate(bound.type(y));
  Random random(13);
  fill_random(weights, random);
  const ValueId weighted =
      *emit(bound, OpKind::kMul, {y, bound.add_constant("loss/weights", weights)}, {}, "loss");
  std::vector<int64_t> axes;
  for (int axis = 0; axis < bound.type(y).rank(); ++axis) axes.push_back(axis);
  const ValueId loss =
      *emit(bound, OpKind::kReduceSum, {weighted}, {{"axes", axes}, {"keepdims", int64_t{0}}}, "loss");
  std::vector<ValueId> values;
  for (const std::string& name : targets) values.push_back(*bound.find(name));
  const auto gradients = differentiate(bound, loss, values);
  EXPECT_TRUE(gradients.ok()) << gradients.status().message();
  bound.mutable_outputs().clear();
  bound.add_output(loss, "loss");
  for (size_t i = 0; gradients.ok() && i < targets.size(); ++i)
    bound.add_output(gradients->of[i], targets[i]);
  return bound;
}

}  // namespace limber::test
