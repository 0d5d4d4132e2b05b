// Small networks in text form, with parameters drawn from a seed: what the runtime tests run.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/cpu_backend.h"
#include "backend/ref/ref_backend.h"
#include "base/random.h"
#include "ops/op_def.h"
#include "runtime/compile.h"
#include "runtime/session.h"

namespace limber::test {

struct Net {
  Graph graph;
  std::shared_ptr<Parameters> params = std::make_shared<Parameters>();
};

inline void fill_random(Tensor tensor, Random& random) {
  for (float& x : tensor.data<float>()) x = static_cast<float>(random.uniform(-1, 1));
}

inline Net make_net(std::string_view text, uint64_t seed = 1) {
  Net net;
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return net;
  net.graph = *std::move(graph);
  Random random(seed);
  for (const Value& value : net.graph.values()) {
    if (value.role != Role::kParameter) continue;
    Tensor tensor = *Tensor::allocate(value.type);
    fill_random(tensor, random);
    if (value.name.find("var") != std::string::npos) {
      for (float& x : tensor.data<float>()) x = std::abs(x) + 0.5f;
    }
    net.params->set(value.name, tensor);
  }
  return net;
}

inline std::vector<std::shared_ptr<Backend>> cpu_backends(int threads = 1, bool tune = false) {
  return {make_cpu_backend({.threads = threads, .tune = tune, .cache_file = ""}), make_ref_backend()};
}
inline std::vector<std::shared_ptr<Backend>> ref_backends() { return {make_ref_backend()}; }

// A session, or a test failure with the message.
inline std::unique_ptr<Session> make_session(const Net& net, std::vector<std::shared_ptr<Backend>> backends,
                                             const CompileSettings& options = {}) {
  auto plan = compile(net.graph, net.params, std::move(backends), options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  if (!plan.ok()) return nullptr;
  auto session = Session::create(*plan);
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session.ok() ? *std::move(session) : nullptr;
}

inline void fill_inputs(Session& session, uint64_t seed = 2) {
  Random random(seed);
  for (size_t i = 0; i < session.plan().input_slots.size(); ++i) {
    if (session.input(i).dtype() == DType::kF32) fill_random(session.input(i), random);
  }
}

inline void expect_close(const Tensor& actual, const Tensor& expected, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(actual.type(), expected.type()) << what;
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double a = element_as_double(actual, i), e = element_as_double(expected, i);
    ASSERT_FALSE(std::isnan(a) && !std::isnan(e)) << what << " element " << i;
    largest = std::max(largest, std::abs(e));
    difference = std::max(difference, std::abs(a - e));
  }
  EXPECT_LE(difference, tolerance * std::max(largest, 1e-6)) << what;
}

// Runs the untransformed graph on backend/ref and the compiled one on the CPU backend.
inline void expect_same_as_ref(const Net& net, const CompileSettings& options = {}, bool tune = false,
                               double tolerance = 1e-5) {
  CompileSettings plain = options;
  plain.optimize = false;
  const auto expected = make_session(net, ref_backends(), plain);
  const auto actual = make_session(net, cpu_backends(options.threads, tune), options);
  ASSERT_TRUE(expected && actual);
  fill_inputs(*expected);
  fill_inputs(*actual);
  ASSERT_TRUE(expected->run().ok());
  for (int run = 0; run < 2; ++run) {  // the second shows whether the first left something behind
    ASSERT_TRUE(actual->run().ok());
    for (size_t k = 0; k < net.graph.outputs().size(); ++k) {
      expect_close(actual->output(k), expected->output(k), tolerance,
                   net.graph.outputs()[k].name + "\n" + actual->plan().text());
    }
  }
}

// conv-bn-relu, a residual block with a projection, depthwise, pooling, a classifier.
inline constexpr std::string_view kResidualNet = R"(graph "residual" {
  input %x: f32[N,3,32,32]
  param %w1: f32[16,3,3,3]
  param %s1: f32[16]
  param %b1: f32[16]
  param %m1: f32[16]
  param %var1: f32[16]
  param %w2: f32[32,16,3,3]
  param %w3: f32[32,16,1,1]
  param %wd: f32[32,1,3,3]
  param %fc: f32[10,32]
  param %fb: f32[10]
  %c1: f32[N,16,32,32] = Conv(%x, %w1) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}
  %n1: f32[N,16,32,32] = BatchNorm(%c1, %s1, %b1, %m1, %var1) {epsilon=1e-05}
  %r1: f32[N,16,32,32] = Relu(%n1)
  %c2: f32[N,32,16,16] = Conv(%r1, %w2) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[2,2]}
  %c3: f32[N,32,16,16] = Conv(%r1, %w3) {dilations=[1,1], groups=1, pads=[0,0,0,0], strides=[2,2]}
  %a1: f32[N,32,16,16] = Add(%c2, %c3)
  %r2: f32[N,32,16,16] = Relu(%a1)
  %d1: f32[N,32,16,16] = Conv(%r2, %wd) {dilations=[1,1], groups=32, pads=[1,1,1,1], strides=[1,1]}
  %k1: f32[N,32,16,16] = Clip(%d1) {max=6.0, min=0.0}
  %a2: f32[N,32,16,16] = Add(%k1, %r2)
  %p1: f32[N,32,8,8] = MaxPool(%a2) {dilations=[1,1], kernel=[2,2], pads=[0,0,0,0], strides=[2,2]}
  %g1: f32[N,32,1,1] = GlobalAveragePool(%p1)
  %f1: f32[N,32] = Reshape(%g1) {shape=<N,32>}
  %y: f32[N,10] = Gemm(%f1, %fc, %fb) {trans_b=1}
  output %y as "logits"
})";

}  // namespace limber::test
