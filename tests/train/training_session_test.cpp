#include "train/training_session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "base/memory.h"
#include "tests/train/training_case.h"

namespace limber::test {
namespace {

constexpr std::string_view kSmallNet = R"(graph "small" {
  input %x: f32[N,3,8,8]
  param %w1: f32[16,3,3,3]
  param %s1: f32[16]
  param %b1: f32[16]
  param %mean1: f32[16]
  param %var1: f32[16]
  param %w2: f32[16,16,3,3]
  param %bias2: f32[16]
  param %w3: f32[16,4]
  param %b3: f32[4]
  %c1: f32[N,16,8,8] = Conv(%x, %w1) {dilations=[1,1], pads=[1,1,1,1], strides=[1,1]} "conv1"
  %n1: f32[N,16,8,8] = BatchNorm(%c1, %s1, %b1, %mean1, %var1) {epsilon=1e-05} "norm1"
  %r1: f32[N,16,8,8] = Relu(%n1)
  %c2: f32[N,16,8,8] = Conv(%r1, %w2, %bias2) {dilations=[1,1], pads=[1,1,1,1], strides=[1,1]} "conv2"
  %sum: f32[N,16,8,8] = Add(%c2, %r1)
  %r2: f32[N,16,8,8] = Relu(%sum)
  %p: f32[N,16,1,1] = GlobalAveragePool(%r2)
  %f: f32[N,16] = Reshape(%p) {shape=<N,16>}
  %y: f32[N,4] = Gemm(%f, %w3, %b3)
  output %y as "logits"
}
)";

// Convolutions, each with BatchNorm and Relu: most of a step's memory is activations.
std::string deep_net(int layers) {
  std::string params, nodes, last = "x";
  for (int i = 0; i < layers; ++i) {
    params += fmt::format("  param %w{0}: f32[16,{1},3,3]\n", i, i == 0 ? 3 : 16);
    for (const char* name : {"scale", "bias", "mean", "var"})
      params += fmt::format("  param %{}{}: f32[16]\n", name, i);
    nodes += fmt::format(
        "  %c{0}: f32[N,16,8,8] = Conv(%{1}, %w{0}) {{dilations=[1,1], pads=[1,1,1,1], strides=[1,1]}}\n"
        "  %n{0}: f32[N,16,8,8] = BatchNorm(%c{0}, %scale{0}, %bias{0}, %mean{0}, %var{0}) "
        "{{epsilon=1e-05}}\n"
        "  %r{0}: f32[N,16,8,8] = Relu(%n{0})\n",
        i, last);
    last = fmt::format("r{}", i);
  }
  return fmt::format(
      "graph \"deep\" {{\n  input %x: f32[N,3,8,8]\n{}  param %wf: f32[16,4]\n{}"
      "  %p: f32[N,16,1,1] = GlobalAveragePool(%{})\n  %f: f32[N,16] = Reshape(%p) {{shape=<N,16>}}\n"
      "  %y: f32[N,4] = MatMul(%f, %wf)\n  output %y as \"logits\"\n}}\n",
      params, nodes, last);
}

// The same images and labels for the same step.
void fill_batch(TrainingSession& training, uint64_t step) {
  Random random(100 + step);
  fill_random(training.images(), random);
  for (int64_t& label : training.labels().data<int64_t>()) label = static_cast<int64_t>(random.below(4));
}

std::vector<float> train(TrainingSession& training, int steps, double rate = 0.05) {
  std::vector<float> losses;
  training.set_rate(rate);
  for (int s = 0; s < steps; ++s) {
    fill_batch(training, static_cast<uint64_t>(s % 3));
    auto loss = training.step();
    EXPECT_TRUE(loss.ok()) << loss.status().message();
    losses.push_back(loss.ok() ? *loss : NAN);
  }
  return losses;
}

TEST(TrainingSession, LossFallsAndBackendsAgree) {
  const Net fast = make_net(kSmallNet), slow = make_net(kSmallNet);
  const auto a = make_training(fast, cpu_backends(2)), b = make_training(slow, ref_backends());
  ASSERT_TRUE(a && b);
  const auto fast_losses = train(*a, 12), slow_losses = train(*b, 12);
  for (size_t i = 0; i < fast_losses.size(); ++i) {
    EXPECT_NEAR(fast_losses[i], slow_losses[i], 2e-3 * (1 + std::abs(slow_losses[i]))) << "step " << i;
  }
  EXPECT_LT(fast_losses.back(), 0.7f * fast_losses.front());
  for (const char* name : {"w1", "s1", "b3", "mean1", "optimizer/velocity/w2"}) {
    expect_close(*fast.params->get(name), *slow.params->get(name), 5e-3, name);
  }
}

TEST(TrainingSession, UpdatesHappenInPlace) {
  const Net net = make_net(kSmallNet);
  const auto training = make_training(net, cpu_backends());
  ASSERT_TRUE(training);
  auto plan = training->plan();
  ASSERT_TRUE(plan.ok());
  for (const Step& step : (*plan)->steps)
    EXPECT_EQ(step.reason.find("end of the step"), std::string::npos) << (*plan)->text();
}

TEST(TrainingSession, OnlyTheTrainedSetChanges) {
  const Net net = make_net(kSmallNet);
  const auto training = make_training(net, cpu_backends());
  ASSERT_TRUE(training);
  const std::vector<std::string> set = {"w2", "b3"};
  ASSERT_TRUE(training->set_trained(set).ok());
  std::map<std::string, std::vector<float>> before;
  for (const std::string& name : training->trainable()) {
    const Tensor tensor = *net.params->get(name);
    before[name].assign(tensor.data<float>().begin(), tensor.data<float>().end());
  }
  train(*training, 2);
  for (const auto& [name, old] : before) {
    const Tensor tensor = *net.params->get(name);
    const bool same = std::equal(old.begin(), old.end(), tensor.data<float>().begin());
    EXPECT_EQ(same, name != "w2" && name != "b3") << name;
  }
}

// A frozen prefix must not use packed weights from before it was trained.
TEST(TrainingSession, TogglingEqualsFreshSessions) {
  const std::vector<std::vector<std::string>> sets = {{"w1", "w2", "w3"}, {"w3", "b3"}, {"w2", "s1"}, {"w1"}};
  const Net toggled = make_net(kSmallNet), fresh = make_net(kSmallNet);
  const auto training = make_training(toggled, cpu_backends());
  ASSERT_TRUE(training);
  for (int round = 0; round < 8; ++round) {
    const auto& set = sets[static_cast<size_t>(round) % sets.size()];
    ASSERT_TRUE(training->set_trained(set).ok());
    const auto once = make_training(fresh, cpu_backends());
    ASSERT_TRUE(once && once->set_trained(set).ok());
    EXPECT_EQ(train(*training, 2), train(*once, 2)) << "round " << round;
  }
  EXPECT_LE(training->compiled_plans(), sets.size() + 1);
}

TEST(TrainingSession, RepeatsToTheBit) {
  std::set<std::vector<float>> seen;
  for (int run = 0; run < 3; ++run) {
    const Net net = make_net(kSmallNet);
    const auto training = make_training(net, cpu_backends(2), {.threads = 2});
    ASSERT_TRUE(training);
    seen.insert(train(*training, 6));
  }
  EXPECT_EQ(seen.size(), 1u);
}

TEST(TrainingSession, FewerTensorsNeedLessMemory) {
  const Net net = make_net(kSmallNet);
  const auto training = make_training(net, cpu_backends());
  ASSERT_TRUE(training);
  const size_t full = (*training->plan())->arena_bytes;
  ASSERT_TRUE(training->set_trained(std::vector<std::string>{"w3", "b3"}).ok());
  EXPECT_LT((*training->plan())->arena_bytes, full / 2);
}

TEST(TrainingSession, RecomputesWithinTheMemoryLimit) {
  const Net plenty = make_net(deep_net(8)), little = make_net(deep_net(8));
  const auto full = make_training(plenty, cpu_backends(), {}, 256);
  ASSERT_TRUE(full);
  TrainingOptions options;
  options.memory_limit = (*full->plan())->memory_bytes() - (*full->plan())->arena_bytes / 6;
  const auto limited = make_training(little, cpu_backends(), options, 256);
  ASSERT_TRUE(limited);
  EXPECT_LE((*limited->plan())->memory_bytes(), options.memory_limit);
  EXPECT_GT((*limited->plan())->steps.size(), (*full->plan())->steps.size());
  const auto a = train(*full, 6), b = train(*limited, 6);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4 * (1 + std::abs(a[i]))) << "step " << i;

  options.memory_limit = 1000;
  options.step.batch = 4;
  const auto refused = TrainingSession::create(little.graph, little.params, cpu_backends(), options);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("bytes at least"), std::string::npos);
}

TEST(TrainingSession, MemoryIsAsPlanned) {
#ifdef LIMBER_SANITIZED
  GTEST_SKIP() << "sanitizers need memory of their own";
#endif
  const Net net = make_net(deep_net(8));  // so large that code other tests have loaded does not count
  const size_t before = process_memory().resident;
  const auto training = make_training(net, cpu_backends(), {}, 8192);
  ASSERT_TRUE(training);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(training->step().ok());
  const auto grown = static_cast<double>(process_memory().resident - before);
  const auto planned = static_cast<double>((*training->plan())->memory_bytes());
  EXPECT_NEAR(grown, planned, 0.05 * planned);
}

// Two halves of a batch, accumulated, are the batch (with frozen statistics, which do not see it).
TEST(TrainingSession, MicroBatchesMakeOneUpdate) {
  TrainingOptions options;
  options.step.batch_norm = BatchNormMode::kFrozen;
  const Net whole = make_net(kSmallNet), parts = make_net(kSmallNet);
  const auto one = make_training(whole, cpu_backends(), options);
  options.step.micro_batches = 3;
  const auto many = make_training(parts, cpu_backends(), options);
  ASSERT_TRUE(one && many);
  one->set_rate(0.1);
  many->set_rate(0.1);
  fill_batch(*one, 1);
  ASSERT_TRUE(one->step().ok());
  for (Phase phase : {Phase::kStart, Phase::kAccumulate, Phase::kFinish}) {
    fill_batch(*many, 1);
    ASSERT_TRUE(many->step(phase).ok());
  }
  for (const std::string& name : one->trainable()) {
    expect_close(*parts.params->get(name), *whole.params->get(name), 1e-5, name);
  }
}

// Normalisation follows the batch exactly where training changes something.
TEST(TrainingSession, AutomaticNormsAreFrozenBelowWhatIsTrained) {
  const Graph model = make_net(kTinyNet).graph;
  const auto step = [&](BatchNormMode mode, const std::vector<std::string>& names) {
    const StepOptions options{.batch = 4, .batch_norm = mode};
    auto graph = training_step(*prepare_model(model, options), names, options, Phase::kUpdate);
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return hash(*graph);
  };
  const std::vector<std::string> last = {"fc.w", "fc.b"};
  EXPECT_EQ(step(BatchNormMode::kAuto, last), step(BatchNormMode::kFrozen, last));
  EXPECT_NE(step(BatchNormMode::kAuto, last), step(BatchNormMode::kBatch, last));
  for (const std::vector<std::string>& names : {std::vector<std::string>{"conv.w"},
                                                {"norm.b", "fc.w"},
                                                {"conv.w", "norm.s", "norm.b", "fc.w", "fc.b"}}) {
    EXPECT_EQ(step(BatchNormMode::kAuto, names), step(BatchNormMode::kBatch, names));
  }
}

// Steps on features that were kept are the steps on the images they were made of.
TEST(TrainingSession, KeptFeaturesChangeNothing) {
  const std::vector<std::string> last = {"fc.w", "fc.b"};
  TrainingOptions options;
  options.step.batch_norm = BatchNormMode::kAuto;
  const Net plain_net = make_net(kTinyNet), net = make_net(kTinyNet);
  const auto plain = make_training(plain_net, cpu_backends(), options);
  options.feature_bytes = 1 << 20;
  options.samples = 8;
  const auto kept = make_training(net, cpu_backends(), options);
  ASSERT_TRUE(plain && kept);
  for (TrainingSession* training : {plain.get(), kept.get()}) {
    training->set_rate(0.1);
    ASSERT_TRUE(training->set_trained(last).ok());
  }
  for (int i = 0; i < 8; ++i) {
    const uint64_t half = i % 2;  // two batches of four images, in turn
    const std::vector<uint32_t> samples =
        half == 0 ? std::vector<uint32_t>{0, 2, 4, 6} : std::vector<uint32_t>{7, 5, 3, 1};
    fill_batch(*plain, half);
    fill_batch(*kept, half);
    if (i >= 2) std::memset(kept->images().raw(), 0, kept->images().bytes());  // need not be looked at
    const auto want = plain->step(), loss = kept->step(Phase::kUpdate, samples);
    ASSERT_TRUE(want.ok() && loss.ok());
    EXPECT_NEAR(*loss, *want, 1e-5) << i;
    EXPECT_EQ(kept->features(), i == 0 ? FeatureState::kFilling : FeatureState::kReady);
  }
  for (const std::string& name : last)
    expect_close(*net.params->get(name), *plain_net.params->get(name), 1e-5, name);
  // Training something below makes them stale; with everything trained there are none.
  ASSERT_TRUE(kept->set_trained(kept->trainable()).ok());
  fill_batch(*kept, 0);
  ASSERT_TRUE(kept->step(Phase::kUpdate, std::vector<uint32_t>{0, 1, 2, 3}).ok());
  EXPECT_EQ(kept->features(), FeatureState::kNone);
  options.feature_bytes = 64;
  const auto small = make_training(net, cpu_backends(), options);
  ASSERT_TRUE(small && small->set_trained(last).ok());
  ASSERT_TRUE(small->step(Phase::kUpdate, std::vector<uint32_t>{0, 1, 2, 3}).ok());
  EXPECT_EQ(small->features(), FeatureState::kTooLarge);
}

TEST(TrainingSession, BadRequestsKeepTheOldSet) {
  const Net net = make_net(kSmallNet);
  const auto training = make_training(net, cpu_backends());
  ASSERT_TRUE(training);
  EXPECT_FALSE(training->set_trained(std::vector<std::string>{"nothing"}).ok());
  EXPECT_FALSE(training->set_trained(std::vector<std::string>{}).ok());
  EXPECT_EQ(training->trained(), training->trainable());
  EXPECT_TRUE(training->step().ok());
}

TEST(TrainingSession, OptimisersMakeTheLossFall) {
  for (OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    TrainingOptions options;
    options.step.optimizer = {.kind = kind, .decay = 1e-4, .clip_norm = 5};
    const Net net = make_net(kSmallNet);
    const auto training = make_training(net, cpu_backends(), options);
    ASSERT_TRUE(training);
    const auto losses = train(*training, 20, kind == OptimizerKind::kSgd ? 0.05 : 0.01);
    EXPECT_LT(losses.back(), losses.front()) << optimizer_name(kind);
  }
}

// Whoever serves the model while it is trained runs with what was published, bit for bit, and without the
// state of the optimiser.
TEST(TrainingSession, ASnapshotIsTheModelAtThatStep) {
  const Net net = make_net(kSmallNet);
  const auto training = make_training(net, cpu_backends());
  ASSERT_TRUE(training);
  const auto step = [&](uint64_t seed) {
    Random random(seed);
    fill_random(training->images(), random);
    for (int64_t& label : training->labels().data<int64_t>()) label = static_cast<int64_t>(random.below(4));
    training->set_rate(0.05);
    ASSERT_TRUE(training->step().ok());
  };
  const auto answer = [](Session& session) {
    fill_inputs(session);
    EXPECT_TRUE(session.run().ok());
    const Tensor y = session.output(0);
    return std::vector<float>(y.data<float>().begin(), y.data<float>().end());
  };
  step(1);
  const auto served = training->snapshot();
  ASSERT_TRUE(served.ok()) << served.status().message();
  for (const std::string& name : served->weights().names()) EXPECT_TRUE(net.graph.find(name)) << name;
  EXPECT_LT(served->weights().names().size(), net.params->names().size());
  const auto plan = compile(net.graph, *served, cpu_backends(), {.batch = 2});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto session = *Session::create(*plan, *served);
  const std::vector<float> first = answer(*session);
  EXPECT_EQ(first, answer(*make_session(net, cpu_backends(), {.batch = 2})));
  step(2);
  EXPECT_EQ(answer(*session), first);
  ASSERT_TRUE(session->use(*training->snapshot()).ok());
  const std::vector<float> second = answer(*session);
  EXPECT_NE(second, first);
  EXPECT_EQ(second, answer(*make_session(net, cpu_backends(), {.batch = 2})));
}

}  // namespace
}  // namespace limber::test
