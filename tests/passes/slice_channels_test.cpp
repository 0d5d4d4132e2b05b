#include "passes/slice_channels.h"

#include "passes/channel_rank.h"
#include "passes/unshare.h"
#include "tests/passes/golden.h"
#include "tests/passes/interpret.h"

namespace limber {
namespace {

using Kept = std::vector<std::vector<int64_t>>;

// Every other unit of each group, and all of them in the graph that comes out.
SlicedGraph sliced_by(const Graph& graph, const Kept& kept) {
  const auto sliced = slice_channels(graph, channel_groups(graph), kept);
  EXPECT_TRUE(sliced.ok()) << sliced.status().message();
  if (!sliced.ok()) return {};
  const Status status = verify(sliced->graph);
  EXPECT_TRUE(status.ok()) << status.message();
  return *sliced;
}

void expect_sliced(std::string_view before, const Kept& kept, std::string_view after) {
  EXPECT_EQ(print(sliced_by(graph_of(before), kept).graph), print(graph_of(after)));
}

TEST(SliceAttributes, GroupsOfADepthwiseConvolution) {
  expect_sliced(R"(
    input %x: f32[N,2,4,4]
    param %w: f32[4,2,1,1]
    param %d: f32[8,1,3,3]
    param %v: f32[3,8,1,1]
    %a: f32[N,4,4,4] = Conv(%x, %w) {dilations=[1,1], pads=[0,0,0,0], strides=[1,1]}
    %b: f32[N,8,2,2] = Conv(%a, %d) {dilations=[1,1], groups=4, pads=[0,0,0,0], strides=[1,1]}
    %y: f32[N,3,2,2] = Conv(%b, %v) {dilations=[1,1], pads=[0,0,0,0], strides=[1,1]}
    output %y)",
                {{0, 1, 3}}, R"(
    input %x: f32[N,2,4,4]
    param %w: f32[3,2,1,1]
    param %d: f32[6,1,3,3]
    param %v: f32[3,6,1,1]
    %a: f32[N,3,4,4] = Conv(%x, %w) {dilations=[1,1], pads=[0,0,0,0], strides=[1,1]}
    %b: f32[N,6,2,2] = Conv(%a, %d) {dilations=[1,1], groups=3, pads=[0,0,0,0], strides=[1,1]}
    %y: f32[N,3,2,2] = Conv(%b, %v) {dilations=[1,1], pads=[0,0,0,0], strides=[1,1]}
    output %y)");
}

TEST(SliceAttributes, SizesStartsPadsAndShapes) {
  expect_sliced(R"(
    input %x: f32[N,2]
    param %w: f32[2,6]
    param %s: f32[2,3]
    param %u: f32[12,4]
    %a: f32[N,6] = MatMul(%x, %w)
    %p: f32[N,2], %q: f32[N,4] = Split(%a) {axis=1, sizes=[2,4]}
    %t: f32[N,2] = Slice(%q) {axes=[1], ends=[-1], starts=[1], steps=[1]}
    %e: f32[N,3] = MatMul(%x, %s)
    %d: f32[N,5] = Pad(%t) {pads=[0,0,0,3]}
    %c: f32[N,12] = Concat(%d, %p, %e, %t) {axis=1}
    %r: f32[N,12,1] = Reshape(%c) {shape=<N,12,1>}
    %f: f32[N,12] = Reshape(%r) {shape=<N,12>}
    %y: f32[N,4] = MatMul(%f, %u)
    output %y)",
                // p, q outside t, q inside t, e, what Pad adds
                {{1}, {0}, {0}, {1, 2}, {0, 2}}, R"(
    input %x: f32[N,2]
    param %w: f32[2,3]
    param %s: f32[2,2]
    param %u: f32[7,4]
    %a: f32[N,3] = MatMul(%x, %w)
    %p: f32[N,1], %q: f32[N,2] = Split(%a) {axis=1, sizes=[1,2]}
    %t: f32[N,1] = Slice(%q) {axes=[1], ends=[2], starts=[1], steps=[1]}
    %e: f32[N,2] = MatMul(%x, %s)
    %d: f32[N,3] = Pad(%t) {pads=[0,0,0,2]}
    %c: f32[N,7] = Concat(%d, %p, %e, %t) {axis=1}
    %r: f32[N,7,1] = Reshape(%c) {shape=<N,7,1>}
    %f: f32[N,7] = Reshape(%r) {shape=<N,7>}
    %y: f32[N,4] = MatMul(%f, %u)
    output %y)");
}

constexpr std::string_view kTwoLayers = R"(
  input %x: f32[2,3]
  param %w: f32[3,4]
  const %c: f32[4] = {1, 2, 3, 4}
  param %v: f32[4,2]
  %a: f32[2,4] = MatMul(%x, %w) "fc1"
  %b: f32[2,4] = Add(%a, %c) "shift"
  %y: f32[2,2] = MatMul(%b, %v) "fc2"
  output %y)";

TEST(SliceChannels, DescribesWhatShrank) {
  const SlicedGraph sliced = sliced_by(graph_of(kTwoLayers), {{1, 3}});
  ASSERT_EQ(sliced.tensors.size(), 2u);
  EXPECT_EQ(sliced.tensors[0].name, "w");
  EXPECT_EQ(sliced.tensors[0].axes, (std::vector<KeptAxis>{{1, {1, 3}}}));
  EXPECT_EQ(sliced.tensors[0].small.to_string(), "f32[3,2]");
  EXPECT_EQ(sliced.tensors[1].axes, (std::vector<KeptAxis>{{0, {1, 3}}}));
  const Tensor& shift = sliced.graph.value(*sliced.graph.find("c")).constant;
  EXPECT_EQ(std::vector<float>(shift.data<float>().begin(), shift.data<float>().end()),
            (std::vector<float>{2, 4}));
}

TEST(SliceChannels, SaysWhatIsWrong) {
  const Graph graph = graph_of(kTwoLayers);
  const ChannelGroups groups = channel_groups(graph);
  const auto message = [&](const Kept& kept) {
    const auto sliced = slice_channels(graph, groups, kept);
    EXPECT_EQ(sliced.status().code(), Code::kInvalidArgument);
    return sliced.status().message();
  };
  EXPECT_EQ(message({{}}), "group 'fc1' keeps none of its 4 units");
  EXPECT_EQ(message({{4}}), "group 'fc1' has 4 units, there is no unit 4");
  EXPECT_EQ(message({{1, 1}}), "group 'fc1': units to keep must ascend, 1 follows 1");
  EXPECT_EQ(message({}), "0 lists of units for 1 channel groups");
  const Graph other = graph_of("input %x: f32[2]\n%y: f32[2] = Relu(%x)\noutput %y");
  EXPECT_EQ(slice_channels(other, groups, Kept{{0}}).status().message(),
            "group 'fc1' was found in another graph than 'g'");
}

TEST(SliceChannels, ParametersAreSliced) {
  const Graph graph = graph_of(kTwoLayers);
  const SlicedGraph sliced = sliced_by(graph, {{0, 2}});
  Parameters whole, small;
  for (const auto& [name, tensor] : random_tensors(graph, 3)) whole.set(name, tensor);
  ASSERT_TRUE(slice_parameters(sliced, whole, small).ok());
  EXPECT_EQ(small.type("w")->to_string(), "f32[3,2]");
  EXPECT_EQ(small.get("w")->data<float>()[3], whole.get("w")->data<float>()[6]);
  Parameters empty;
  EXPECT_EQ(slice_parameters(sliced, empty, small).code(), Code::kNotFound);
}

TEST(SliceChannels, WhatIsCutSharesNoTensor) {
  const Graph graph = graph_of(R"(
    input %x: f32[2,3]
    param %w: f32[3,4]
    param %v: f32[4,2]
    param %z: f32[2]
    %a: f32[2,4] = MatMul(%x, %w)
    %b: f32[2,2] = MatMul(%a, %v)
    %y: f32[2,2] = Add(%b, %z)
    output %y)");
  const SlicedGraph sliced = sliced_by(graph, {{0, 2}});
  Parameters whole, small;
  for (const auto& [name, tensor] : random_tensors(graph, 3)) whole.set(name, tensor);
  ASSERT_TRUE(slice_parameters(sliced, whole, small).ok());
  ASSERT_EQ(*small.type("z"), *whole.type("z")) << "keeps everything";
  EXPECT_NE(small.get("z")->raw(), whole.get("z")->raw()) << "training one would move the other";
  EXPECT_EQ(small.get("z")->data<float>()[1], whole.get("z")->data<float>()[1]);
}

TEST(SliceChannels, WhatReadsTwoGroupsIsSlicedAlongTwoAxes) {
  const SlicedGraph sliced = sliced_by(graph_of(R"(
    input %x: f32[2,3]
    param %w: f32[3,4]
    param %v: f32[4,5]
    param %u: f32[5,2]
    %a: f32[2,4] = MatMul(%x, %w)
    %b: f32[2,5] = MatMul(%a, %v)
    %y: f32[2,2] = MatMul(%b, %u)
    output %y)"),
                                       {{1, 2}, {0, 4}});
  ASSERT_EQ(sliced.tensors.size(), 3u);
  const SlicedTensor& v = sliced.tensors[1];
  EXPECT_EQ(v.axes, (std::vector<KeptAxis>{{0, {1, 2}}, {1, {0, 4}}}));
  std::vector<float> numbers(20);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  Tensor full = Tensor::from<float>(numbers, Shape{4, 5});
  const Tensor small = *take(v, full);
  EXPECT_EQ(std::vector<float>(small.data<float>().begin(), small.data<float>().end()),
            (std::vector<float>{5, 9, 10, 14}));
  ASSERT_TRUE(put_back(v, Tensor::from<float>({-1, -2, -3, -4}, Shape{2, 2}), full).ok());
  EXPECT_EQ(full.data<float>()[5], -1);
  EXPECT_EQ(full.data<float>()[14], -4);
  EXPECT_EQ(full.data<float>()[6], 6);
  EXPECT_EQ(take(v, small).status().message(), "'v' has type f32[2,2], expected f32[4,5]");
  EXPECT_EQ(put_back(v, full, full).code(), Code::kInvalidArgument);
}

TEST(SliceChannels, StatesAndTheirUpdatesShrink) {
  const SlicedGraph sliced = sliced_by(graph_of(R"(
    input %x: f32[2,3,4,4]
    param %w: f32[4,3,1,1]
    param %s: f32[4]
    param %b: f32[4]
    state %m: f32[4]
    state %q: f32[4]
    param %v: f32[2,4,1,1]
    %a: f32[2,4,4,4] = Conv(%x, %w) {dilations=[1,1], pads=[0,0,0,0], strides=[1,1]}
    %z: f32[2,4,4,4], %nm: f32[4], %nq: f32[4] = BatchNormTraining(%a, %s, %b, %m, %q) {epsilon=0.1, momentum=0.9}
    %y: f32[2,2,4,4] = Conv(%z, %v) {dilations=[1,1], pads=[0,0,0,0], strides=[1,1]}
    output %y
    output %nm as "m" into %m
    output %nq as "q" into %q)"),
                                       {{3}});
  EXPECT_EQ(sliced.tensors.size(), 6u);
  EXPECT_EQ(sliced.graph.type(*sliced.graph.find("m")).to_string(), "f32[1]");
}

TEST(RenameParameters, PutsAPrefixBeforeEveryName) {
  Graph graph = graph_of(R"(
    input %x: f32[2]
    param %w: f32[2]
    state %s: f32[2]
    %y: f32[2] = Mul(%x, %w)
    %z: f32[2] = Add(%y, %s)
    output %y
    output %z as "s" into %s)");
  rename_parameters(graph, "half/");
  EXPECT_TRUE(verify(graph).ok());
  EXPECT_TRUE(graph.find("half/w"));
  EXPECT_TRUE(graph.find("half/s"));
  EXPECT_TRUE(graph.find("x"));
  EXPECT_EQ(graph.outputs()[1].name, "half/s");
}

TEST(UnshareParameters, GivesEveryReaderOfAVectorItsOwn) {
  Graph graph = graph_of(R"(
    input %x: f32[2,4]
    param %w: f32[4,4]
    param %b: f32[4]
    %a: f32[2,4] = MatMul(%x, %w, %b)
    %c: f32[2,4] = MatMul(%a, %w, %b)
    %y: f32[2,4] = MatMul(%c, %w, %b)
    output %y)");
  const auto copies = unshare_parameters(graph);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_TRUE(verify(graph).ok());
  EXPECT_EQ(copies[0].name, "b.copy");
  EXPECT_EQ(copies[0].of, "b");
  EXPECT_NE(copies[1].name, copies[0].name);
  EXPECT_EQ(graph.readers()[graph.find("w")->index].size(), 3u);
  Parameters params;
  params.set("b", Tensor::from<float>({1, 2, 3, 4}, Shape{4}));
  ASSERT_TRUE(copy_parameters(copies, params).ok());
  EXPECT_EQ(params.get("b.copy")->data<float>()[3], 4);
}

TEST(UnshareParameters, SeparatesConstantsTooAndChangesNoHash) {
  Graph graph = graph_of(R"(
    input %x: f32[2,4]
    const %c: f32[4] = {1, 2, 3, 4}
    const %one: f32[] = {1}
    %a: f32[2,4] = Mul(%x, %c)
    %b: f32[2,4] = Mul(%a, %c)
    %d: f32[2,4] = Add(%b, %one)
    %y: f32[2,4] = Add(%d, %one)
    output %y)");
  const uint64_t before = hash(graph);
  EXPECT_TRUE(unshare_parameters(graph).empty());
  EXPECT_TRUE(verify(graph).ok());
  EXPECT_EQ(hash(graph), before);
  EXPECT_TRUE(graph.find("c.copy"));
  EXPECT_FALSE(graph.find("one.copy"));
}

class ChannelRank : public ::testing::Test {
 protected:
  void SetUp() override {
    params_.set("w", Tensor::from<float>({1, -3, 0.5, 1, 1, -3, 0.5, 1}, Shape{2, 4}));
    params_.set("v", Tensor::from<float>({1, 1, 1, 1}, Shape{4, 1}));
    params_.set("s", Tensor::from<float>({1, 1, -1, 9}, Shape{4}));
    params_.set("b", Tensor::from<float>({100, 0, 0, 0}, Shape{4}));
    params_.set("m", Tensor::from<float>({0, 0, 100, 0}, Shape{4}));
    params_.set("q", Tensor::from<float>({1, 1, 1, 1}, Shape{4}));
  }
  const Graph graph_ = graph_of(R"(
    input %x: f32[N,2]
    param %w: f32[2,4]
    param %s: f32[4]
    param %b: f32[4]
    param %m: f32[4]
    param %q: f32[4]
    param %v: f32[4,1]
    %a: f32[N,4] = MatMul(%x, %w)
    %n: f32[N,4] = BatchNorm(%a, %s, %b, %m, %q) {epsilon=0.1}
    %y: f32[N,1] = MatMul(%n, %v)
    output %y)");
  Parameters params_;
};

TEST_F(ChannelRank, WeighsWeightsByScales) {
  const ChannelGroups groups = channel_groups(graph_);
  ASSERT_EQ(groups.groups.size(), 1u);
  for (const WeightNorm norm : {WeightNorm::kL1, WeightNorm::kL2}) {
    const auto scores = unit_scores(graph_, groups.groups[0], params_, norm);
    ASSERT_TRUE(scores.ok()) << scores.status().message();
    EXPECT_GT((*scores)[3], (*scores)[1]);
    EXPECT_GT((*scores)[1], (*scores)[0]);
    EXPECT_GT((*scores)[0], (*scores)[2]);
  }
  // The average unit of both is 1: of w it has 2.75, of v 1, of s 3.
  const auto scores = unit_scores(graph_, groups.groups[0], params_);
  EXPECT_NEAR((*scores)[0], (2 / 2.75 + 1) / 2 * (1 / 3.0), 1e-6);
  EXPECT_EQ(best_share(graph_, groups, params_, 0.5).value(), (Kept{{1, 3}}));
  EXPECT_EQ(best_share(graph_, groups, params_, 0).value(), (Kept{{3}}));
  EXPECT_EQ(best_share(graph_, groups, params_, 1).value(), all_units(groups));
}

TEST_F(ChannelRank, SaysWhatIsWrong) {
  const ChannelGroups groups = channel_groups(graph_);
  EXPECT_EQ(best_share(graph_, groups, params_, 1.5).status().code(), Code::kInvalidArgument);
  params_.set("v", Tensor::from<float>({1, 1}, Shape{2, 1}));
  EXPECT_EQ(unit_scores(graph_, groups.groups[0], params_).status().code(), Code::kInvalidArgument);
  params_.erase("v");
  EXPECT_EQ(unit_scores(graph_, groups.groups[0], params_).status().code(), Code::kNotFound);
}

TEST(BestUnits, PrefersTheFirstOfEquals) {
  EXPECT_EQ(best_units({1, 3, 2, 3, 1}, 3), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(best_units({1, 1, 1}, 2), (std::vector<int64_t>{0, 1}));
}

}  // namespace
}  // namespace limber
