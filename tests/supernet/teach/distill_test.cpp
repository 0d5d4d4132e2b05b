#include "supernet/teach/distill.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "io/builtin_models.h"
#include "supernet/expand/expand.h"
#include "tests/runtime/net.h"

namespace limber {
namespace {

constexpr int64_t kDistillBatch = 8;

Tensor noise_images(const Graph& model, uint64_t seed) {
  Shape shape = model.type(model.inputs()[0]).shape;
  shape[0] = Dim(kDistillBatch);
  Tensor images = *Tensor::allocate({DType::kF32, shape});
  Random random(seed);
  for (float& v : images.data<float>()) v = static_cast<float>(random.normal());
  return images;
}

struct DistillCase {
  Graph graph;
  ElasticModel model;
  std::map<std::string, Tensor> before;  // the model's own parameters
};

DistillCase make_distill_case(const std::vector<std::string>& operators) {
  auto builtin = make_builtin("resnet8");
  EXPECT_TRUE(builtin.ok()) << builtin.status().message();
  DistillCase made{builtin->graph, {}, {}};
  for (const std::string& name : builtin->params->names()) {
    const Tensor tensor = *builtin->params->get(name);
    Tensor copy = *Tensor::allocate(tensor.type());
    std::memcpy(copy.raw(), tensor.raw(), tensor.bytes());
    made.before.emplace(name, copy);
  }
  auto model = expand(builtin->graph, builtin->params, {.operators = operators});
  EXPECT_TRUE(model.ok()) << model.status().message();
  made.model = *std::move(model);
  return made;
}

TEST(Distill, ErrorsFallAndTheModelStays) {
  DistillCase c = make_distill_case({"shrink50"});
  auto distiller = Distiller::create(c.model, test::cpu_backends(), {.batch = kDistillBatch});
  ASSERT_TRUE(distiller.ok()) << distiller.status().message();
  ASSERT_GT((*distiller)->students(), 0u);
  std::vector<Tensor> batches;
  for (uint64_t i = 0; i < 4; ++i) batches.push_back(noise_images(c.graph, i));
  ASSERT_TRUE((*distiller)->judge(batches).ok());
  const auto mean_error = [&] {
    double sum = 0;
    for (const Block& block : c.model.blocks) {
      for (const Alternative& alternative : block.alternatives) sum += alternative.error;
    }
    return sum;
  };
  const double before = mean_error();
  EXPECT_GT(before, 0);
  for (int i = 0; i < 60; ++i) {
    const auto error = (*distiller)->step(batches[static_cast<size_t>(i) % batches.size()], 3e-3);
    ASSERT_TRUE(error.ok()) << error.status().message();
  }
  ASSERT_TRUE((*distiller)->judge(batches).ok());
  EXPECT_LT(mean_error(), 0.8 * before);
  for (const auto& [name, tensor] : c.before) {
    const Tensor now = *c.model.params->get(name);
    EXPECT_EQ(std::memcmp(now.raw(), tensor.raw(), tensor.bytes()), 0) << name;
  }
}

TEST(Distill, WhatHasNothingOfItsOwnIsOnlyJudged) {
  DistillCase c = make_distill_case({"skip"});
  auto distiller = Distiller::create(c.model, test::cpu_backends(), {.batch = kDistillBatch});
  ASSERT_TRUE(distiller.ok()) << distiller.status().message();
  EXPECT_EQ((*distiller)->students(), 0u);
  const std::vector<Tensor> batches = {noise_images(c.graph, 1)};
  ASSERT_TRUE((*distiller)->judge(batches).ok());
  int judged = 0;
  for (const Block& block : c.model.blocks) {
    for (size_t a = 1; a < block.alternatives.size(); ++a, ++judged)
      EXPECT_GT(block.alternatives[a].error, 0);
  }
  EXPECT_GT(judged, 0);
}

// The error of the original is none, and that of a constant nought is all.
TEST(Distill, RelativeError) {
  Tensor a = *Tensor::allocate({DType::kF32, Shape{4}}), zeros = *Tensor::zeros({DType::kF32, Shape{4}});
  const std::array<float, 4> values = {1, -1, 1, -1};
  std::copy(values.begin(), values.end(), a.data<float>().begin());
  EXPECT_EQ(relative_error(a, a), 0);
  EXPECT_NEAR(relative_error(zeros, a), 1, 1e-6);
}

}  // namespace
}  // namespace limber
