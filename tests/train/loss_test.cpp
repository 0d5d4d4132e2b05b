// Every loss against its formula in double precision, and its gradient against differences of the formula.
#include "train/loss.h"

#include <functional>

#include "passes/differentiate.h"
#include "tests/passes/golden.h"
#include "tests/passes/interpret.h"
#include "train/head.h"

namespace limber::test {
namespace {

using Rows = std::vector<std::vector<double>>;

struct LossCase {
  std::string name;
  LossOptions options;
  // Of what is differentiated ("x") and the other inputs.
  std::function<double(const Rows& x, const TensorMap& inputs)> formula;
};

constexpr int64_t kRows = 5, kWidth = 3, kSourceRows = 4;

// Logits are features: the classifier behind them is not looked at by losses that align.
constexpr std::string_view kFeaturesAndLogits = R"(
  param %x: f32[5,3]
  param %w: f32[3,3]
  %y: f32[5,3] = MatMul(%x, %w)
  output %y as "y"
)";

Rows rows_of(const Tensor& tensor) {
  const int64_t width = tensor.shape().rank() > 1 ? tensor.shape().dim(1) : 1;
  Rows rows(static_cast<size_t>(tensor.elements() / width), std::vector<double>(static_cast<size_t>(width)));
  for (int64_t i = 0; i < tensor.elements(); ++i)
    rows[static_cast<size_t>(i / width)][static_cast<size_t>(i % width)] = element_as_double(tensor, i);
  return rows;
}

std::vector<double> softmax(const std::vector<double>& logits) {
  std::vector<double> p;
  double sum = 0;
  for (const double x : logits) sum += p.emplace_back(std::exp(x));
  for (double& x : p) x /= sum;
  return p;
}

double weight_of(const TensorMap& inputs, size_t row) {
  const auto found = inputs.find("weights");
  return found == inputs.end() ? 1 : element_as_double(found->second, static_cast<int64_t>(row));
}

double mean_entropy(const Rows& x, const TensorMap& inputs) {
  double sum = 0;
  for (size_t r = 0; r < x.size(); ++r) {
    for (const double p : softmax(x[r])) sum -= weight_of(inputs, r) * p * std::log(p);
  }
  return sum / static_cast<double>(x.size());
}

double information(const Rows& x, const TensorMap&) {
  std::vector<double> mean(x[0].size());
  for (const auto& row : x) {
    const auto p = softmax(row);
    for (size_t c = 0; c < p.size(); ++c) mean[c] += p[c] / static_cast<double>(x.size());
  }
  double loss = mean_entropy(x, {});
  for (const double p : mean) loss += p * std::log(p);
  return loss;
}

double labelled(const Rows& x, const TensorMap& inputs) {
  double sum = 0;
  for (size_t r = 0; r < x.size(); ++r) {
    const auto label = static_cast<size_t>(element_as_double(inputs.at("labels"), static_cast<int64_t>(r)));
    sum -= weight_of(inputs, r) * std::log(softmax(x[r])[label]);
  }
  return sum / static_cast<double>(x.size());
}

struct Moments {
  std::vector<double> mean;
  Rows products;  // of what is off the mean, summed over rows
};

Moments moments_of(const Rows& x) {
  const size_t width = x[0].size();
  Moments m{std::vector<double>(width), Rows(width, std::vector<double>(width))};
  for (const auto& row : x) {
    for (size_t i = 0; i < width; ++i) m.mean[i] += row[i] / static_cast<double>(x.size());
  }
  for (const auto& row : x) {
    for (size_t i = 0; i < width; ++i) {
      for (size_t j = 0; j < width; ++j) m.products[i][j] += (row[i] - m.mean[i]) * (row[j] - m.mean[j]);
    }
  }
  return m;
}

double moments(const Rows& x, const TensorMap& inputs) {
  const Moments m = moments_of(x);
  double sum = 0;
  for (size_t i = 0; i < m.mean.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const double deviation = std::sqrt(m.products[i][i] / static_cast<double>(x.size()) + kMomentsEpsilon);
    sum += std::pow(m.mean[i] - element_as_double(inputs.at("source_mean"), at), 2) +
           std::pow(deviation - element_as_double(inputs.at("source_deviation"), at), 2);
  }
  return sum / static_cast<double>(m.mean.size());
}

double covariance(const Rows& x, const TensorMap& inputs) {
  const Moments m = moments_of(x);
  const Rows source = rows_of(inputs.at("source_covariance"));
  double sum = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    for (size_t j = 0; j < source.size(); ++j)
      sum += std::pow(m.products[i][j] / static_cast<double>(x.size() - 1) - source[i][j], 2);
  }
  return sum / (4 * static_cast<double>(source.size() * source.size()));
}

constexpr double kBandwidth = 0.7;

double likeness(const Rows& a, const Rows& b) {
  double sum = 0;
  for (const auto& x : a) {
    for (const auto& y : b) {
      double distance = 0;
      for (size_t i = 0; i < x.size(); ++i) distance += (x[i] - y[i]) * (x[i] - y[i]);
      for (const double wide : {0.25, 0.5, 1.0, 2.0, 4.0}) sum += std::exp(-distance / (kBandwidth * wide));
    }
  }
  return sum / static_cast<double>(a.size() * b.size());
}

double kernel(const Rows& x, const TensorMap& inputs) {
  const Rows source = rows_of(inputs.at("source_features"));
  return likeness(x, x) + likeness(source, source) - 2 * likeness(source, x);
}

std::vector<LossCase> all_cases() {
  const auto shot = [](const Rows& x, const TensorMap& inputs) {
    return information(x, inputs) + 0.3 * labelled(x, inputs);
  };
  return {
      {"entropy", {.kind = LossKind::kEntropy}, mean_entropy},
      {"weighted_entropy", {.kind = LossKind::kEntropy, .weighted = true}, mean_entropy},
      {"infomax", {.kind = LossKind::kInfoMax}, information},
      {"cross_entropy", {.kind = LossKind::kCrossEntropy}, labelled},
      {"weighted_cross_entropy", {.kind = LossKind::kCrossEntropy, .weighted = true}, labelled},
      {"shot", {.kind = LossKind::kShot}, shot},
      {"weighted_shot", {.kind = LossKind::kShot, .weighted = true}, shot},
      {"moments", {.kind = LossKind::kMoments}, moments},
      {"covariance", {.kind = LossKind::kCovariance}, covariance},
      {"kernel", {.kind = LossKind::kKernel, .bandwidth = kBandwidth, .source_rows = kSourceRows}, kernel}};
}

bool aligns(const LossOptions& options) { return options.kind >= LossKind::kMoments; }

// Loss and gradient of "x" as the outputs.
Graph with_gradient(const LossOptions& options) {
  Graph graph = graph_of(kFeaturesAndLogits);
  const ValueId x = *graph.find("x");
  const auto loss = add_loss(graph, aligns(options) ? *graph.find("y") : x, options, false);
  EXPECT_TRUE(loss.ok()) << loss.status().message();
  if (!loss.ok()) return graph;
  const auto gradients = differentiate(graph, *loss, std::vector{x});
  EXPECT_TRUE(gradients.ok()) << gradients.status().message();
  graph.mutable_outputs().clear();
  graph.add_output(*loss, "loss");
  if (gradients.ok()) graph.add_output(gradients->of[0], "dx");
  const Status valid = verify(graph);
  EXPECT_TRUE(valid.ok()) << valid.message();
  return graph;
}

TensorMap inputs_of(const Graph& graph) {
  Random random(11);
  TensorMap inputs;
  for (const Value& value : graph.values()) {
    if (value.role != Role::kInput && value.role != Role::kParameter) continue;
    Tensor tensor = *Tensor::allocate(value.type);
    if (value.type.dtype == DType::kI64) {
      for (int64_t& label : tensor.data<int64_t>()) label = static_cast<int64_t>(random.below(kWidth));
    } else {
      for (float& f : tensor.data<float>()) f = static_cast<float>(random.uniform(0.1, 1.5));
    }
    inputs.emplace(value.name, std::move(tensor));
  }
  return inputs;
}

class EveryLoss : public testing::TestWithParam<LossCase> {};

TEST_P(EveryLoss, IsItsFormulaWithItsGradient) {
  const LossCase& c = GetParam();
  const Graph graph = with_gradient(c.options);
  ASSERT_EQ(graph.outputs().size(), 2u);
  const TensorMap inputs = inputs_of(graph);
  const std::vector<Tensor> results = interpret(graph, inputs);
  Rows x = rows_of(inputs.at("x"));
  const double loss = c.formula(x, inputs);
  EXPECT_NEAR(element_as_double(results[0], 0), loss, 2e-6 * std::max(1.0, std::abs(loss)));
  constexpr double kStep = 1e-5;
  for (int64_t i = 0; i < kRows * kWidth; ++i) {
    double& at = x[static_cast<size_t>(i / kWidth)][static_cast<size_t>(i % kWidth)];
    const double before = at;
    at = before + kStep;
    const double above = c.formula(x, inputs);
    at = before - kStep;
    const double quotient = (above - c.formula(x, inputs)) / (2 * kStep);
    at = before;
    EXPECT_NEAR(element_as_double(results[1], i), quotient, 2e-6) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, EveryLoss, testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(Loss, AlignmentReadsTheMeanOverSpace) {
  constexpr std::string_view kConvHead = R"(
    param %x: f32[5,3,2,2]
    param %w: f32[4,3,1,1]
    %c: f32[5,4,2,2] = Conv(%x, %w) {dilations=[1,1], pads=[0,0,0,0], strides=[1,1]}
    %p: f32[5,4,1,1] = GlobalAveragePool(%c)
    %y: f32[5,4] = Reshape(%p) {shape=<5,4>}
    output %y as "y"
  )";
  Graph graph = graph_of(kConvHead);
  const auto loss = add_loss(graph, *graph.find("y"), {.kind = LossKind::kMoments}, false);
  ASSERT_TRUE(loss.ok()) << loss.status().message();
  graph.mutable_outputs().clear();
  graph.add_output(*loss, "loss");
  const TensorMap inputs = inputs_of(graph);
  Rows means;
  for (int64_t row = 0; row < 5; ++row) {
    auto& mean = means.emplace_back(3);
    for (int64_t i = 0; i < 12; ++i)
      mean[static_cast<size_t>(i / 4)] += element_as_double(inputs.at("x"), row * 12 + i) / 4;
  }
  EXPECT_NEAR(element_as_double(interpret(graph, inputs)[0], 0), moments(means, inputs), 1e-6);
}

TEST(Loss, WhatCannotBeAlignedIsSaid) {
  const auto complaint = [](std::string_view text, const LossOptions& options) {
    Graph graph = graph_of(text);
    const auto loss = add_loss(graph, graph.outputs()[0].value, options, false);
    EXPECT_FALSE(loss.ok());
    return loss.status().message();
  };
  const std::string_view no_layer =
      "param %x: f32[5,3]\n %y: f32[5,3] = Tanh(%x) \"squash\"\n output %y as \"y\"";
  EXPECT_NE(complaint(no_layer, {.kind = LossKind::kMoments}).find("Tanh 'squash'"), std::string::npos);
  EXPECT_NE(complaint(kFeaturesAndLogits, {.kind = LossKind::kKernel}).find("0 features of the source"),
            std::string::npos);
  EXPECT_NE(complaint(kFeaturesAndLogits, {.kind = LossKind::kKernel, .bandwidth = 0, .source_rows = 2})
                .find("bandwidth is 0"),
            std::string::npos);
  const std::string_view one_row =
      "param %x: f32[1,3]\n param %w: f32[3,2]\n %y: f32[1,2] = MatMul(%x, %w)\n output %y as \"y\"";
  EXPECT_NE(complaint(one_row, {.kind = LossKind::kCovariance}).find("2 images or more"), std::string::npos);
}

TEST(Head, IsFoundWithItsFeatures) {
  const Graph graph = graph_of(R"(
    input %x: f32[2,8]
    param %w: f32[4,8]
    param %b: f32[1,4]
    %m: f32[2,4] = Gemm(%x, %w) {trans_b=1}
    %a: f32[2,4] = Add(%b, %m)
    %y: f32[2,4] = Softmax(%a) {axis=1}
    output %y as "p"
  )");
  const auto head = find_head(graph, graph.outputs()[0].value);
  ASSERT_TRUE(head.ok()) << head.status().message();
  EXPECT_EQ(head->features, *graph.find("x"));
  EXPECT_EQ(head->weight, *graph.find("w"));
  EXPECT_EQ(head->weight_axis, 0);
  EXPECT_EQ(head->bias, *graph.find("b"));
  EXPECT_EQ(head->bias_axis, 1);
  EXPECT_EQ(head->fan_in, 8);
}

}  // namespace
}  // namespace limber::test
