#include "supernet/teach/recalibrate.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "io/builtin_models.h"
#include "supernet/expand/expand.h"
#include "tests/runtime/net.h"

namespace limber {
namespace {

std::vector<Tensor> shifted_batches(const Graph& graph, float shift) {
  Shape shape = graph.type(graph.inputs()[0]).shape;
  shape[0] = Dim(8);
  std::vector<Tensor> batches;
  Random random(1);
  for (int i = 0; i < 4; ++i) {
    batches.push_back(*Tensor::allocate({DType::kF32, shape}));
    for (float& v : batches.back().data<float>()) v = shift + static_cast<float>(random.normal());
  }
  return batches;
}

std::vector<float> floats(const Parameters& params, const std::string& name) {
  const Tensor tensor = *params.get(name);
  return {tensor.data<float>().begin(), tensor.data<float>().end()};
}

TEST(Recalibrate, StatisticsFollowTheDataAndWeightsStay) {
  const auto builtin = make_builtin("resnet8");
  ASSERT_TRUE(builtin.ok());
  std::map<std::string, std::vector<float>> before;
  for (const std::string& name : builtin->params->names()) before[name] = floats(*builtin->params, name);
  const auto batches = shifted_batches(builtin->graph, 3);
  const auto made = recalibrate(builtin->graph, *builtin->params, test::cpu_backends(), batches, 1);
  ASSERT_TRUE(made.ok()) << made.status().message();
  size_t changed = 0, statistics = 0;
  for (const Node& node : builtin->graph.nodes()) {
    if (node.op == OpKind::kBatchNorm) statistics += 2;
  }
  for (const auto& [name, values] : before) {
    EXPECT_EQ(floats(*builtin->params, name), values) << name;
    if (floats(**made, name) != values) ++changed;
  }
  EXPECT_EQ(changed, statistics);  // means and variances, nothing else
  // A second time on the same data changes next to nothing: they are what the data say.
  const auto again = recalibrate(builtin->graph, **made, test::cpu_backends(), batches, 1);
  ASSERT_TRUE(again.ok());
  for (const auto& [name, values] : before) {
    const auto a = floats(**made, name), b = floats(**again, name);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 0.02 * (1 + std::abs(a[i]))) << name;
  }
}

TEST(Recalibrate, SaysWhatIsMissing) {
  const auto builtin = make_builtin("resnet8");
  ASSERT_TRUE(builtin.ok());
  EXPECT_EQ(recalibrate(builtin->graph, *builtin->params, test::cpu_backends(), {}, 1).status().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace limber
