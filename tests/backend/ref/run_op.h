// Runs one operator on the reference backend, on tensors given in the test.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "backend/ref/ref_backend.h"
#include "ops/op_def.h"

namespace limber::test {

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

template <typename T>
Tensor tensor(Shape shape, std::initializer_list<T> values) {
  return Tensor::from(values, std::move(shape));
}
inline Tensor f32(Shape shape, std::initializer_list<float> values) {
  return tensor(std::move(shape), values);
}
inline Tensor i64(Shape shape, std::initializer_list<int64_t> values) {
  return tensor(std::move(shape), values);
}
inline Tensor bools(Shape shape, std::initializer_list<bool> values) {
  return tensor(std::move(shape), values);
}
// first, first + 1, ... as f32.
Tensor counting(Shape shape, double first = 0);
// The same numbers under another dtype.
Tensor as(const Tensor& tensor, DType dtype);

// Builds a graph of this one node (an invalid Tensor is an absent input), compiles and runs it. Output
// memory holds garbage before the run.
std::vector<Tensor> run_all(OpKind op, const std::vector<Tensor>& inputs, const Attrs& attrs,
                            int num_outputs);
// The same for one output.
Tensor run(OpKind op, const std::vector<Tensor>& inputs, const Attrs& attrs = {});
// Type and numbers; NaN equals NaN. The tolerance is absolute and relative.
void expect(const Tensor& actual, const TensorType& type, const std::vector<double>& values,
            double tolerance = 1e-6);

}  // namespace limber::test
