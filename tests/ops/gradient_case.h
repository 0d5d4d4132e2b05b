// Gradient rules as tables: an operator, the types of its inputs, its attributes. Each case is checked
// against central differences on the reference kernels, in double precision.
#pragma once

#include <map>

#include "tests/ops/type_case.h"

namespace limber::testing {

struct GradientCase {
  OpKind op;
  std::vector<std::string> inputs;  // as in TypeCase
  Attrs attrs = {};
  double low = -2, high = 2;             // what floating-point inputs are drawn from
  std::map<size_t, Ints> integers = {};  // the elements of integer inputs, by input
  int num_outputs = 1;
  int without_dy = -1;  // an output the loss does not depend on
};

// For every floating-point input: the rule's gradient, alone and together with the others, is the
// difference quotient; the emitted nodes are valid.
void expect_gradients(const std::vector<GradientCase>& cases);

// What the rule says when it refuses; fails the test when it does not.
std::string gradient_refusal(const GradientCase& c);

std::vector<GradientCase> elementwise_gradient_cases();
std::vector<GradientCase> binary_gradient_cases();
std::vector<GradientCase> layer_gradient_cases();
std::vector<GradientCase> product_gradient_cases();
std::vector<GradientCase> norm_gradient_cases();
std::vector<GradientCase> reduce_gradient_cases();
std::vector<GradientCase> movement_gradient_cases();
std::vector<GradientCase> index_gradient_cases();

}  // namespace limber::testing
