// A small classifier, small data, and a disk that gets full.
#pragma once

#include <algorithm>

#include "data/synthetic.h"
#include "tests/base/full_disk.h"
#include "tests/data/files.h"
#include "tests/runtime/net.h"
#include "train/trainer.h"

namespace limber::test {

// Ten classes of 16-pixel images.
inline constexpr std::string_view kTinyNet = R"(graph "tiny" {
  input %image: f32[N,3,16,16]
  param %conv.w: f32[8,3,3,3]
  param %norm.s: f32[8]
  param %norm.b: f32[8]
  param %norm.mean: f32[8]
  param %norm.var: f32[8]
  param %fc.w: f32[10,8]
  param %fc.b: f32[10]
  %c: f32[N,8,8,8] = Conv(%image, %conv.w) {dilations=[1,1], pads=[1,1,1,1], strides=[2,2]} "conv"
  %n: f32[N,8,8,8] = BatchNorm(%c, %norm.s, %norm.b, %norm.mean, %norm.var) {epsilon=1e-05} "norm"
  %r: f32[N,8,8,8] = Relu(%n)
  %p: f32[N,8,1,1] = GlobalAveragePool(%r)
  %f: f32[N,8] = Reshape(%p) {shape=<N,8>}
  %y: f32[N,10] = Gemm(%f, %fc.w, %fc.b) {trans_b=1} "fc"
  output %y as "logits"
}
)";

inline std::shared_ptr<const Dataset> shapes(size_t count, Split split = Split::kTrain) {
  auto data = open_synthetic({.size = 16, .count = count, .split = split});
  EXPECT_TRUE(data.ok()) << data.status().message();
  return *std::move(data);
}

inline TrainerOptions tiny_options(int64_t epochs = 2) {
  TrainerOptions options;
  options.epochs = epochs;
  options.training.step.batch = 8;
  options.schedule = {.kind = ScheduleKind::kCosine, .rate = 0.1};
  options.input.height = options.input.width = 16;
  options.augmentation.flip = 0.5;
  options.seed = 3;
  return options;
}

// A new net on 40 images (5 batches of 8), evaluated on 20.
inline TrainerInputs tiny_inputs(RunFolder* folder = nullptr) {
  Net net = make_net(kTinyNet);
  return {.graph = std::move(net.graph),
          .params = std::move(net.params),
          .data = shapes(40),
          .validation = shapes(20, Split::kTest),
          .backends = cpu_backends(),
          .folder = folder};
}

inline std::unique_ptr<TrainingSession> make_training(const Net& net,
                                                      std::vector<std::shared_ptr<Backend>> backends,
                                                      TrainingOptions options = {}, int64_t batch = 4) {
  options.step.batch = batch;
  auto made = TrainingSession::create(net.graph, net.params, std::move(backends), options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? *std::move(made) : nullptr;
}

inline std::map<std::string, std::string> bytes_of(const Parameters& params) {
  std::map<std::string, std::string> bytes;
  for (const std::string& name : params.names()) {
    if (name.starts_with("gradient/")) continue;
    const Tensor tensor = *params.get(name);
    bytes[name] = std::string(static_cast<const char*>(tensor.raw()), tensor.bytes());
  }
  return bytes;
}

}  // namespace limber::test
