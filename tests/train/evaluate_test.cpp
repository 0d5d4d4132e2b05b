#include "train/evaluate.h"

#include <gtest/gtest.h>

#include "tests/train/training_case.h"

namespace limber::test {
namespace {

Evaluation evaluate(const Net& net, int64_t batch) {
  EvaluationOptions options{.batch = batch};
  options.input.height = options.input.width = 16;
  auto evaluator = Evaluator::create(net.graph, net.params, cpu_backends(), shapes(23), options);
  EXPECT_TRUE(evaluator.ok()) << evaluator.status().message();
  auto result = (*evaluator)->run();
  EXPECT_TRUE(result.ok() && result->has_value());
  return **result;
}

TEST(Evaluate, TheBatchSizeChangesNothing) {
  const Net net = make_net(kTinyNet);
  const Evaluation all = evaluate(net, 23);
  EXPECT_EQ(all.images, 23);
  EXPECT_GE(all.top5, all.top1);
  for (const int64_t batch : {1, 5, 64}) {
    const Evaluation part = evaluate(net, batch);
    EXPECT_EQ(part.images, 23);
    EXPECT_EQ(part.top1, all.top1) << batch;
    EXPECT_EQ(part.top5, all.top5) << batch;
    EXPECT_NEAR(part.loss, all.loss, 1e-5) << batch;
  }
}

TEST(Evaluate, ASoftmaxAtTheEndIsNotCountedTwice) {
  const Net net = make_net(kTinyNet);
  Net with = make_net(kTinyNet);
  const ValueId logits = with.graph.outputs()[0].value;
  with.graph.mutable_outputs()[0].value =
      *emit(with.graph, OpKind::kSoftmax, {logits}, {{"axis", int64_t{1}}});
  EXPECT_EQ(evaluate(net, 8).loss, evaluate(with, 8).loss);
}

TEST(Evaluate, FollowsParametersThatChange) {
  const Net net = make_net(kTinyNet);
  EvaluationOptions options{.batch = 8};
  options.input.height = options.input.width = 16;
  auto evaluator = *Evaluator::create(net.graph, net.params, cpu_backends(), shapes(23), options);
  const double before = (**evaluator->run()).loss;
  net.params->set("norm.s", *Tensor::zeros({DType::kF32, Shape{8}}));
  EXPECT_NE((**evaluator->run()).loss, before);
  std::atomic<bool> stop{true};
  EXPECT_FALSE(evaluator->run(&stop)->has_value());
}

// Random weights tell nothing about images, whatever they are fed.
TEST(Evaluate, JudgingTheInputChangesNothing) {
  const Net net = make_net(kTinyNet);
  EvaluationOptions options{.batch = 8};
  options.input.height = options.input.width = 16;
  auto evaluator = *Evaluator::create(net.graph, net.params, cpu_backends(), shapes(23), options);
  const double before = (**evaluator->run()).loss;
  const auto verdict = evaluator->judge();
  ASSERT_TRUE(verdict.ok()) << verdict.status().message();
  EXPECT_GT(verdict->given.confidence, 0);
  EXPECT_GE(verdict->best.information, verdict->given.information);
  EXPECT_EQ((**evaluator->run()).loss, before);
}

TEST(Evaluate, RanksWithTiesAndNan) {
  const std::vector<float> row = {1, 3, 3, 2};
  EXPECT_TRUE(among_best(row, 1, 1));
  EXPECT_FALSE(among_best(row, 2, 1));
  EXPECT_TRUE(among_best(row, 2, 2));
  EXPECT_FALSE(among_best(row, 0, 3));
  const std::vector<float> bad = {NAN, NAN};
  EXPECT_FALSE(among_best(bad, 0, 1));
}

TEST(Evaluate, WhatDoesNotFitIsRefused) {
  const Net net = make_net(kTinyNet);
  EvaluationOptions options;
  expect_failure(Evaluator::create(net.graph, net.params, cpu_backends(), shapes(5), options),
                 Code::kInvalidArgument, {"3x32x32", "another size"});
  Net boxes = make_net(kTinyNet);
  boxes.graph.mutable_outputs()[0].value = *boxes.graph.find("r");
  expect_failure(count_classes(boxes.graph), Code::kInvalidArgument, {"f32[N,8,8,8]"});
}

}  // namespace
}  // namespace limber::test
