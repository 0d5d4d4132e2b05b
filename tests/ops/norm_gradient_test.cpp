#include <gtest/gtest.h>

#include "tests/ops/gradient_case.h"

namespace limber::testing {
namespace {

Attrs epsilon(double value) { return {{"epsilon", value}}; }

void add_batch_norm_cases(std::vector<GradientCase>& cases) {
  for (const char* x : {"f64[2,3,2,2]", "f64[4,3]", "f64[3,3,2]"}) {
    const std::vector<std::string> inputs = {x, "f64[3]", "f64[3]", "f64[3]", "f64[3]"};
    cases.push_back({OpKind::kBatchNorm, inputs, epsilon(1e-3), 0.5, 1.5});
    const Attrs training = epsilon(1e-3).set("momentum", 0.9);
    cases.push_back({OpKind::kBatchNormTraining, inputs, training, 0.5, 1.5, {}, 5});
    cases.push_back(
        {OpKind::kBatchNormTraining, inputs, Attrs(training).set("act", text("relu")), -1.5, 1.5, {}, 5});
  }
}

void add_layer_norm_cases(std::vector<GradientCase>& cases) {
  const auto add = [&](std::vector<std::string> inputs, int64_t axis) {
    cases.push_back({OpKind::kLayerNorm, std::move(inputs), epsilon(1e-2).set("axis", axis), -2, 2, {}, 3});
  };
  add({"f64[3,4]", "f64[4]", "f64[4]"}, 1);
  add({"f64[2,3,4]"}, 1);
  add({"f64[2,3,4]", "f64[4]", "f64[3,1]"}, 1);
  add({"f64[2,2,3]", "_", "f64[3]"}, 2);
  add({"f64[2,5]", "f64[]"}, 0);
}

}  // namespace

std::vector<GradientCase> norm_gradient_cases() {
  std::vector<GradientCase> cases;
  add_batch_norm_cases(cases);
  add_layer_norm_cases(cases);
  for (const char* x : {"f64[2,4,3]", "f64[1,4,2,3]", "f64[2,4,5]"}) {
    cases.push_back({OpKind::kInstanceNorm, {x, "f64[4]", "f64[4]"}, epsilon(1e-2)});
    for (int64_t groups : {1, 2, 4})
      cases.push_back({OpKind::kGroupNorm, {x, "f64[4]", "f64[4]"}, epsilon(1e-2).set("groups", groups)});
  }
  for (int64_t size : {1, 3, 4}) {
    const Attrs attrs{{"size", size}, {"alpha", 0.3}, {"beta", 0.75}, {"bias", 1.2}};
    cases.push_back({OpKind::kLRN, {"f64[2,5,2,2]"}, attrs});
    cases.push_back({OpKind::kLRN, {"f64[1,3]"}, attrs});
  }
  for (int64_t p : {1, 2}) {
    cases.push_back({OpKind::kLpNorm, {"f64[2,3,4]"}, {{"axis", num(1)}, {"p", p}}});
    cases.push_back({OpKind::kLpNorm, {"f64[5]"}, {{"axis", num(0)}, {"p", p}}});
    cases.push_back({OpKind::kLpNorm, {"f64[2,3]"}, {{"axis", num(1)}, {"p", p}}});
  }
  return cases;
}

TEST(NormGradients, MatchDifferences) { expect_gradients(norm_gradient_cases()); }

TEST(NormGradients, AskForTheStatisticsTheyNeed) {
  EXPECT_NE(gradient_refusal({OpKind::kLayerNorm, {"f64[2,3]"}, epsilon(1e-3).set("axis", num(1))})
                .find("outputs 1 and 2 are needed"),
            std::string::npos);
  const Attrs training = epsilon(1e-3).set("momentum", 0.9);
  EXPECT_NE(gradient_refusal({OpKind::kBatchNormTraining,
                              {"f64[2,3]", "f64[3]", "f64[3]", "f64[3]", "f64[3]"},
                              training,
                              -2,
                              2,
                              {},
                              3})
                .find("outputs 3 and 4 are needed"),
            std::string::npos);
}

}  // namespace limber::testing
