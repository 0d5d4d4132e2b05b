#include "adapt/surrogate/plain_master.h"

#include "tests/adapt/surrogate/master_case.h"

namespace limber::adapt {
namespace {

TEST(PlainMaster, WithoutItsGatesItIsTheModelItWasMadeFrom) {
  const Graph before = residual_model().graph;
  for (const auto& kept : {std::optional<double>(), std::optional<double>(0.5)}) {
    Graph gated = before;
    ASSERT_TRUE(insert_gates(gated, {.kept = kept}).ok());
    ASSERT_NE(hash(gated), hash(before));
    const auto plain = open_plain_master(gated);
    ASSERT_TRUE(plain.ok()) << plain.status().message();
    EXPECT_EQ(hash(plain->graph), hash(before));
  }
}

TEST(PlainMaster, FiltersOfOneSumBelongToOneGroup) {
  const PlainMaster plain = plain_of(gated_model());
  ASSERT_EQ(plain.groups.groups.size(), 2u);
  EXPECT_EQ(plain.groups.groups[0].units, 8);
  EXPECT_EQ(plain.groups.groups[1].units, 6);
  ASSERT_EQ(plain.layers.size(), 3u);
  const size_t groups[] = {0, 1, 0};
  for (size_t l = 0; l < 3; ++l) {
    const CutLayer& layer = plain.layers[l];
    EXPECT_EQ(layer.weight, fmt::format("w{}", l + 1));
    EXPECT_EQ(layer.group, groups[l]);
    ASSERT_TRUE(layer.norm);
    EXPECT_EQ(layer.norm->scale, fmt::format("s{}", l + 1));
    EXPECT_EQ(layer.norm->variance, fmt::format("var{}", l + 1));
  }
  const UnitRelevance sums =
      sum_by_unit(plain, {std::vector<double>(8, 1.0), {0, 1, 2, 3, 4, 5}, std::vector<double>(8, 10.0)});
  EXPECT_EQ(sums[0], std::vector<double>(8, 11.0));
  EXPECT_EQ(sums[1], (std::vector<double>{0, 1, 2, 3, 4, 5}));
}

TEST(PlainMaster, AModelWithNothingToDropIsRefused) {
  const AdaptedModel model = model_of(R"(graph "bare" {
  input %x: f32[N,3,8,8]
  param %w: f32[4,3,8,8]
  %c: f32[N,4,1,1] = Conv(%x, %w) {dilations=[1,1], pads=[0,0,0,0], strides=[1,1]}
  output %c as "y"
}
)");
  expect_failure(open_plain_master(model.graph), Code::kInvalidArgument, {"'bare'", "nothing can be cut"});
}

}  // namespace
}  // namespace limber::adapt
