#include "passes/answers.h"

#include "tests/passes/golden.h"
#include "tests/passes/interpret.h"

namespace limber {
namespace {

constexpr std::string_view kTwoHeads = R"(
  input %x: f32[2,3,4,4]
  param %w: f32[5,3,1,1]
  param %v: f32[2,5]
  %h: f32[2,5,4,4] = Conv(%x, %w) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1]} "trunk"
  %p: f32[2,5,1,1] = GlobalAveragePool(%h) "pool"
  %q: f32[2,5] = Reshape(%p) {shape=<2,5>} "flat"
  %s: f32[2,2] = Gemm(%q, %v) {trans_b=1} "size"
  output %h as "map"
  output %s as "size")";

TEST(JoinOutputs, HoldsThemOneBehindTheOther) {
  const Graph graph = graph_of(kTwoHeads);
  const auto joined = join_outputs(graph);
  ASSERT_TRUE(joined.ok()) << joined.status().message();
  ASSERT_TRUE(verify(*joined).ok());
  ASSERT_EQ(joined->outputs().size(), 1u);
  EXPECT_EQ(output_sizes(*joined), (std::vector<int64_t>{5 * 4 * 4, 2}));
  const TensorMap values = random_tensors(graph, 3);
  const std::vector<Tensor> apart = interpret(graph, values), together = interpret(*joined, values);
  ASSERT_EQ(together[0].shape(), (Shape{2, 82}));
  for (int64_t sample = 0; sample < 2; ++sample) {
    for (int64_t i = 0; i < 82; ++i) {
      const double want = i < 80 ? element_as_double(apart[0], sample * 80 + i)
                                 : element_as_double(apart[1], sample * 2 + i - 80);
      EXPECT_EQ(element_as_double(together[0], sample * 82 + i), want);
    }
  }
}

TEST(JoinOutputs, SplitGivesBackWhatWas) {
  const Graph graph = graph_of(kTwoHeads);
  const Graph back = split_outputs(*join_outputs(graph));
  EXPECT_EQ(print(back), print(graph));
  EXPECT_EQ(hash(back), hash(graph));
}

TEST(JoinOutputs, OneOutputStaysAsItIs) {
  Graph graph = graph_of(kTwoHeads);
  graph.mutable_outputs().resize(1);
  EXPECT_EQ(print(*join_outputs(graph)), print(graph));
  EXPECT_EQ(print(split_outputs(graph)), print(graph));
  EXPECT_EQ(output_sizes(graph), (std::vector<int64_t>{80}));
}

TEST(JoinOutputs, AModelThatOnlyLooksJoinedStaysAsItIs) {
  for (const char* flat :
       {R"(%f: f32[2,12] = Reshape(%x) {shape=<2,12>} "f")", R"(%f: f32[2,12] = Relu(%z))"}) {
    const Graph graph = graph_of(fmt::format(R"(
  input %x: f32[2,3,4]
  input %z: f32[2,12]
  {}
  %y: f32[2,24] = Concat(%f, %z) {{axis=1}} "joined"
  output %y as "y")",
                                             flat));
    EXPECT_EQ(print(split_outputs(graph)), print(graph));
    EXPECT_EQ(output_sizes(graph), (std::vector<int64_t>{24}));
  }
}

TEST(JoinOutputs, NamesTheOutputThatCannotBeJoined) {
  const auto complaint = [](std::string_view statements) {
    const auto joined = join_outputs(graph_of(statements));
    EXPECT_EQ(joined.status().code(), Code::kUnsupported);
    return joined.status().message();
  };
  const std::string whole_numbers = complaint(R"(
  input %x: f32[2,8]
  %y: f32[2,8] = Relu(%x)
  %i: i64[2,1] = ArgMax(%x) {axis=1, keepdims=1}
  output %y as "y"
  output %i as "best")");
  EXPECT_NE(whole_numbers.find("'best'"), std::string::npos) << whole_numbers;
  const std::string no_batch = complaint(R"(
  input %x: f32[2,8]
  %y: f32[2,8] = Relu(%x)
  %t: f32[8,2] = Transpose(%x) {perm=[1,0]}
  output %y as "y"
  output %t as "turned")");
  EXPECT_NE(no_batch.find("'turned'"), std::string::npos) << no_batch;
}

TEST(Answers, AreCheckedByTheType) {
  const auto fits = [](std::string_view shape, Answers answers) {
    const Graph graph =
        graph_of(fmt::format("input %x: f32[{0}]\n%y: f32[{0}] = Relu(%x)\noutput %y", shape));
    return check_answers(graph, answers).ok();
  };
  EXPECT_TRUE(fits("N,10", Answers::kClasses));
  EXPECT_FALSE(fits("N,10,4,4", Answers::kClasses));
  EXPECT_TRUE(fits("N,10,4,4", Answers::kPlaces));
  EXPECT_TRUE(fits("N,10,7", Answers::kPlaces));
  EXPECT_FALSE(fits("N,1,4,4", Answers::kPlaces));
  EXPECT_FALSE(fits("N,10", Answers::kPlaces));
  EXPECT_FALSE(fits("N,10,H,4", Answers::kPlaces));
  EXPECT_TRUE(fits("N,10,4,4", Answers::kValues));
  EXPECT_TRUE(fits("N,1", Answers::kValues));
  EXPECT_FALSE(fits("N,T,4", Answers::kValues));
}

}  // namespace
}  // namespace limber
