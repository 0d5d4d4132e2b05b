// A small residual network, with and without gates that say something.
#pragma once

#include "adapt/surrogate/plain_master.h"
#include "passes/gates.h"
#include "tests/adapt/methods/small_model.h"

namespace limber::adapt {

// Two convolutions write to the sum, so that their filters stand or fall together.
inline constexpr std::string_view kResidualModel = R"(graph "residual" {
  input %x: f32[N,3,8,8]
  param %w1: f32[8,3,3,3]
  param %s1: f32[8]
  param %b1: f32[8]
  param %mean1: f32[8]
  param %var1: f32[8]
  param %w2: f32[6,8,3,3]
  param %s2: f32[6]
  param %b2: f32[6]
  param %mean2: f32[6]
  param %var2: f32[6]
  param %w3: f32[8,6,3,3]
  param %s3: f32[8]
  param %b3: f32[8]
  param %mean3: f32[8]
  param %var3: f32[8]
  param %head: f32[4,8]
  param %head_bias: f32[4]
  %c1: f32[N,8,8,8] = Conv(%x, %w1) {dilations=[1,1], pads=[1,1,1,1], strides=[1,1]} "conv1"
  %n1: f32[N,8,8,8] = BatchNorm(%c1, %s1, %b1, %mean1, %var1) {epsilon=1e-05} "norm1"
  %r1: f32[N,8,8,8] = Relu(%n1)
  %c2: f32[N,6,8,8] = Conv(%r1, %w2) {dilations=[1,1], pads=[1,1,1,1], strides=[1,1]} "conv2"
  %n2: f32[N,6,8,8] = BatchNorm(%c2, %s2, %b2, %mean2, %var2) {epsilon=1e-05} "norm2"
  %r2: f32[N,6,8,8] = Relu(%n2)
  %c3: f32[N,8,8,8] = Conv(%r2, %w3) {dilations=[1,1], pads=[1,1,1,1], strides=[1,1]} "conv3"
  %n3: f32[N,8,8,8] = BatchNorm(%c3, %s3, %b3, %mean3, %var3) {epsilon=1e-05} "norm3"
  %sum: f32[N,8,8,8] = Add(%n3, %r1)
  %r3: f32[N,8,8,8] = Relu(%sum)
  %p: f32[N,8,1,1] = GlobalAveragePool(%r3)
  %f: f32[N,8] = Reshape(%p) {shape=<N,8>}
  %y: f32[N,4] = Gemm(%f, %head, %head_bias) {trans_b=1} "head"
  output %y as "logits"
}
)";

inline AdaptedModel residual_model() { return model_of(kResidualModel); }

// Gates that depend on the image, around 1.
inline AdaptedModel gated_model(uint64_t seed = 3) {
  AdaptedModel model = residual_model();
  const auto gates = insert_gates(model.graph);
  EXPECT_TRUE(gates.ok());
  Random random(seed);
  for (const FilterGate& gate : *gates) {
    for (const std::string& name : {gate.weight, gate.bias}) {
      Tensor tensor = *Tensor::allocate(model.graph.type(*model.graph.find(name)));
      test::fill_random(tensor, random);
      for (float& x : tensor.data<float>()) x = name == gate.bias ? 1 + 0.5f * x : 0.3f * x;
      model.weights->set(name, tensor);
    }
  }
  return model;
}

inline PlainMaster plain_of(const AdaptedModel& model) {
  auto plain = open_plain_master(model.graph);
  EXPECT_TRUE(plain.ok()) << plain.status().message();
  return *std::move(plain);
}

inline FilterValues open_gates_of(const PlainMaster& plain) {
  FilterValues gates;
  for (const CutLayer& layer : plain.layers) gates.emplace_back(static_cast<size_t>(layer.filters), 1.0);
  return gates;
}

// What the model answers by its running statistics.
inline Tensor answers_of(const AdaptedModel& model, const Tensor& images) {
  const auto plan = compile(model.graph, model.weights, model.backends,
                            batch_settings(model.graph, images.shape().dim(0), 1));
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  const auto session = *Session::create(*plan);
  std::memcpy(session->input(0).raw(), images.raw(), images.bytes());
  EXPECT_TRUE(session->run().ok());
  return *session->output(0).copy();
}

}  // namespace limber::adapt
