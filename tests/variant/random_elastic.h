// Small elastic models made by hand, one per seed: some blocks, alternatives over one to three, exits.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "passes/splice.h"
#include "tests/passes/interpret.h"
#include "variant/elastic_model.h"

namespace limber::test {

// Images of [N,3,8,8] in, five numbers each out. N is symbolic.
class ElasticMaker {
 public:
  explicit ElasticMaker(uint64_t seed) : random_(seed) {}

  ElasticModel build() {
    model_.params = std::make_shared<Parameters>();
    choose_stages();
    add_originals();
    for (size_t b = 0; b < model_.blocks.size(); ++b) add_alternatives(b);
    const auto exits = random_.below(4);
    for (uint64_t e = 0; e < exits; ++e) {
      const auto after = random_.below(model_.blocks.size());
      const auto name = fmt::format("exit{}", e);
      model_.exits.push_back({name, static_cast<int>(after), head(stages_[after], name)});
    }
    const Status status = check_elastic(model_);
    EXPECT_TRUE(status.ok()) << status.message();
    return std::move(model_);
  }

 private:
  struct Stage {
    int64_t channels, side;
  };
  bool coin() { return random_.below(2) == 0; }
  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_.below(static_cast<uint64_t>(high - low + 1)));
  }

  // What lies before each block.
  void choose_stages() {
    stages_.push_back({3, 8});
    const int64_t count = pick(2, 6);
    for (int64_t b = 1; b < count; ++b) {
      const Stage before = stages_.back();
      stages_.push_back({coin() ? before.channels : pick(2, 6), before.side / (pick(0, 3) == 0 ? 2 : 1)});
    }
  }

  void add_originals() {
    std::vector<const Graph*> graphs;
    model_.blocks.resize(stages_.size());
    for (size_t b = 0; b < stages_.size(); ++b) {
      const auto name = fmt::format("block{}", b);
      Graph graph = b + 1 < stages_.size() ? body(stages_[b], stages_[b + 1], name) : head(stages_[b], name);
      model_.blocks[b] = {name, {{"original", 1, std::move(graph), 0}}};
    }
    for (const Block& block : model_.blocks) graphs.push_back(&block.alternatives[0].graph);
    model_.base = *chain(graphs);
    model_.base.name = "base";
    model_.base.mutable_outputs()[0].name = "logits";
  }

  void add_alternatives(size_t b) {
    const int64_t count = pick(0, 4);
    for (int64_t a = 1; a <= count; ++a) {
      const auto left = static_cast<int64_t>(stages_.size() - b);
      const int64_t span = std::min(left, coin() ? 1 : pick(1, 3));
      const auto name = fmt::format("choice{}", a), prefix = fmt::format("block{}/{}", b, name);
      Graph graph = span == left ? head(stages_[b], prefix)
                                 : body(stages_[b], stages_[b + static_cast<size_t>(span)], prefix);
      model_.blocks[b].alternatives.push_back(
          {name, static_cast<int>(span), std::move(graph), random_.uniform()});
    }
  }

  // --- graphs ---------------------------------------------------------------------------------------------
  ValueId op(OpKind kind, std::vector<ValueId> inputs, Attrs attrs = {}) {
    auto made = emit(graph_, kind, std::move(inputs), std::move(attrs));
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *made;
  }
  ValueId param(const std::string& name, std::vector<int64_t> dims, Role role = Role::kParameter) {
    const TensorType type{DType::kF32, Shape::of(dims)};
    Tensor tensor = *Tensor::allocate(type);
    const bool positive = role == Role::kState;
    for (float& v : tensor.data<float>())
      v = static_cast<float>(random_.uniform(positive ? 0.5 : -1, positive ? 1.5 : 1));
    model_.params->set(prefix_ + "." + name, tensor);
    return graph_.add_parameter(prefix_ + "." + name, type, role);
  }
  ValueId start(Stage from, const std::string& prefix) {
    graph_ = Graph();
    graph_.name = prefix_ = prefix;
    return graph_.add_input(coin() ? "x" : "in",
                            {DType::kF32, Shape{Dim(Symbol("N")), from.channels, from.side, from.side}});
  }
  Graph finish(ValueId y) {
    graph_.add_output(y, "y");
    return std::move(graph_);
  }

  ValueId conv(ValueId x, int64_t out, int64_t stride, const std::string& name) {
    const int64_t kernel = coin() ? 3 : 1, pad = kernel / 2, in = graph_.type(x).shape.dim(1);
    return op(OpKind::kConv, {x, param(name + ".w", {out, in, kernel, kernel})},
              {{"strides", std::vector<int64_t>{stride, stride}},
               {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
               {"dilations", std::vector<int64_t>{1, 1}},
               {"groups", int64_t{1}}});
  }

  Graph body(Stage from, Stage to, const std::string& prefix) {
    const ValueId x = start(from, prefix);
    const bool same = from.channels == to.channels && from.side == to.side;
    if (same && pick(0, 4) == 0) return finish(x);  // skip
    ValueId y = conv(x, to.channels, from.side / to.side, "first");
    if (coin()) {
      const int64_t c = to.channels;
      y = op(OpKind::kBatchNorm,
             {y, param("s", {c}), param("b", {c}), param("mean", {c}, Role::kState),
              param("var", {c}, Role::kState)},
             {{"epsilon", 1e-5}});
    }
    if (coin()) y = op(OpKind::kMul, {y, mask(to)});
    if (coin()) y = conv(op(OpKind::kRelu, {y}), to.channels, 1, "second");
    return finish(same && coin() ? op(OpKind::kAdd, {y, x}) : op(OpKind::kSigmoid, {y}));
  }

  // Some of them too large to be printed with the graph.
  ValueId mask(Stage to) {
    Tensor tensor = *Tensor::allocate({DType::kF32, Shape{1, to.channels, to.side, to.side}});
    const auto step = static_cast<float>(pick(1, 3));
    float at = 0;
    for (float& v : tensor.data<float>()) v = (at += step) / 100.F;
    return graph_.add_constant("mask", tensor);
  }

  Graph head(Stage from, const std::string& prefix) {
    ValueId x = start(from, prefix);
    if (coin()) x = op(OpKind::kRelu, {conv(x, pick(2, 5), 1, "head")});
    const int64_t c = graph_.type(x).shape.dim(1);
    x = op(OpKind::kReshape, {op(OpKind::kGlobalAveragePool, {x})}, {{"shape", Shape{Dim(Symbol("N")), c}}});
    return finish(op(OpKind::kGemm, {x, param("fc", {c, 5}), param("fb", {5})}));
  }

  Random random_;
  ElasticModel model_;
  std::vector<Stage> stages_;
  Graph graph_;
  std::string prefix_;
};

inline ElasticModel random_elastic(uint64_t seed) { return ElasticMaker(seed).build(); }

// Any valid variant. REQUIRES: a checked model
inline Variant random_variant(const ElasticModel& model, Random& random) {
  Variant variant;
  if (!model.exits.empty() && random.below(2) == 0)
    variant.exit = static_cast<int>(random.below(model.exits.size()));
  if (!model.exits.empty() && random.below(3) == 0) variant.confidence = random.uniform(0.01, 1);
  const int after = variant.exit < 0 ? -1 : model.exits[static_cast<size_t>(variant.exit)].after;
  for (size_t b = 0; b < model.blocks.size();) {
    const auto& alternatives = model.blocks[b].alternatives;
    size_t choice = random.below(alternatives.size());
    const int at = static_cast<int>(b);
    if (at < after && at + alternatives[choice].span > after) choice = 0;
    variant.choices.push_back(static_cast<int>(choice));
    const auto span = static_cast<size_t>(alternatives[choice].span);
    variant.choices.insert(variant.choices.end(), span - 1, Variant::kCovered);
    b += span;
  }
  return variant;
}

inline std::string bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.raw()), tensor.bytes()};
}

// What the graph makes of `input`, which stands for its only input.
inline Tensor run_on(const Graph& graph, const Parameters& params, const Tensor& input) {
  const auto bound = limber::bind(graph, {{"N", input.shape().dim(0)}});
  EXPECT_TRUE(bound.ok()) << bound.status().message();
  TensorMap stored{{bound->value(bound->inputs()[0]).name, input}};
  for (const std::string& name : parameters_of(*bound)) stored.emplace(name, *params.get(name));
  return interpret(*bound, stored)[0];
}

inline Tensor random_images(uint64_t seed) {
  Random random(seed);
  Tensor images = *Tensor::allocate({DType::kF32, Shape{2, 3, 8, 8}});
  for (float& v : images.data<float>()) v = static_cast<float>(random.uniform(-1, 1));
  return images;
}

}  // namespace limber::test
