// Slicing against masking on random networks.
#include "passes/cut_points.h"
#include "passes/passes.h"
#include "passes/slice_channels.h"
#include "passes/splice.h"
#include "tests/passes/interpret.h"
#include "tests/passes/mask_channels.h"
#include "tests/passes/random_net.h"

namespace limber {
namespace {

constexpr uint64_t kCases = 400;

// Like random_tensors, with weights small enough that activations stay near one.
TensorMap tame_tensors(const Graph& graph, uint64_t seed) {
  TensorMap tensors = random_tensors(graph, seed);
  for (auto& [name, tensor] : tensors) {
    if (tensor.shape().rank() < 2 || name == "x") continue;
    const auto fan_in = static_cast<float>(tensor.elements() / tensor.shape().dim(0));
    for (float& v : tensor.data<float>()) v *= 2 / std::sqrt(fan_in);
  }
  return tensors;
}

std::vector<std::vector<int64_t>> random_kept(const ChannelGroups& groups, Random& random) {
  std::vector<std::vector<int64_t>> kept;
  for (const ChannelGroup& group : groups.groups) {
    auto& units = kept.emplace_back();
    const double share = random.uniform(0.2, 1.2);
    for (int64_t i = 0; i < group.units; ++i) {
      if (random.uniform() < share) units.push_back(i);
    }
    if (units.empty())
      units.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(group.units))));
  }
  return kept;
}

TensorMap sliced_tensors(const SlicedGraph& sliced, TensorMap stored) {
  for (const SlicedTensor& slice : sliced.tensors) {
    auto small = take(slice, stored.at(slice.name));
    EXPECT_TRUE(small.ok()) << small.status().message();
    stored.at(slice.name) = *small;
  }
  return stored;
}

void expect_close(const Tensor& a, const Tensor& b, uint64_t seed) {
  ASSERT_EQ(a.type(), b.type());
  float largest = 1e-3f;
  for (float v : b.data<float>()) largest = std::max(largest, std::abs(v));
  ASSERT_TRUE(std::isfinite(largest)) << "seed " << seed;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const auto k = static_cast<size_t>(i);
    ASSERT_NEAR(a.data<float>()[k], b.data<float>()[k], 1e-5f * largest) << "seed " << seed;
  }
}

Graph bound(const Graph& graph) {
  auto result = bind(graph, {{"N", 2}});
  EXPECT_TRUE(result.ok()) << result.status().message();
  return *std::move(result);
}

struct Seen {
  size_t groups = 0, shrunk = 0;
};

// Slices and masks the same random units and compares.
Seen expect_masking(const Graph& graph, uint64_t seed, Random& random) {
  const ChannelGroups groups = channel_groups(graph);
  const auto kept = random_kept(groups, random);
  const auto sliced = slice_channels(graph, groups, kept);
  EXPECT_TRUE(sliced.ok()) << "seed " << seed << ": " << sliced.status().message() << print(graph);
  if (!sliced.ok()) return {};
  EXPECT_TRUE(verify(sliced->graph).ok()) << verify(sliced->graph).message();
  const Graph whole = bound(mask_channels(graph, groups, kept));
  const TensorMap stored = tame_tensors(whole, seed);
  const auto expected = interpret(whole, stored);
  const auto found = interpret(bound(sliced->graph), sliced_tensors(*sliced, stored));
  expect_close(found[0], expected[0], seed);
  return {groups.groups.size(), sliced->tensors.size()};
}

TEST(SliceChannels, EqualsMaskingOnRandomNets) {
  size_t groups = 0, shrunk = 0;
  for (uint64_t seed = 0; seed < kCases; ++seed) {
    const Graph graph = RandomNet(seed).build();
    Random random(seed + 1000);
    const Seen seen = expect_masking(graph, seed, random);
    groups += seen.groups;
    shrunk += seen.shrunk;
    if (HasFatalFailure()) FAIL() << print(graph);
  }
  EXPECT_GT(groups, 3 * kCases);
  EXPECT_GT(shrunk, 5 * kCases);
}

// Folded weights are computed from parameters, activations and residuals are inside the products.
TEST(SliceChannels, EqualsMaskingAfterTheInferencePasses) {
  for (uint64_t seed = 0; seed < kCases; seed += 2) {
    Graph graph = RandomNet(seed).build();
    const Status status = optimize_for_inference(graph);
    ASSERT_TRUE(status.ok()) << status.message();
    Random random(seed + 2000);
    expect_masking(graph, seed, random);
    if (HasFatalFailure()) FAIL() << print(graph);
  }
}

TEST(SliceChannels, KeepingAllIsTheIdentity) {
  for (uint64_t seed = 0; seed < kCases; ++seed) {
    const Graph graph = RandomNet(seed).build();
    const ChannelGroups groups = channel_groups(graph);
    const auto sliced = slice_channels(graph, groups, all_units(groups));
    ASSERT_TRUE(sliced.ok()) << sliced.status().message();
    EXPECT_EQ(hash(sliced->graph), hash(graph));
    EXPECT_TRUE(sliced->tensors.empty());
    if (seed % 10 != 0) continue;
    const TensorMap stored = tame_tensors(bound(graph), seed);
    const auto expected = interpret(bound(graph), stored), found = interpret(bound(sliced->graph), stored);
    EXPECT_EQ(std::memcmp(found[0].raw(), expected[0].raw(), expected[0].bytes()), 0);
  }
}

TEST(SliceChannels, GroupsOfABoundGraphAreThoseOfTheSymbolicOne) {
  for (uint64_t seed = 0; seed < kCases; ++seed) {
    const Graph graph = RandomNet(seed).build();
    const ChannelGroups symbolic = channel_groups(graph), fixed = channel_groups(bound(graph));
    ASSERT_EQ(symbolic.groups.size(), fixed.groups.size()) << "seed " << seed;
    for (size_t g = 0; g < fixed.groups.size(); ++g) {
      EXPECT_EQ(symbolic.groups[g].name, fixed.groups[g].name);
      EXPECT_EQ(symbolic.groups[g].units, fixed.groups[g].units);
      EXPECT_EQ(symbolic.groups[g].elements_per_unit, fixed.groups[g].elements_per_unit);
    }
  }
}

TEST(SliceChannels, OneUnitPerGroupStillRuns) {
  for (uint64_t seed = 0; seed < kCases; seed += 3) {
    const Graph graph = RandomNet(seed).build();
    const ChannelGroups groups = channel_groups(graph);
    std::vector<std::vector<int64_t>> kept;
    for (const ChannelGroup& group : groups.groups) kept.push_back({group.units - 1});
    const auto sliced = slice_channels(graph, groups, kept);
    ASSERT_TRUE(sliced.ok()) << "seed " << seed << ": " << sliced.status().message();
    const Graph whole = bound(mask_channels(graph, groups, kept));
    const TensorMap stored = tame_tensors(whole, seed);
    expect_close(interpret(bound(sliced->graph), sliced_tensors(*sliced, stored))[0],
                 interpret(whole, stored)[0], seed);
  }
}

TEST(Splice, PuttingAnyPartBackIsTheIdentity) {
  size_t parts = 0;
  for (uint64_t seed = 0; seed < kCases; ++seed) {
    const Graph graph = RandomNet(seed).build();
    const std::vector<ValueId> cuts = cut_points(graph);
    ASSERT_GE(cuts.size(), 2u);
    Random random(seed);
    for (int i = 0; i < 4; ++i) {
      const size_t a = random.below(cuts.size() - 1), b = a + 1 + random.below(cuts.size() - a - 1);
      const auto block = extract(graph, cuts[a], cuts[b]);
      ASSERT_TRUE(block.ok()) << block.status().message();
      ASSERT_TRUE(verify(*block).ok()) << verify(*block).message();
      const auto back = splice(graph, cuts[a], cuts[b], *block);
      ASSERT_TRUE(back.ok()) << back.status().message();
      ASSERT_TRUE(verify(*back).ok()) << verify(*back).message();
      EXPECT_EQ(hash(*back), hash(graph)) << "seed " << seed;
      ++parts;
    }
  }
  EXPECT_EQ(parts, 4 * kCases);
}

TEST(Chain, OfAllPartsIsTheWhole) {
  for (uint64_t seed = 0; seed < kCases; ++seed) {
    const Graph graph = RandomNet(seed).build();
    const std::vector<ValueId> cuts = cut_points(graph);
    std::vector<Graph> blocks;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) blocks.push_back(*extract(graph, cuts[i], cuts[i + 1]));
    blocks.back().mutable_outputs()[0].name = graph.outputs()[0].name;
    std::vector<const Graph*> all;
    for (const Graph& block : blocks) all.push_back(&block);
    const auto whole = chain(all);
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    EXPECT_EQ(hash(*whole), hash(graph)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace limber
