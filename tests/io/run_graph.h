// Runs a model with the reference backend.
#pragma once

#include <gtest/gtest.h>

#include "ops/op_def.h"
#include "tests/conformance/interpreter.h"
#include "tests/io/model_builder.h"

namespace limber::test {

inline Tensor counting(Shape shape, float step = 0.1f) {
  auto t = Tensor::allocate({DType::kF32, std::move(shape)});
  LIMBER_ASSERT(t.ok());
  float x = -1;
  for (float& e : t->data<float>()) e = (x += step) > 1 ? (x = -1) : x;
  return *std::move(t);
}

inline Result<std::vector<Tensor>> run(const Model& model, const std::vector<Tensor>& inputs,
                                       const std::map<std::string, int64_t>& symbols = {}) {
  LIMBER_ASSIGN(const Graph bound, bind(model.graph, symbols));
  return conformance::Interpreter(bound, *model.params).run(inputs);
}

inline void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.type(), b.type());
  for (int64_t i = 0; i < a.elements(); ++i) {
    ASSERT_NEAR(element_as_double(a, i), element_as_double(b, i), 1e-5) << "element " << i;
  }
}

}  // namespace limber::test
