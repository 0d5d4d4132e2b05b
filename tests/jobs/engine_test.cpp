#include "jobs/engine.h"

#include <gtest/gtest.h>

#include "io/builtin_models.h"
#include "jobs/fold.h"
#include "ops/op_def.h"

namespace limber {
namespace {

TEST(Builtin, ModelsVerifyAndRepeat) {
  for (const BuiltinModel& entry : builtin_list()) {
    const Model a = entry.make(), b = entry.make();
    EXPECT_TRUE(verify(a.graph).ok()) << entry.name << verify(a.graph).message();
    EXPECT_EQ(hash(a.graph), hash(b.graph));
    for (const std::string& name : a.params->names()) {
      const Tensor x = *a.params->get(name), y = *b.params->get(name);
      EXPECT_EQ(std::memcmp(x.raw(), y.raw(), x.bytes()), 0) << name;
    }
  }
}

TEST(BindDimensions, OpenFirstDimensionIsTheBatch) {
  const Model model = *make_builtin("resnet8");
  EXPECT_EQ((*bind_dimensions(model.graph, {}))["N"], 1);
  EXPECT_EQ((*bind_dimensions(model.graph, {.batch = 7}))["N"], 7);
  EXPECT_EQ((*bind_dimensions(model.graph, {.batch = 7, .symbols = {{"N", 2}}}))["N"], 2);
}

TEST(BindDimensions, OtherOpenDimensionsMustBeGiven) {
  Graph graph;
  const ValueId x = graph.add_input("x", {DType::kF32, Shape{Dim(Symbol("N")), 3, Dim(Symbol("H")), 8}});
  graph.add_output(*emit(graph, OpKind::kRelu, {x}), "y");
  const auto without = bind_dimensions(graph, {});
  ASSERT_FALSE(without.ok());
  EXPECT_NE(without.status().message().find("'H'"), std::string::npos);
  EXPECT_TRUE(bind_dimensions(graph, {.symbols = {{"H", 5}}}).ok());
  EXPECT_FALSE(bind_dimensions(graph, {.symbols = {{"H", 0}}}).ok());
}

TEST(Fold, LeavesOneWeightAndOneBiasPerConvolution) {
  const Model model = *make_builtin("resnet8");
  const auto folded = fold_for_inference(model);
  ASSERT_TRUE(folded.ok()) << folded.status().message();
  EXPECT_TRUE(verify(folded->graph).ok()) << verify(folded->graph).message();
  for (const Node& node : folded->graph.nodes()) EXPECT_NE(node.op, OpKind::kBatchNorm);
  EXPECT_LT(folded->graph.num_nodes(), model.graph.num_nodes());
  EXPECT_EQ(symbols(folded->graph), std::vector<std::string>{"N"});
  for (const Value& value : folded->graph.values()) {
    EXPECT_TRUE(value.role != Role::kParameter || folded->params->contains(value.name)) << value.name;
  }
}

TEST(Closest, SuggestsOnlyWhatIsClose) {
  EXPECT_EQ(closest("imge", {"image", "mask"}), "image");
  EXPECT_EQ(closest("xyz", {"image", "mask"}), "");
  EXPECT_EQ(closest("input", {"input.1", "other"}), "input.1");
}

TEST(NoSuch, NamesWhatThereIs) {
  EXPECT_EQ(no_such("input", "imge", {"image", "mask"}).message(),
            "no input named 'imge' (known: image, mask). Did you mean 'image'?");
}

}  // namespace
}  // namespace limber
