// Weights that stay packed between steps: nothing but the time must show it.
#include <cstring>

#include "tests/train/training_case.h"

namespace limber::test {
namespace {

// Channels that fill no block, groups, a depthwise convolution, a weight that is used twice.
constexpr std::string_view kOddNet = R"(graph "odd" {
  input %x: f32[N,3,9,9]
  param %w1: f32[10,3,3,3]
  param %s1: f32[10]
  param %b1: f32[10]
  param %mean1: f32[10]
  param %var1: f32[10]
  param %w2: f32[36,5,3,3]
  param %bias2: f32[36]
  param %wd: f32[36,1,3,3]
  param %w3: f32[36,36,1,1]
  param %fc: f32[36,4]
  param %fb: f32[4]
  %c1: f32[N,10,9,9] = Conv(%x, %w1) {dilations=[1,1], pads=[1,1,1,1], strides=[1,1]}
  %n1: f32[N,10,9,9] = BatchNorm(%c1, %s1, %b1, %mean1, %var1) {epsilon=1e-05}
  %r1: f32[N,10,9,9] = Relu(%n1)
  %c2: f32[N,36,5,5] = Conv(%r1, %w2, %bias2) {dilations=[1,1], groups=2, pads=[1,1,1,1], strides=[2,2]}
  %r2: f32[N,36,5,5] = Relu(%c2)
  %d: f32[N,36,5,5] = Conv(%r2, %wd) {dilations=[1,1], groups=36, pads=[1,1,1,1], strides=[1,1]}
  %c3: f32[N,36,5,5] = Conv(%d, %w3) {dilations=[1,1], pads=[0,0,0,0], strides=[1,1]}
  %r3: f32[N,36,5,5] = Relu(%c3)
  %c4: f32[N,36,5,5] = Conv(%r3, %w3) {dilations=[1,1], pads=[0,0,0,0], strides=[1,1]}
  %p: f32[N,36,1,1] = GlobalAveragePool(%c4)
  %f: f32[N,36] = Reshape(%p) {shape=<N,36>}
  %y: f32[N,4] = Gemm(%f, %fc, %fb)
  output %y as "logits"
}
)";

// The CPU backend, but updates are plain: nothing stays packed.
class PlainUpdates : public Backend {
 public:
  std::string_view name() const override { return "plain"; }
  std::unique_ptr<NodeCompiler> begin(const Graph& g, const std::vector<bool>& statics) override {
    return std::make_unique<Nodes>(cpu_->begin(g, statics));
  }
  size_t bytes(const TensorType& type, Layout layout) const override { return cpu_->bytes(type, layout); }
  std::string layout_name(Layout layout) const override { return cpu_->layout_name(layout); }
  double reorder_seconds(const TensorType& type, Layout from, Layout to) override {
    return cpu_->reorder_seconds(type, from, to);
  }
  Result<std::unique_ptr<Kernel>> reorder(const TensorType& type, Layout from, Layout to) override {
    return cpu_->reorder(type, from, to);
  }

 private:
  class Nodes : public NodeCompiler {
   public:
    explicit Nodes(std::unique_ptr<NodeCompiler> cpu) : cpu_(std::move(cpu)) {}
    bool supports(NodeId n) override { return cpu_->supports(n); }
    Result<std::vector<Candidate>> candidates(NodeId n, std::span<const Layout> near) override {
      return cpu_->candidates(n, near);
    }
    Status prepare(NodeId n, Candidate& c) override { return cpu_->prepare(n, c); }
    Result<std::unique_ptr<Kernel>> compile(NodeId n, const Candidate& c) override {
      return cpu_->compile(n, c);
    }

   private:
    std::unique_ptr<NodeCompiler> cpu_;
  };

  std::shared_ptr<Backend> cpu_ = make_cpu_backend({.threads = 1, .tune = false, .cache_file = ""});
};

std::vector<std::shared_ptr<Backend>> plain_backends() {
  return {std::make_shared<PlainUpdates>(), make_ref_backend()};
}

void step(TrainingSession& training, uint64_t seed, Phase phase = Phase::kUpdate) {
  Random random(seed);
  fill_random(training.images(), random);
  for (int64_t& label : training.labels().data<int64_t>()) label = static_cast<int64_t>(random.below(4));
  training.set_rate(0.02);
  const auto loss = training.step(phase);
  ASSERT_TRUE(loss.ok()) << loss.status().message();
  ASSERT_TRUE(std::isfinite(*loss));
}

size_t packed_leaves(const Plan& plan) {
  return static_cast<size_t>(
      std::count_if(plan.packed.begin(), plan.packed.end(), [](const auto& key) { return !key.empty(); }));
}

// What is held packed is what its plain form packs to: padding is still zero.
void expect_clean_padding(const Plan& plan) {
  for (const Slot& slot : plan.slots) {
    if (slot.leaf < 0 || slot.layout == kPlain) continue;
    const auto leaf = static_cast<size_t>(slot.leaf);
    const auto held = plan.params->find_packed(plan.leaves[leaf], plan.packed[leaf]);
    ASSERT_TRUE(held) << plan.leaves[leaf];
    const Tensor plain = *plan.params->get(plan.leaves[leaf]);
    const auto packed = *Buffer::allocate(slot.bytes);
    const auto pack = *plan.backends.front()->reorder(slot.type, kPlain, slot.layout);
    const auto scratch = *Buffer::allocate(pack->scratch_bytes());
    (*pack->bind({{plain.raw()}, {packed->data()}, scratch->data()}))->run();
    EXPECT_EQ(std::memcmp(held->data(), packed->data(), slot.bytes), 0) << plan.leaves[leaf];
  }
}

// Every byte of every parameter and state.
void expect_same(const Net& a, const Net& b, const std::string& what) {
  const auto first = bytes_of(*a.params), second = bytes_of(*b.params);
  ASSERT_EQ(first.size(), second.size()) << what;
  for (const auto& [name, bytes] : first) EXPECT_TRUE(bytes == second.at(name)) << what << ": " << name;
}

class Pair {
 public:
  explicit Pair(const TrainingOptions& options = {})
      : packed(make_training(one, cpu_backends(), options)),
        plain(make_training(two, plain_backends(), options)) {}

  void step_both(uint64_t seed, Phase phase = Phase::kUpdate) {
    step(*packed, seed, phase);
    step(*plain, seed, phase);
  }

  const Net one = make_net(kOddNet), two = make_net(kOddNet);
  std::unique_ptr<TrainingSession> packed, plain;
};

TEST(PackedTraining, EqualsPlainTrainingForEveryOptimiser) {
  std::vector<OptimizerOptions> optimizers(5);
  optimizers[0].decay = 1e-3;
  optimizers[1].momentum = 0;
  optimizers[1].effects = true;
  optimizers[2].nesterov = true;
  optimizers[3].kind = OptimizerKind::kAdam;
  optimizers[4].kind = OptimizerKind::kAdamW;
  optimizers[4].decay = 0.1;
  for (size_t i = 0; i < optimizers.size(); ++i) {
    TrainingOptions options;
    options.step.optimizer = optimizers[i];
    Pair pair(options);
    ASSERT_TRUE(pair.packed && pair.plain);
    const Plan& plan = **pair.packed->plan();
    EXPECT_GE(packed_leaves(plan), 3u) << plan.text();
    EXPECT_LT(plan.num_reorders(), (*pair.plain->plan())->num_reorders());
    for (uint64_t s = 0; s < 4; ++s) pair.step_both(s);
    expect_same(pair.one, pair.two, fmt::format("optimizer {}", i));
    expect_clean_padding(plan);
  }
}

TEST(PackedTraining, EffectsDoNotCountPadding) {
  TrainingOptions options;
  options.step.optimizer.effects = true;
  Pair pair(options);
  ASSERT_TRUE(pair.packed && pair.plain);
  for (uint64_t s = 0; s < 3; ++s) pair.step_both(s);
  const auto packed = pair.packed->effects(), plain = pair.plain->effects();
  ASSERT_EQ(packed.size(), plain.size());
  for (size_t i = 0; i < packed.size(); ++i) {
    EXPECT_NEAR(packed[i].gain, plain[i].gain, 1e-4 * std::abs(plain[i].gain));
    EXPECT_NEAR(packed[i].weight_squares, plain[i].weight_squares, 1e-5 * plain[i].weight_squares);
  }
}

TEST(PackedTraining, ClipsByTheSameNorm) {
  TrainingOptions options;
  options.step.optimizer.clip_norm = 0.1;
  Pair pair(options);
  ASSERT_TRUE(pair.packed && pair.plain);
  EXPECT_GE(packed_leaves(**pair.packed->plan()), 3u);
  for (uint64_t s = 0; s < 3; ++s) pair.step_both(s);
  for (const std::string& name : pair.one.params->names())
    expect_close(*pair.one.params->get(name), *pair.two.params->get(name), 1e-5, name);
}

TEST(PackedTraining, SwitchingSetsTakesThePackedWeightsAlong) {
  const std::vector<std::vector<std::string>> sets = {
      {"w1", "w2", "wd", "w3"}, {"w3", "fb"}, {"w2", "s1"}, {"w1", "fc"}};
  Pair pair;
  ASSERT_TRUE(pair.packed && pair.plain);
  for (size_t round = 0; round < 2 * sets.size(); ++round) {
    const auto& set = sets[round % sets.size()];
    ASSERT_TRUE(pair.packed->set_trained(set).ok() && pair.plain->set_trained(set).ok());
    pair.step_both(round);
    pair.step_both(round + 100);
    if (round % 3 == 0) expect_same(pair.one, pair.two, fmt::format("round {}", round));
  }
  expect_same(pair.one, pair.two, "end");
}

TEST(PackedTraining, APlanOfTheSameLayoutUsesTheSameBytes) {
  Pair pair;
  ASSERT_TRUE(pair.packed);
  step(*pair.packed, 1);
  const Plan& plan = **pair.packed->plan();
  const auto leaf =
      static_cast<size_t>(std::find(plan.leaves.begin(), plan.leaves.end(), "w3") - plan.leaves.begin());
  ASSERT_FALSE(plan.packed[leaf].empty());
  const auto before = pair.one.params->find_packed("w3", plan.packed[leaf]);
  ASSERT_TRUE(pair.packed->set_trained(std::vector<std::string>{"w3"}).ok());
  step(*pair.packed, 2);
  EXPECT_EQ(pair.one.params->find_packed("w3", plan.packed[leaf]), before);
}

// Two sessions over one set of parameters, whose layouts need not agree, one of them always plain.
TEST(PackedTraining, SessionsMayTakeTurns) {
  const Net net = make_net(kOddNet), other = make_net(kOddNet);
  const auto a = make_training(net, cpu_backends()), b = make_training(net, cpu_backends(), {}, 7),
             c = make_training(net, plain_backends());
  const auto x = make_training(other, plain_backends()), y = make_training(other, plain_backends(), {}, 7);
  ASSERT_TRUE(a && b && c && x && y);
  for (uint64_t s = 0; s < 3; ++s) {
    for (TrainingSession* training : {a.get(), b.get(), c.get(), a.get()}) step(*training, s);
    for (TrainingSession* training : {x.get(), y.get(), x.get(), x.get()}) step(*training, s);
    expect_same(net, other, fmt::format("step {}", s));
  }
}

TEST(PackedTraining, MicroBatchesKeepTheirSumsPacked) {
  TrainingOptions options;
  options.step.micro_batches = 3;
  Pair pair(options);
  ASSERT_TRUE(pair.packed && pair.plain);
  for (uint64_t s = 0; s < 3; ++s) {
    pair.step_both(3 * s, Phase::kStart);
    pair.step_both(3 * s + 1, Phase::kAccumulate);
    pair.step_both(3 * s + 2, Phase::kFinish);
  }
  for (Phase phase : {Phase::kStart, Phase::kAccumulate, Phase::kFinish})
    EXPECT_GE(packed_leaves(**pair.packed->plan(phase)), 3u);
  expect_same(pair.one, pair.two, "micro-batches");
}

TEST(PackedTraining, AnInferencePlanSeesEveryStep) {
  Pair pair;
  ASSERT_TRUE(pair.packed && pair.plain);
  const auto one = make_session(pair.one, cpu_backends(), {.symbols = {{"N", 2}}});
  const auto two = make_session(pair.two, cpu_backends(), {.symbols = {{"N", 2}}});
  ASSERT_TRUE(one && two);
  fill_inputs(*one);
  fill_inputs(*two);
  for (uint64_t s = 0; s < 3; ++s) {
    pair.step_both(s);
    ASSERT_TRUE(one->run().ok() && two->run().ok());
    expect_close(one->output(0), two->output(0), 0, fmt::format("step {}", s));
  }
  expect_same(pair.one, pair.two, "end");
}

TEST(PackedTraining, GoesOnFromWhatWasSaved) {
  Pair pair;
  ASSERT_TRUE(pair.packed);
  for (uint64_t s = 0; s < 3; ++s) step(*pair.packed, s);
  Net saved = make_net(kOddNet);
  for (const auto& [name, bytes] : bytes_of(*pair.one.params)) {
    Tensor tensor = *Tensor::allocate(*pair.one.params->type(name));
    std::memcpy(tensor.raw(), bytes.data(), bytes.size());
    saved.params->set(name, tensor);
  }
  const auto resumed = make_training(saved, cpu_backends());
  ASSERT_TRUE(resumed);
  for (uint64_t s = 3; s < 6; ++s) {
    step(*pair.packed, s);
    step(*resumed, s);
  }
  expect_same(pair.one, saved, "resumed");
}

TEST(PackedTraining, WhatIsWrittenFromOutsideCounts) {
  Pair pair;
  ASSERT_TRUE(pair.packed && pair.plain);
  pair.step_both(1);
  for (const Net* net : {&pair.one, &pair.two}) {
    Tensor w3 = *net->params->writable("w3");
    for (float& x : w3.data<float>()) x *= 0.5f;
    net->params->mark_changed(std::vector<std::string>{"w3"});
    net->params->set("w1", *Tensor::zeros(*net->params->type("w1")));
  }
  pair.step_both(2);
  expect_same(pair.one, pair.two, "written");
}

TEST(PackedTraining, ProfilingLeavesParametersAlone) {
  Pair pair;
  ASSERT_TRUE(pair.packed && pair.plain);
  pair.step_both(1);
  ASSERT_TRUE(pair.packed->profile(2).ok());
  expect_same(pair.one, pair.two, "profiled");
  pair.step_both(2);
  expect_same(pair.one, pair.two, "after");
}

}  // namespace
}  // namespace limber::test
