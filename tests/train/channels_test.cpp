// Training some of the output channels of a layer.
#include <gtest/gtest.h>

#include "tests/train/training_case.h"
#include "train/training_graph.h"

namespace limber::test {
namespace {

// Every kind of layer that has output channels: convolutions (whole, depthwise, grouped), normalisation and
// both orders of a matrix.
constexpr std::string_view kKinds = R"(graph "kinds" {
  input %x: f32[N,4,8,8]
  param %w1: f32[8,4,3,3]
  param %b1: f32[8]
  param %wd: f32[16,1,3,3]
  param %scale: f32[16]
  param %shift: f32[16]
  param %mean: f32[16]
  param %var: f32[16]
  param %wg: f32[8,8,3,3]
  param %m: f32[8,6]
  param %mb: f32[6]
  param %g: f32[5,6]
  param %gb: f32[5]
  %c1: f32[N,8,8,8] = Conv(%x, %w1, %b1) {dilations=[1,1], pads=[1,1,1,1], strides=[1,1]} "conv"
  %r1: f32[N,8,8,8] = Relu(%c1)
  %cd: f32[N,16,8,8] = Conv(%r1, %wd) {dilations=[1,1], groups=8, pads=[1,1,1,1], strides=[1,1]} "depthwise"
  %n: f32[N,16,8,8] = BatchNorm(%cd, %scale, %shift, %mean, %var) {epsilon=1e-05} "norm"
  %r2: f32[N,16,8,8] = Relu(%n)
  %cg: f32[N,8,4,4] = Conv(%r2, %wg) {dilations=[1,1], groups=2, pads=[1,1,1,1], strides=[2,2]} "grouped"
  %p: f32[N,8,1,1] = GlobalAveragePool(%cg)
  %f: f32[N,8] = Reshape(%p) {shape=<N,8>}
  %h: f32[N,6] = MatMul(%f, %m, %mb) "hidden"
  %r3: f32[N,6] = Relu(%h)
  %y: f32[N,5] = Gemm(%r3, %g, %gb) {trans_b=1} "head"
  output %y as "logits"
}
)";

const TrainedChannels kSome = {{"w1", {1, 5}},    {"b1", {0, 5, 7}}, {"wd", {0, 3, 14}}, {"scale", {2}},
                               {"shift", {2, 9}}, {"wg", {4, 6}},    {"m", {0, 2, 5}},   {"mb", {1}},
                               {"g", {3}},        {"gb", {0, 4}}};
const std::map<std::string, int> kAxes = {{"m", 1}};  // 0 for the others

std::vector<std::string> names_of(const TrainedChannels& channels) {
  std::vector<std::string> names;
  for (const auto& [name, part] : channels) names.push_back(name);
  return names;
}

StepOptions step_options() { return {.batch = 4, .optimizer = {.momentum = 0.9, .decay = 0.01}}; }

// The part of a tensor that `channels` names.
Tensor part_of(const Tensor& whole, const std::string& name, const std::vector<int64_t>& channels) {
  const int axis = kAxes.contains(name) ? kAxes.at(name) : 0;
  std::vector<int64_t> dims = whole.shape().dims();
  dims[static_cast<size_t>(axis)] = static_cast<int64_t>(channels.size());
  Tensor part = *Tensor::allocate({DType::kF32, Shape(std::vector<Dim>(dims.begin(), dims.end()))});
  int64_t inner = 1;
  for (int i = axis + 1; i < whole.shape().rank(); ++i) inner *= whole.shape().dim(i);
  const auto count = static_cast<int64_t>(channels.size()), size = whole.shape().dim(axis);
  for (int64_t i = 0; i < part.elements(); ++i) {
    const int64_t outer = i / inner / count, channel = channels[static_cast<size_t>(i / inner % count)];
    part.data<float>()[static_cast<size_t>(i)] =
        whole.data<float>()[static_cast<size_t>((outer * size + channel) * inner + i % inner)];
  }
  return part;
}

// Runs a step on images and labels of a seed; its outputs by name.
std::map<std::string, Tensor> run_step(const Net& net, const Graph& step,
                                       std::vector<std::shared_ptr<Backend>> backends) {
  EXPECT_TRUE(add_missing_state(step, *net.params).ok());
  const Net with_step{step, net.params};
  const auto session = make_session(with_step, std::move(backends), {.optimize = false});
  if (session == nullptr) return {};
  fill_inputs(*session, 7);
  for (size_t i = 0; i < step.inputs().size(); ++i) {
    if (session->input(i).dtype() != DType::kI64) continue;
    int64_t next = 0;
    for (int64_t& label : session->input(i).data<int64_t>()) label = next++ % 5;
  }
  EXPECT_TRUE(session->run().ok());
  std::map<std::string, Tensor> outputs;
  for (size_t i = 0; i < step.outputs().size(); ++i) {
    const Tensor output = session->output(i);
    Tensor copy = *Tensor::allocate(output.type());
    std::memcpy(copy.raw(), output.raw(), output.bytes());
    outputs[step.outputs()[i].name] = copy;
  }
  return outputs;
}

std::map<std::string, Tensor> gradients(std::vector<std::shared_ptr<Backend>> backends,
                                        const TrainedChannels& channels) {
  const Net net = make_net(kKinds);
  const auto prepared = prepare_model(net.graph, step_options());
  EXPECT_TRUE(prepared.ok()) << prepared.status().message();
  const auto step = training_step(*prepared, names_of(kSome), step_options(), Phase::kMeasure, channels);
  EXPECT_TRUE(step.ok()) << step.status().message();
  if (!step.ok()) return {};
  return run_step(net, *step, std::move(backends));
}

class EachBackend : public testing::TestWithParam<bool> {
 protected:
  static std::vector<std::shared_ptr<Backend>> backends() {
    return GetParam() ? cpu_backends(2) : ref_backends();
  }
};
INSTANTIATE_TEST_SUITE_P(Channels, EachBackend, testing::Bool(),
                         [](const auto& info) { return info.param ? "cpu" : "ref"; });

TEST_P(EachBackend, GradientsOfAPartAreThatPartOfTheGradients) {
  const auto all = gradients(ref_backends(), {}), some = gradients(backends(), kSome);
  ASSERT_EQ(all.size(), kSome.size() + 2);  // loss and logits
  ASSERT_EQ(some.size(), all.size());
  for (const auto& [name, part] : kSome) {
    const std::string output = "gradient/" + name;
    expect_close(some.at(output), part_of(all.at(output), name, part), 1e-5, name);
  }
}

std::unique_ptr<TrainingSession> train_some(const Net& net, std::vector<std::shared_ptr<Backend>> backends,
                                            const TrainingOptions& options, const TrainedChannels& channels) {
  auto training = make_training(net, std::move(backends), options);
  if (training == nullptr) return nullptr;
  const Status chosen = training->set_trained(names_of(kSome), Thrift::kTime, channels);
  EXPECT_TRUE(chosen.ok()) << chosen.message();
  training->set_rate(0.1);
  return training;
}

void run_steps(TrainingSession& training, int steps, Phase phase = Phase::kUpdate) {
  for (int s = 0; s < steps; ++s) {
    Random random(40 + static_cast<uint64_t>(s));
    fill_random(training.images(), random);
    for (int64_t& label : training.labels().data<int64_t>()) label = static_cast<int64_t>(random.below(5));
    ASSERT_TRUE(training.step(phase).ok());
  }
}

void expect_only_part_changed(const std::map<std::string, std::string>& before, const Parameters& params,
                              const std::string& name) {
  const Tensor now = *params.get(name);
  const auto* old = reinterpret_cast<const float*>(before.at(name).data());
  const auto& part = kSome.at(name);
  const int axis = kAxes.contains(name) ? kAxes.at(name) : 0;
  int64_t inner = 1;
  for (int i = axis + 1; i < now.shape().rank(); ++i) inner *= now.shape().dim(i);
  for (int64_t i = 0; i < now.elements(); ++i) {
    const int64_t channel = i / inner % now.shape().dim(axis);
    const bool chosen = std::find(part.begin(), part.end(), channel) != part.end();
    EXPECT_EQ(now.data<float>()[static_cast<size_t>(i)] != old[i], chosen) << name << " element " << i;
  }
}

// Decay and momentum would show wherever a step reaches.
TEST_P(EachBackend, OtherChannelsStayToTheBit) {
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdam}) {
    const Net net = make_net(kKinds);
    TrainingOptions options;
    options.step.optimizer = {.kind = kind, .decay = 0.01};
    const auto before = bytes_of(*net.params);
    const auto training = train_some(net, backends(), options, kSome);
    ASSERT_TRUE(training);
    run_steps(*training, 3);
    for (const auto& [name, part] : kSome) expect_only_part_changed(before, *net.params, name);
  }
}

TEST_P(EachBackend, OneStepIsThatOfTheWholeForThePart) {
  const Net whole = make_net(kKinds), part = make_net(kKinds);
  TrainingOptions options;
  options.step.optimizer.decay = 0.01;
  const auto a = train_some(whole, ref_backends(), options, {}),
             b = train_some(part, backends(), options, kSome);
  ASSERT_TRUE(a && b);
  run_steps(*a, 1);
  run_steps(*b, 1);
  for (const auto& [name, channels] : kSome) {
    expect_close(part_of(*part.params->get(name), name, channels),
                 part_of(*whole.params->get(name), name, channels), 1e-5, name);
  }
}

TEST_P(EachBackend, EveryChannelIsTheWhole) {
  TrainedChannels every;
  const Net whole = make_net(kKinds), parts = make_net(kKinds);
  for (const auto& [name, some] : kSome) {
    const int axis = kAxes.contains(name) ? kAxes.at(name) : 0;
    for (int64_t i = 0; i < whole.params->get(name)->shape().dim(axis); ++i) every[name].push_back(i);
  }
  const auto a = train_some(whole, ref_backends(), {}, {}), b = train_some(parts, backends(), {}, every);
  ASSERT_TRUE(a && b);
  run_steps(*a, 4);
  run_steps(*b, 4);
  for (const auto& [name, channels] : every)
    expect_close(*parts.params->get(name), *whole.params->get(name), 1e-3, name);
}

TEST(Channels, SumsOverMicroBatchesAreOfThePart) {
  const Net net = make_net(kKinds), once = make_net(kKinds);
  TrainingOptions options;
  options.step.micro_batches = 2;
  const auto twice = train_some(net, cpu_backends(), options, kSome);
  ASSERT_TRUE(twice);
  const auto fill = [](TrainingSession& training) {
    Random random(9);
    fill_random(training.images(), random);
    for (int64_t& label : training.labels().data<int64_t>()) label = 1;
  };
  for (const Phase phase : {Phase::kStart, Phase::kFinish}) {
    ASSERT_TRUE(twice->plan(phase).ok());
    fill(*twice);
    ASSERT_TRUE(twice->step(phase).ok());
  }
  const auto single = train_some(once, cpu_backends(), {}, kSome);
  ASSERT_TRUE(single);
  fill(*single);
  ASSERT_TRUE(single->step().ok());
  for (const auto& [name, channels] : kSome)
    expect_close(*net.params->get(name), *once.params->get(name), 1e-5, name);
}

// Operations of backward-weights in the step; and floats of the optimiser's state.
struct Work {
  double weights = 0;
  int64_t state = 0;
};

Work work_of(const TrainedChannels& channels, const std::vector<std::string>& names) {
  const Net net = make_net(kKinds);
  const auto prepared = prepare_model(net.graph, step_options());
  const auto step = training_step(*prepared, names, step_options(), Phase::kUpdate, channels);
  EXPECT_TRUE(step.ok()) << step.status().message();
  Work work;
  for (uint32_t n = 0; n < step->num_nodes(); ++n) {
    if (step->node(NodeId{n}).op == OpKind::kConvBackwardWeights)
      work.weights += node_flops(*step, NodeId{n});
  }
  for (const Value& value : step->values()) {
    if (value.name.starts_with("optimizer/")) work.state += value.type.shape.elements();
  }
  return work;
}

TEST(Channels, WorkAndStateShrinkWithThePart) {
  const std::vector<std::string> names = {"w1", "wd"};
  const Work all = work_of({}, names), some = work_of({{"w1", {1, 5}}, {"wd", {0, 3, 6, 7}}}, names);
  EXPECT_DOUBLE_EQ(some.weights, all.weights / 4);
  EXPECT_EQ(some.state, all.state / 4);
}

TEST(Channels, StateOfAPartThatIsNotTrainedAnyMoreGoes) {
  const Net net = make_net(kKinds);
  TrainingOptions options;
  options.forget_state = true;
  const auto training = train_some(net, cpu_backends(), options, kSome);
  ASSERT_TRUE(training);
  run_steps(*training, 1);
  const auto states = [&] {
    const auto names = net.params->names();
    return std::count_if(names.begin(), names.end(),
                         [](const std::string& name) { return name.starts_with("optimizer/"); });
  };
  EXPECT_EQ(states(), static_cast<ptrdiff_t>(kSome.size()));
  const std::vector<std::string> one = {"w1"};
  ASSERT_TRUE(training->set_trained(one, Thrift::kTime, {{"w1", {2}}}).ok());
  run_steps(*training, 1);
  EXPECT_EQ(states(), 1);
}

TEST(Channels, WhatCannotBeTrainedInPartIsSaid) {
  const Net net = make_net(kKinds);
  const auto training = make_training(net, cpu_backends());
  ASSERT_TRUE(training);
  const auto complaint = [&](const std::string& name, std::vector<int64_t> part) {
    return training->set_trained(std::vector{name}, Thrift::kTime, {{name, std::move(part)}}).message();
  };
  EXPECT_NE(complaint("w1", {3, 8}).find("channel 8 of 'w1'"), std::string::npos) << complaint("w1", {3, 8});
  EXPECT_NE(complaint("w1", {3, 3}).find("ascending"), std::string::npos);
  EXPECT_NE(complaint("w1", {-1}).find("channel -1"), std::string::npos);
  EXPECT_NE(complaint("w1", {}).find("no channel of 'w1'"), std::string::npos);
  constexpr std::string_view kSlope = R"(graph "slope" {
    input %x: f32[N,3]
    param %w: f32[3,2]
    param %slope: f32[2]
    %h: f32[N,2] = MatMul(%x, %w)
    %y: f32[N,2] = PRelu(%h, %slope) "steep"
    output %y as "y"
  })";
  const Net other = make_net(kSlope);
  const auto steep = make_training(other, ref_backends());
  ASSERT_TRUE(steep);
  const std::vector<std::string> names = {"slope"};
  const Status status = steep->set_trained(names, Thrift::kTime, {{"slope", {0}}});
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(status.message().find("'steep'"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace limber::test
