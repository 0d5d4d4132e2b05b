#include "adapt/strategy.h"

#include <gtest/gtest.h>

#include "tests/runtime/net.h"
#include "tests/train/training_case.h"

namespace limber::adapt {
namespace {

Tensor zeros(DType dtype, Shape shape) { return *Tensor::zeros({dtype, std::move(shape)}); }

TEST(AdaptStrategy, ImagesThatTheModelCannotTakeAreRefused) {
  const test::Net net = test::make_net(test::kTinyNet);
  EXPECT_TRUE(check_images(net.graph, zeros(DType::kF32, {5, 3, 16, 16})).ok());
  for (const Tensor& wrong : {zeros(DType::kU8, {5, 3, 16, 16}), zeros(DType::kF32, {5, 1, 16, 16}),
                              zeros(DType::kF32, {5, 3, 16, 8}), zeros(DType::kF32, {3, 16, 16}),
                              zeros(DType::kF32, {0, 3, 16, 16})}) {
    const Status status = check_images(net.graph, wrong);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(wrong.type().to_string()), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("f32[N,3,16,16]"), std::string::npos) << status.message();
  }
}

TEST(AdaptStrategy, FrozenNeverChangesAnything) {
  Frozen frozen;
  EXPECT_EQ(frozen.batch(), 0);
  EXPECT_FALSE(*frozen.adapt(zeros(DType::kF32, {5, 3, 16, 16})));
  EXPECT_TRUE(frozen.reset().ok());
}

}  // namespace
}  // namespace limber::adapt
