// Readers and a training over the same weights.
#include <atomic>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "tests/runtime/net.h"

namespace limber::test {
namespace {

// The forward part of kTraining: `w` is packed for the convolution, `s` and `b` are folded into it, `fc` and
// `fb` are never trained.
constexpr std::string_view kServed = R"(graph "served" {
  input %x: f32[2,20,9,9]
  param %w: f32[36,20,3,3]
  param %s: f32[36]
  param %b: f32[36]
  param %mean: f32[36]
  param %var: f32[36]
  param %fc: f32[36,5]
  param %fb: f32[5]
  %c: f32[2,36,9,9] = Conv(%x, %w) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}
  %n: f32[2,36,9,9] = BatchNorm(%c, %s, %b, %mean, %var) {epsilon=1e-05}
  %r: f32[2,36,9,9] = Relu(%n)
  %p: f32[2,36,1,1] = GlobalAveragePool(%r)
  %f: f32[2,36] = Reshape(%p) {shape=<2,36>}
  %y: f32[2,5] = Gemm(%f, %fc, %fb)
  output %y as "y"
})";

constexpr std::string_view kTraining = R"(graph "training" {
  input %x: f32[2,20,9,9]
  input %dy: f32[2,36,9,9]
  input %ds: f32[36]
  input %rate: f32[]
  param %w: f32[36,20,3,3]
  param %s: f32[36]
  param %b: f32[36]
  %y: f32[2,36,9,9] = Conv(%x, %w) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}
  %dw: f32[36,20,3,3] = ConvBackwardWeights(%x, %dy) {dilations=[1,1], groups=1, kernel=[3,3], pads=[1,1,1,1], strides=[1,1]}
  %w2: f32[36,20,3,3] = SgdUpdate(%w, %dw, %rate) {momentum=0.0}
  %s2: f32[36] = SgdUpdate(%s, %ds, %rate) {momentum=0.0}
  %b2: f32[36] = SgdUpdate(%b, %ds, %rate) {momentum=0.0}
  output %y as "y"
  output %w2 as "w" into %w
  output %s2 as "s" into %s
  output %b2 as "b" into %b
})";

using Bytes = std::vector<std::byte>;

Bytes output_bytes(const Session& session) {
  const Tensor y = session.output(0);
  const auto* first = static_cast<const std::byte*>(y.raw());
  return {first, first + y.bytes()};
}

std::unique_ptr<Session> reader(const Graph& graph, const WeightSnapshot& weights,
                                const std::vector<std::shared_ptr<Backend>>& backends) {
  auto plan = compile(graph, weights, backends, {});
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  auto session = Session::create(*std::move(plan), weights);
  EXPECT_TRUE(session.ok()) << session.status().message();
  fill_inputs(**session);
  return *std::move(session);
}

// A training over a working set, one step at a time.
struct Training {
  Net net = make_net(kServed);
  std::vector<std::shared_ptr<Backend>> backends = cpu_backends();
  std::unique_ptr<Session> session;

  Training() {
    session = make_session({*parse(kTraining), net.params}, backends, {.optimize = false});
    fill_inputs(*session, 3);
    session->input(3).data<float>()[0] = 1e-3F;
  }
  void step() { ASSERT_TRUE(session->run().ok()); }
  WeightSnapshot snapshot() const { return *net.params->snapshot(); }
  std::unique_ptr<Session> reader_of(const WeightSnapshot& weights) const {
    return reader(net.graph, weights, backends);
  }
};

Bytes answer(const Training& training, const WeightSnapshot& weights) {
  const auto session = training.reader_of(weights);
  EXPECT_TRUE(session->run().ok());
  return output_bytes(*session);
}

// What one thread saw: which snapshot a run had, and its result.
using Seen = std::vector<std::pair<uint64_t, Bytes>>;

void read_until(const std::atomic<bool>& done, const PublishedWeights& published, Session& session,
                Seen& seen) {
  for (bool last = false; !last;) {
    last = done.load();
    ASSERT_TRUE(session.use(published).ok());
    ASSERT_TRUE(session.run().ok());
    seen.emplace_back(session.snapshot_version(), output_bytes(session));
  }
}

TEST(WeightSnapshots, ReadersInFourThreadsSeeExactlyOneEachWhileATrainingPublishes) {
  constexpr int kReaders = 4, kPublished = 100;
  Training training;
  training.step();
  std::map<uint64_t, WeightSnapshot> all;
  PublishedWeights published(training.snapshot());
  all.emplace(published.version(), published.current());
  std::atomic<bool> done = false;
  std::vector<Seen> seen(kReaders);
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < kReaders; ++i) sessions.push_back(training.reader_of(published.current()));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kReaders; ++i)
    threads.emplace_back([&, i] { read_until(done, published, *sessions[i], seen[i]); });
  for (int i = 0; i < kPublished; ++i) {
    training.step();
    published.publish(training.snapshot());
    all.emplace(published.version(), published.current());
  }
  done = true;
  for (std::thread& thread : threads) thread.join();

  std::map<uint64_t, Bytes> answers;
  for (const auto& [version, snapshot] : all) answers[version] = answer(training, snapshot);
  EXPECT_EQ(answers.size(), kPublished + 1u);
  std::set<Bytes> different;
  for (const auto& [version, bytes] : answers) different.insert(bytes);
  EXPECT_EQ(different.size(), answers.size());  // so that a result says which weights made it
  for (const Seen& one : seen) {
    EXPECT_EQ(one.back().first, published.version());
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_TRUE(one[i].second == answers.at(one[i].first)) << "run " << i;
      EXPECT_GE(one[i].first, one[i == 0 ? 0 : i - 1].first);
    }
  }

  // Everybody lets go: of a hundred sets of weights and what was derived from them, one is left.
  std::vector<std::weak_ptr<const Parameters>> old;
  for (const auto& [version, snapshot] : all) {
    if (version != published.version()) old.push_back(snapshot.shared_weights());
  }
  const WeightSnapshot& last = all.at(published.version());
  const size_t derived = last.weights().derived().alive();
  all.erase(all.begin(), std::prev(all.end()));
  for (const auto& weights : old) EXPECT_TRUE(weights.expired());
  EXPECT_EQ(last.weights().derived().alive(), derived);  // those of the newest alone, shared by all readers
  sessions.clear();
  EXPECT_EQ(last.weights().derived().alive(), 0u);
}

TEST(WeightSnapshots, ASessionMovesOnOnlyWhenTold) {
  Training training;
  const WeightSnapshot before = training.snapshot();
  const auto session = training.reader_of(before);
  ASSERT_TRUE(session->run().ok());
  const Bytes old = output_bytes(*session);
  training.step();
  const WeightSnapshot after = training.snapshot();
  ASSERT_TRUE(session->run().ok());
  EXPECT_TRUE(output_bytes(*session) == old);
  EXPECT_EQ(session->snapshot_version(), before.version());
  ASSERT_TRUE(session->use(after).ok());
  ASSERT_TRUE(session->run().ok());
  EXPECT_FALSE(output_bytes(*session) == old);
  ASSERT_TRUE(session->use(before).ok());  // and back
  ASSERT_TRUE(session->run().ok());
  EXPECT_TRUE(output_bytes(*session) == old);
}

TEST(WeightSnapshots, MovingOnMakesOnlyWhatChangedAgain) {
  Training training;
  const WeightSnapshot before = training.snapshot();
  const auto one = training.reader_of(before), two = training.reader_of(before);
  const DerivedWeights& derived = before.weights().derived();
  const size_t of_one_set = derived.alive();
  training.step();
  const WeightSnapshot after = training.snapshot();
  ASSERT_TRUE(one->use(after).ok());
  const size_t of_both = derived.alive();
  EXPECT_GT(of_both, of_one_set);
  EXPECT_LT(of_both, 2 * of_one_set);  // `fc` did not change
  ASSERT_TRUE(two->use(after).ok());   // takes what the first one made, and lets go of the old
  EXPECT_EQ(derived.alive(), of_one_set);
}

TEST(WeightSnapshots, OtherWeightsAreRefusedAndTheOldStay) {
  Training training;
  const auto session = training.reader_of(training.snapshot());
  ASSERT_TRUE(session->run().ok());
  const Bytes before = output_bytes(*session);
  Parameters narrow(training.snapshot());
  narrow.set("fb", *Tensor::zeros({DType::kF32, Shape{4}}));
  const Status wrong = session->use(*narrow.snapshot());
  EXPECT_NE(wrong.message().find("'fb'"), std::string::npos) << wrong.message();
  narrow.erase("fb");
  EXPECT_EQ(session->use(*narrow.snapshot()).code(), Code::kNotFound);
  ASSERT_TRUE(session->run().ok());
  EXPECT_TRUE(output_bytes(*session) == before);
}

TEST(WeightSnapshots, AGraphThatUpdatesIsRefused) {
  const Training training;
  const auto plan = compile(*parse(kTraining), training.snapshot(), training.backends, {.optimize = false});
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.status().message().find("snapshot"), std::string::npos) << plan.status().message();
}

// A training begins from what is served, and neither copies before it writes nor disturbs it.
TEST(WeightSnapshots, TwoTrainingsFromOneSnapshotDoNotMeet) {
  Training origin;
  const WeightSnapshot served = origin.snapshot();
  const Bytes before = answer(origin, served);
  std::vector<Bytes> after;
  for (float rate : {1e-3F, 5e-3F}) {
    Training branch;
    branch.net.params = std::make_shared<Parameters>(served);
    branch.session =
        make_session({*parse(kTraining), branch.net.params}, origin.backends, {.optimize = false});
    fill_inputs(*branch.session, 3);
    branch.session->input(3).data<float>()[0] = rate;
    branch.step();
    after.push_back(answer(origin, branch.snapshot()));
  }
  EXPECT_FALSE(after[0] == before);
  EXPECT_FALSE(after[0] == after[1]);
  EXPECT_TRUE(answer(origin, served) == before);
}

}  // namespace
}  // namespace limber::test
