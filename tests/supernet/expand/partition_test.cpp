#include "supernet/expand/partition.h"

#include "passes/cut_points.h"
#include "passes/splice.h"
#include "supernet/operators/work.h"
#include "tests/supernet/models.h"

namespace limber {
namespace {

struct PartitionCase {
  const char* model;
  size_t blocks;
};

class Partition : public ::testing::TestWithParam<PartitionCase> {};

TEST_P(Partition, BlocksAreAChainOfTheWholeModel) {
  const auto model = test::load_model(GetParam().model);
  if (!model) GTEST_SKIP() << GetParam().model << " is not there";
  const auto blocks = partition(model->graph);
  ASSERT_TRUE(blocks.ok()) << blocks.status().message();
  std::vector<Graph> parts;
  std::string listing;
  for (size_t i = 0; i < blocks->size(); ++i) {
    const BlockRange& range = (*blocks)[i];
    EXPECT_EQ(range.from, i == 0 ? model->graph.inputs()[0] : (*blocks)[i - 1].to);
    auto part = extract(model->graph, range.from, range.to);
    ASSERT_TRUE(part.ok()) << part.status().message();
    EXPECT_EQ(parameter_elements(*part), range.parameters);
    listing += fmt::format("{:3} {:8} {}{} {} -> {}:", i, range.parameters, range.fixed ? "fixed " : "",
                           model->graph.type(range.from).to_string(), model->graph.type(range.to).to_string(),
                           model->graph.value(range.to).name);
    for (const Node& node : part->nodes()) listing += fmt::format(" {}", op_name(node.op));
    listing += "\n";
    if (i + 1 == blocks->size()) part->mutable_outputs()[0].name = model->graph.outputs()[0].name;
    parts.push_back(*std::move(part));
  }
  EXPECT_EQ(blocks->size(), GetParam().blocks) << listing;
  std::vector<const Graph*> pointers;
  for (const Graph& part : parts) pointers.push_back(&part);
  const auto chained = chain(pointers);
  ASSERT_TRUE(chained.ok()) << chained.status().message();
  EXPECT_EQ(hash(*chained), hash(model->graph));
}

constexpr PartitionCase kPartitionCases[] = {
    {"builtin:resnet8", 5},
    {"builtin:mobilenet", 20},
    {"builtin:vit", 10},
    {"resnet18", 10},
    {"resnet50", 18},
    {"resnet20", 11},
    {"resnet56", 29},
    {"mobilenet_v2", 20},
    {"mobilenet_v3_small", 15},
    {"mobilenet_v3_large", 19},
    {"shufflenet_v2_x1_0", 19},
    {"efficientnet_b0", 19},
    {"densenet121", 9},
    {"vgg16", 9},
    {"vit_tiny", 26},
    {"mobilenet_v2_small", 20},
    {"vit_small", 20},
    {"resnet50_small", 18},
    {"squeezenet1_1", 10},
    {"regnet_y_400mf", 18},
    {"senet18", 10},
    {"convnext_small", 7},
    {"swin_small", 11},
    {"inception_small", 4},
    {"unet_small", 6},
};
std::vector<BlockRange> blocks_of(std::string_view model, const PartitionOptions& options = {}) {
  const auto blocks = partition(test::load_model(std::string(model))->graph, options);
  EXPECT_TRUE(blocks.ok()) << blocks.status().message();
  return blocks.ok() ? *blocks : std::vector<BlockRange>{};
}

TEST(PartitionRules, StemAndClassifierAreFixed) {
  const auto blocks = blocks_of("builtin:mobilenet");
  for (size_t i = 0; i < blocks.size(); ++i) EXPECT_EQ(blocks[i].fixed, i == 0 || i + 1 == blocks.size());
}

TEST(PartitionRules, SmallShareMakesSmallerBlocks) {
  const auto coarse = blocks_of("builtin:mobilenet"), fine = blocks_of("builtin:mobilenet", {.gamma = 0.01});
  EXPECT_GT(fine.size(), coarse.size());
}

constexpr std::string_view kThreeConvs = R"(graph "three" {
  input %x: f32[N,3,8,8]
  param %a: f32[8,3,3,3]
  param %s: f32[8]
  param %b: f32[8]
  param %m: f32[8]
  param %var: f32[8]
  param %c: f32[4,8,1,1]
  param %d: f32[8,4,1,1]
  param %w: f32[5,8]
  %1: f32[N,8,8,8] = Conv(%x, %a) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1]}
  %2: f32[N,4,8,8] = Conv(%1, %c) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1]}
  %3: f32[N,8,8,8] = Conv(%2, %d) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1]}
  %4: f32[N,8,8,8] = BatchNorm(%3, %s, %b, %m, %var) {epsilon=1e-05}
  %5: f32[N,8,8,8] = Relu(%4)
  %6: f32[N,8,1,1] = GlobalAveragePool(%5)
  %7: f32[N,8] = Reshape(%6) {shape=<N,8>}
  %8: f32[N,5] = Gemm(%7, %w) {trans_b=1}
  output %8 as "y"
})";

TEST(PartitionRules, CutsWhereDataAreSmallestAndNeverBeforeWhatIsFused) {
  const auto graph = parse(kThreeConvs);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto blocks = partition(*graph, {.gamma = 1});
  ASSERT_TRUE(blocks.ok()) << blocks.status().message();
  std::vector<std::string> ends;
  for (const BlockRange& block : *blocks) ends.push_back(graph->value(block.to).name);
  EXPECT_EQ(ends, (std::vector<std::string>{"1", "2", "5", "8"}));
}

void expect_unsupported(std::string_view text, std::string_view reason) {
  const auto graph = parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto blocks = partition(*graph);
  ASSERT_FALSE(blocks.ok());
  EXPECT_EQ(blocks.status().code(), Code::kUnsupported);
  EXPECT_NE(blocks.status().message().find(reason), std::string::npos) << blocks.status().message();
}

TEST(PartitionRules, SaysWhyThereIsNoBlock) {
  expect_unsupported(R"(graph "g" {
    input %x: f32[N,8]
    %y: f32[N,8] = Relu(%x)
    output %y as "y"
  })",
                     "no convolution");
  expect_unsupported(R"(graph "g" {
    input %x: f32[N,8]
    param %w: f32[8,8]
    %y: f32[N,8] = MatMul(%x, %w)
    output %y as "y"
  })",
                     "no block to replace");
  expect_unsupported(R"(graph "g" {
    input %x: f32[N,8]
    %y: f32[N,8] = Relu(%x)
    output %y as "y"
    output %x as "x"
  })",
                     "1 inputs and 2 outputs");
}

TEST(PartitionRules, WrongOptionsAreRefused) {
  const Graph graph = test::load_model("builtin:resnet8")->graph;
  EXPECT_EQ(partition(graph, {.gamma = 0}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(partition(graph, {.max_layers = 0}).status().code(), Code::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Models, Partition, ::testing::ValuesIn(kPartitionCases),
                         [](const auto& c) { return test::test_name(c.param.model); });

}  // namespace
}  // namespace limber
