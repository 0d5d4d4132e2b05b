// A small residual classifier, its master, and what both say of images.
#pragma once

#include <cstring>

#include "adapt/master/master.h"
#include "passes/classifier.h"
#include "runtime/compile.h"
#include "tests/train/training_case.h"

namespace limber::adapt {

// The residual stream ties the filters of stem and second; first has some of its own.
inline constexpr std::string_view kResidual = R"(graph "residual" {
  input %x: f32[N,3,16,16]
  param %stem: f32[12,3,3,3]
  param %stem.s: f32[12]
  param %stem.b: f32[12]
  param %stem.mean: f32[12]
  param %stem.var: f32[12]
  param %first: f32[10,12,3,3]
  param %first.s: f32[10]
  param %first.b: f32[10]
  param %first.mean: f32[10]
  param %first.var: f32[10]
  param %second: f32[12,10,3,3]
  param %second.s: f32[12]
  param %second.b: f32[12]
  param %second.mean: f32[12]
  param %second.var: f32[12]
  param %fc: f32[10,12]
  param %fc.b: f32[10]
  %c0: f32[N,12,8,8] = Conv(%x, %stem) {dilations=[1,1], pads=[1,1,1,1], strides=[2,2]} "stem"
  %n0: f32[N,12,8,8] = BatchNorm(%c0, %stem.s, %stem.b, %stem.mean, %stem.var) {epsilon=1e-05}
  %r0: f32[N,12,8,8] = Relu(%n0)
  %c1: f32[N,10,8,8] = Conv(%r0, %first) {dilations=[1,1], pads=[1,1,1,1], strides=[1,1]} "first"
  %n1: f32[N,10,8,8] = BatchNorm(%c1, %first.s, %first.b, %first.mean, %first.var) {epsilon=1e-05}
  %r1: f32[N,10,8,8] = Relu(%n1)
  %c2: f32[N,12,8,8] = Conv(%r1, %second) {dilations=[1,1], pads=[1,1,1,1], strides=[1,1]} "second"
  %n2: f32[N,12,8,8] = BatchNorm(%c2, %second.s, %second.b, %second.mean, %second.var) {epsilon=1e-05}
  %a: f32[N,12,8,8] = Add(%n2, %r0)
  %r2: f32[N,12,8,8] = Relu(%a)
  %p: f32[N,12,1,1] = GlobalAveragePool(%r2)
  %f: f32[N,12] = Reshape(%p) {shape=<N,12>}
  %y: f32[N,10] = Gemm(%f, %fc, %fc.b) {trans_b=1}
  output %y as "y"
}
)";

inline AdaptedModel residual_model() {
  const test::Net net = test::make_net(kResidual);
  return {.graph = net.graph, .weights = net.params, .backends = test::cpu_backends()};
}

// With weights of its own.
inline AdaptedModel master_of(const AdaptedModel& original) {
  AdaptedModel model = original;
  model.weights = std::make_shared<Parameters>(*original.weights->snapshot());
  auto master = make_master(original.graph, *model.weights);
  EXPECT_TRUE(master.ok()) << master.status().message();
  if (master.ok()) model.graph = master->graph;
  return model;
}

// Gates that say something else for every filter and image.
inline void draw_gates(const AdaptedModel& model, uint64_t seed) {
  Random random(seed);
  for (const FilterGate& gate : find_gates(model.graph)) {
    Tensor weight = *model.weights->writable(gate.weight), bias = *model.weights->writable(gate.bias);
    for (float& x : weight.data<float>()) x = static_cast<float>(random.uniform(-1, 1));
    for (float& x : bias.data<float>()) x = static_cast<float>(random.uniform(0, 2));
    model.weights->mark_changed(std::vector{gate.weight, gate.bias});
  }
}

inline Tensor residual_images(int64_t count, uint64_t seed) {
  Tensor images = *Tensor::allocate({DType::kF32, {count, 3, 16, 16}});
  Random random(seed);
  test::fill_random(images, random);
  return images;
}

// Ten classes that a small network tells apart after few steps: stripes in five colours, lying or standing,
// under noise.
inline std::shared_ptr<const Dataset> stripes(int64_t count, uint64_t seed) {
  constexpr int64_t kSide = 16;
  constexpr int kColours[5][3] = {
      {200, 40, 40}, {40, 200, 40}, {40, 40, 200}, {200, 200, 40}, {40, 200, 200}};
  Tensor images = *Tensor::zeros({DType::kU8, Shape{count, kSide, kSide, 3}});
  Tensor labels = *Tensor::zeros({DType::kI64, Shape{count}});
  Random random(seed);
  uint8_t* pixel = images.data<uint8_t>().data();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t label = i % 10;
    labels.data<int64_t>()[static_cast<size_t>(i)] = label;
    for (int64_t y = 0; y < kSide; ++y) {
      for (int64_t x = 0; x < kSide; ++x) {
        const bool on = (label < 5 ? y : x) / 2 % 2 == 0;
        for (int c = 0; c < 3; ++c) {
          const double value = (on ? kColours[label % 5][c] : 120) + 30 * random.normal();
          *pixel++ = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
        }
      }
    }
  }
  return *open_arrays(images, labels, "stripes");
}

inline Tensor answers_of(const AdaptedModel& model, const Tensor& images) {
  const int64_t count = images.shape().dim(0);
  auto plan = compile(model.graph, model.weights, model.backends, batch_settings(model.graph, count, 1));
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  auto session = *Session::create(*plan);
  std::memcpy(session->input(0).raw(), images.raw(), images.bytes());
  EXPECT_TRUE(session->run().ok());
  Tensor copy = *Tensor::allocate(session->output(0).type());
  std::memcpy(copy.raw(), session->output(0).raw(), copy.bytes());
  return copy;
}

}  // namespace limber::adapt
