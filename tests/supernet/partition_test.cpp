#include "supernet/partition.h"

#include "passes/cut_points.h"
#include "passes/splice.h"
#include "supernet/work.h"
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
    {"resnet20-cifar10", 11},
    {"resnet56-cifar10", 29},
    {"mobilenet_v2", 20},
    {"mobilenet_v3_small", 15},
    {"mobilenet_v3_large", 19},
    {"shufflenet_v2_x1_0", 19},
    {"efficientnet_b0", 19},
    {"densenet121", 9},
    {"vgg16", 9},
    {"vit_tiny", 26},
    {"mobilenetv2-tiny", 20},
    {"vit-tiny", 20},
    {"resnet50h-tiny", 18},
    {"squeezenet1_1", 10},
    {"regnet_y_400mf", 18},
    {"senet18", 10},
    {"convnext_small", 7},
    {"swin_small", 11},
    {"inception_small", 4},
    {"unet_small", 6},
};
INSTANTIATE_TEST_SUITE_P(Models, Partition, ::testing::ValuesIn(kPartitionCases),
                         [](const auto& c) { return test::test_name(c.param.model); });

}  // namespace
}  // namespace limber
