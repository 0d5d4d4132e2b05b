// One operator rule at a time: what is tied to what.
#include "passes/channel_groups.h"

#include "tests/passes/golden.h"

namespace limber {
namespace {

// One line per group: units, then where they lie as value.axis, with "*n" for n indices per unit.
std::vector<std::string> groups_of(const Graph& graph) {
  std::vector<std::string> lines;
  for (const ChannelGroup& group : channel_groups(graph).groups) {
    std::string line = fmt::format("{}:", group.units);
    for (const ChannelSpan& span : group.spans) {
      line += fmt::format(" {}.{}", graph.value(span.value).name, span.axis);
      if (span.per_unit > 1) line += fmt::format("*{}", span.per_unit);
    }
    lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

// `middle` works on %a: f32[N,8,4,4], made by a Conv, and gives %z: f32[N,C,...], read by a Conv.
constexpr std::string_view kAttrs = "{dilations=[1,1], pads=[0,0,0,0], strides=[1,1]}";

std::vector<std::string> between_convs(std::string_view middle, int64_t channels = 8, int64_t side = 4) {
  return groups_of(graph_of(fmt::format(R"(
    input %x: f32[N,3,4,4]
    param %w: f32[8,3,1,1]
    param %v: f32[2,{1},1,1]
    %a: f32[N,8,4,4] = Conv(%x, %w) {3}
    {0}
    %y: f32[N,2,{2},{2}] = Conv(%z, %v) {3}
    output %y)",
                                        middle, channels, side, kAttrs)));
}

TEST(ChannelGroups, FiltersGoWithWhoReadsThem) {
  EXPECT_EQ(between_convs("%z: f32[N,8,4,4] = Relu(%a)"), (Lines{"8: w.0 v.1 a.1 z.1"}));
}

TEST(ChannelGroups, BroadcastingTiesWhatIsNotRepeated) {
  EXPECT_EQ(between_convs("param %s: f32[8,1,1]\n%z: f32[N,8,4,4] = Mul(%s, %a)"),
            (Lines{"8: w.0 v.1 a.1 s.0 z.1"}));
  EXPECT_EQ(between_convs("param %s: f32[1,1,4]\n%z: f32[N,8,4,4] = Mul(%a, %s)"),
            (Lines{"8: w.0 v.1 a.1 z.1"}));
}

TEST(ChannelGroups, NormalisationPerChannelIsTied) {
  EXPECT_EQ(between_convs("param %s: f32[8]\nparam %b: f32[8]\nstate %m: f32[8]\nstate %q: f32[8]\n"
                          "%z: f32[N,8,4,4] = BatchNorm(%a, %s, %b, %m, %q) {epsilon=0.1}"),
            (Lines{"8: w.0 v.1 a.1 s.0 b.0 m.0 q.0 z.1"}));
  EXPECT_EQ(between_convs("param %s: f32[8]\nparam %b: f32[8]\n"
                          "%z: f32[N,8,4,4] = InstanceNorm(%a, %s, %b) {epsilon=0.1}"),
            (Lines{"8: w.0 v.1 a.1 s.0 b.0 z.1"}));
}

TEST(ChannelGroups, GroupNormGoesByGroups) {
  EXPECT_EQ(between_convs("param %s: f32[8]\nparam %b: f32[8]\n"
                          "%z: f32[N,8,4,4] = GroupNorm(%a, %s, %b) {epsilon=0.1, groups=4}"),
            (Lines{"4: w.0*2 v.1*2 a.1*2 s.0*2 b.0*2 z.1*2"}));
}

TEST(ChannelGroups, WhatMixesChannelsPinsThem) {
  for (std::string_view middle : {
           "%z: f32[N,8,4,4] = Softmax(%a) {axis=1}",
           "%z: f32[N,8,4,4] = LRN(%a) {alpha=0.1, beta=0.7, bias=1.0, size=3}",
           "%z: f32[N,8,4,4] = LpNorm(%a) {axis=1, p=2}",
           "%z: f32[N,8,4,4] = CumSum(%a) {axis=1}",
           "%m: f32[N,1,4,4] = ReduceMean(%a) {axes=[1], keepdims=1}\n%z: f32[N,8,4,4] = Sub(%a, %m)",
           "%m: f32[N,1,4,4] = ReduceMax(%a) {axes=[1], keepdims=1}\n%z: f32[N,8,4,4] = Sub(%a, %m)",
           "%z: f32[N,8,4,4] = LayerNorm(%a) {axis=1, epsilon=0.1}",
           "%z: f32[N,8,4,4] = Slice(%a) {axes=[1], ends=[-9], starts=[7], steps=[-1]}",
           "%z: f32[N,8,4,4] = Pad(%a) {mode=\"reflect\", pads=[0,1,0,0,0,-1,0,0]}",
       }) {
    EXPECT_EQ(between_convs(middle), Lines{}) << middle;
  }
}

TEST(ChannelGroups, SumsAndMeansOverSpaceAreFree) {
  EXPECT_EQ(between_convs(
                "%m: f32[N,8,1,1] = ReduceMean(%a) {axes=[2,3], keepdims=1}\n%z: f32[N,8,4,4] = Sub(%a, %m)"),
            (Lines{"8: w.0 v.1 a.1 m.1 z.1"}));
  EXPECT_EQ(between_convs(
                "%m: f32[N,1,4,4] = ReduceSum(%a) {axes=[1], keepdims=1}\n%z: f32[N,8,4,4] = Sub(%a, %m)"),
            (Lines{"8: w.0 v.1 a.1 z.1"}));
}

TEST(ChannelGroups, LayerNormPinsOnlyWhatItNormalises) {
  EXPECT_EQ(between_convs("%z: f32[N,8,4,4] = LayerNorm(%a) {axis=2, epsilon=0.1}"),
            (Lines{"8: w.0 v.1 a.1 z.1"}));
}

TEST(ChannelGroups, DepthwiseTiesAll) {
  EXPECT_EQ(
      between_convs(fmt::format("param %d: f32[8,1,1,1]\n%z: f32[N,8,4,4] = Conv(%a, %d) {{dilations=[1,1], "
                                "groups=8, pads=[0,0,0,0], strides=[1,1]}}")),
      (Lines{"8: w.0 v.1 a.1 d.0 z.1"}));
  EXPECT_EQ(between_convs("param %d: f32[16,1,1,1]\nparam %b: f32[16]\n%z: f32[N,16,4,4] = Conv(%a, %d, %b) "
                          "{dilations=[1,1], groups=8, pads=[0,0,0,0], strides=[1,1]}",
                          16),
            (Lines{"8: w.0 v.1*2 a.1 d.0*2 b.0*2 z.1*2"}));
}

TEST(ChannelGroups, GroupedConvolutionsGoByTheFinerUnit) {
  const auto grouped = [](int64_t groups) {
    return fmt::format(
        "param %d: f32[8,{},1,1]\n%z: f32[N,8,4,4] = Conv(%a, %d) {{dilations=[1,1], groups={}, "
        "pads=[0,0,0,0], strides=[1,1]}}",
        8 / groups, groups);
  };
  EXPECT_EQ(between_convs(grouped(4)), (Lines{"4: w.0*2 v.1*2 a.1*2 d.0*2 z.1*2"}));
  EXPECT_EQ(between_convs(grouped(2)), (Lines{"4: w.0*2 a.1*2 d.1", "4: v.1*2 d.0*2 z.1*2"}));
}

TEST(ChannelGroups, TransposedConvolution) {
  const auto up = [](int64_t groups, int64_t width) {
    return fmt::format(
        "param %d: f32[8,{},1,1]\nparam %b: f32[{}]\n%z: f32[N,{},4,4] = ConvTranspose(%a, %d, %b) "
        "{{dilations=[1,1], groups={}, output_padding=[0,0], pads=[0,0,0,0], strides=[1,1]}}",
        width, groups * width, groups * width, groups);
  };
  EXPECT_EQ(between_convs(up(1, 6), 6), (Lines{"8: w.0 a.1 d.0", "6: v.1 d.1 b.0 z.1"}));
  EXPECT_EQ(between_convs(up(8, 2), 16), (Lines{"8: w.0 v.1*2 a.1 d.0 b.0*2 z.1*2"}));
  EXPECT_EQ(between_convs(up(2, 3), 6), (Lines{"4: w.0*2 a.1*2 d.0*2", "3: v.1*2 d.1 b.0*2 z.1*2"}));
}

TEST(ChannelGroups, ConcatSplitSliceAndPadMoveChannels) {
  EXPECT_EQ(between_convs("param %u: f32[2,3,1,1]\n%b: f32[N,2,4,4] = Conv(%x, %u) {dilations=[1,1], "
                          "pads=[0,0,0,0], strides=[1,1]}\n%z: f32[N,10,4,4] = Concat(%b, %a) {axis=1}",
                          10),
            (Lines{"8: w.0 v.1 a.1 z.1", "2: v.1 u.0 b.1 z.1"}));
  EXPECT_EQ(between_convs("%z: f32[N,3,4,4], %rest: f32[N,5,4,4] = Split(%a) {axis=1, sizes=[3,5]}", 3),
            (Lines{"3: w.0 v.1 a.1 z.1", "5: w.0 a.1 rest.1"}));
  EXPECT_EQ(between_convs("%z: f32[N,6,4,4] = Slice(%a) {axes=[1], ends=[-1], starts=[1], steps=[1]}", 6),
            (Lines{"2: w.0 a.1", "6: w.0 v.1 a.1 z.1"}));
  EXPECT_EQ(between_convs("%z: f32[N,11,4,4] = Pad(%a) {pads=[0,1,0,0,0,2,0,0]}", 11),
            (Lines{"8: w.0 v.1 a.1 z.1", "3: v.1 z.1"}));
}

TEST(ChannelGroups, PoolsResizeAndDepth) {
  EXPECT_EQ(between_convs("%z: f32[N,8,1,1] = GlobalAveragePool(%a)", 8, 1), (Lines{"8: w.0 v.1 a.1 z.1"}));
  EXPECT_EQ(between_convs("%z: f32[N,8,2,2], %i: i64[N,8,2,2] = MaxPool(%a) {dilations=[1,1], kernel=[2,2], "
                          "pads=[0,0,0,0], strides=[2,2]}",
                          8, 2),
            Lines{});
  EXPECT_EQ(between_convs("%z: f32[N,8,8,8] = Resize(%a) {coordinates=\"half_pixel\", mode=\"linear\", "
                          "scales=[1.0,1.0,2.0,2.0], shape=<N,8,8,8>}",
                          8, 8),
            (Lines{"8: w.0 v.1 a.1 z.1"}));
  EXPECT_EQ(between_convs("%z: f32[N,2,8,8] = DepthToSpace(%a) {blocksize=2}", 2, 8),
            (Lines{"2: w.0*4 v.1 a.1*4 z.1"}));
  EXPECT_EQ(between_convs("%z: f32[N,32,2,2] = SpaceToDepth(%a) {blocksize=2}", 32, 2),
            (Lines{"8: w.0 v.1*4 a.1 z.1*4"}));
}

TEST(ChannelGroups, GatherAndTileFollowTheirSource) {
  EXPECT_EQ(between_convs("const %i: i64[4] = {7, 0, -6, 0}\n%z: f32[N,4,4,4] = Gather(%a, %i) {axis=1}", 4),
            (Lines{"5: w.0 a.1", "2: w.0 v.1 a.1 i.0 z.1"}));
  EXPECT_EQ(between_convs("%z: f32[N,16,4,4] = Tile(%a) {repeats=[1,2,1,1]}", 16),
            (Lines{"8: w.0 v.1*2 a.1 z.1*2"}));
  EXPECT_EQ(between_convs("const %i: i64[] = {1}\n%g: f32[N,4,4] = Gather(%a, %i) {axis=1}\n"
                          "%z: f32[N,1,4,4] = Reshape(%g) {shape=<N,1,4,4>}",
                          1),
            Lines{});
}

TEST(ChannelGroups, AShuffleKeepsTheSamePositions) {
  EXPECT_EQ(between_convs("%r: f32[N,2,4,4,4] = Reshape(%a) {shape=<N,2,4,4,4>}\n"
                          "%t: f32[N,4,2,4,4] = Transpose(%r) {perm=[0,2,1,3,4]}\n"
                          "%z: f32[N,8,4,4] = Reshape(%t) {shape=<N,8,4,4>}"),
            (Lines{"4: w.0*2 v.1*2 a.1*2 r.2 t.1 z.1*2"}));
}

TEST(ChannelGroups, FeaturesFollowTheirChannelThroughFlatten) {
  const Graph graph = graph_of(fmt::format(R"(
    input %x: f32[N,3,4,4]
    param %w: f32[8,3,1,1]
    param %v: f32[5,128]
    %a: f32[N,8,4,4] = Conv(%x, %w) {}
    %f: f32[N,128] = Reshape(%a) {{shape=<N,128>}}
    %y: f32[N,5] = Gemm(%f, %v) {{trans_b=1}}
    output %y)",
                                           kAttrs));
  EXPECT_EQ(groups_of(graph), (Lines{"8: w.0 v.1*16 a.1 f.1*16"}));
  const ChannelGroup group = channel_groups(graph).groups[0];
  EXPECT_EQ(group.parameters, (Lines{"v", "w"}));
  EXPECT_EQ(group.elements_per_unit, 3 + 5 * 16);
  EXPECT_EQ(std::vector<int64_t>(group.spans[1].of(2).begin(), group.spans[1].of(2).end())[0], 32);
}

TEST(ChannelGroups, HeadsAreUnits) {
  const Graph graph = graph_of(R"(
    input %x: f32[N,5,6]
    param %wq: f32[6,12]
    param %wk: f32[6,12]
    param %wv: f32[6,12]
    param %wo: f32[12,6]
    param %table: f32[3,5,5]
    %q: f32[N,5,12] = MatMul(%x, %wq)
    %k: f32[N,5,12] = MatMul(%x, %wk)
    %v: f32[N,5,12] = MatMul(%x, %wv)
    %q4: f32[N,5,3,4] = Reshape(%q) {shape=<N,5,3,4>}
    %k4: f32[N,5,3,4] = Reshape(%k) {shape=<N,5,3,4>}
    %v4: f32[N,5,3,4] = Reshape(%v) {shape=<N,5,3,4>}
    %qt: f32[N,3,5,4] = Transpose(%q4) {perm=[0,2,1,3]}
    %kt: f32[N,3,5,4] = Transpose(%k4) {perm=[0,2,1,3]}
    %vt: f32[N,3,5,4] = Transpose(%v4) {perm=[0,2,1,3]}
    %y4: f32[N,3,5,4] = Attention(%qt, %kt, %vt, %table) {scale=0.5}
    %yt: f32[N,5,3,4] = Transpose(%y4) {perm=[0,2,1,3]}
    %m: f32[N,5,12] = Reshape(%yt) {shape=<N,5,12>}
    %y: f32[N,5,6] = MatMul(%m, %wo)
    output %y)");
  EXPECT_EQ(groups_of(graph),
            (Lines{"3: wq.1*4 wk.1*4 wv.1*4 wo.0*4 table.0 q.2*4 k.2*4 v.2*4 q4.2 k4.2 v4.2 "
                   "qt.1 kt.1 vt.1 y4.1 yt.2 m.2*4"}));
}

TEST(ChannelGroups, EinsumTiesByLetter) {
  const Graph graph = graph_of(R"(
    input %x: f32[N,6]
    param %w: f32[6,4]
    param %v: f32[3,4]
    %a: f32[N,4] = Einsum(%x, %w) {equation="ni,io->no"}
    %y: f32[N,3] = Einsum(%a, %v) {equation="ni,oi->no"}
    output %y)");
  EXPECT_EQ(groups_of(graph), (Lines{"4: w.1 v.1 a.1"}));
}

TEST(ChannelGroups, UpdatesAreTiedToWhatTheyUpdate) {
  const Graph graph = graph_of(fmt::format(R"(
    input %x: f32[N,3,4,4]
    param %w: f32[8,3,1,1]
    param %s: f32[8]
    param %b: f32[8]
    state %m: f32[8]
    state %q: f32[8]
    param %v: f32[2,8,1,1]
    %a: f32[N,8,4,4] = Conv(%x, %w) {0}
    %z: f32[N,8,4,4], %nm: f32[8], %nq: f32[8] = BatchNormTraining(%a, %s, %b, %m, %q) {{epsilon=0.1, momentum=0.9}}
    %y: f32[N,2,4,4] = Conv(%z, %v) {0}
    output %y
    output %nm as "m" into %m
    output %nq as "q" into %q)",
                                           kAttrs));
  EXPECT_EQ(groups_of(graph), (Lines{"8: w.0 s.0 b.0 m.0 q.0 v.1 a.1 z.1 nm.0 nq.0"}));
}

TEST(ChannelGroups, WhatHasNoRulePins) {
  EXPECT_EQ(
      between_convs(
          "%s: i64[4] = ShapeOf(%a)\n%c: f32[4] = Cast(%s) {to=\"f32\"}\n%z: f32[N,8,4,4] = Mul(%a, %c)"),
      Lines{});
}

TEST(ChannelGroups, NamesAreThoseOfTheMakingNodesAndUnique) {
  const Graph graph = graph_of(R"(
    input %x: f32[N,4]
    param %w: f32[4,6]
    param %v: f32[2,3]
    param %u: f32[4,3]
    %a: f32[N,6] = MatMul(%x, %w) "fc"
    %p: f32[N,2], %q: f32[N,4] = Split(%a) {axis=1, sizes=[2,4]} "cut"
    %b: f32[N,3] = MatMul(%p, %v) "left"
    %c: f32[N,3] = MatMul(%q, %u) "right"
    %y: f32[N,3] = Add(%b, %c) "sum"
    output %y)");
  const auto groups = channel_groups(graph).groups;
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].name, "fc");
  EXPECT_EQ(groups[1].name, "fc#2");
}

}  // namespace
}  // namespace limber
