#include "tensor/convert.h"

#include <gtest/gtest.h>

namespace limber {
namespace {

TEST(ConvertTensor, NumbersStay) {
  const Tensor half = Tensor::from<uint16_t>({float_to_half(0.5F), float_to_half(-2.F)}, Shape{2});
  const Tensor halves(TensorType{DType::kF16, Shape{2}}, half.buffer());
  const auto floats = convert_tensor(halves, DType::kF32);
  ASSERT_TRUE(floats.ok()) << floats.status().message();
  EXPECT_EQ(floats->data<float>()[0], 0.5F);
  EXPECT_EQ(floats->data<float>()[1], -2.F);
  EXPECT_EQ(convert_tensor(Tensor::from<double>({0.25}, Shape{1}), DType::kF32)->data<float>()[0], 0.25F);
  EXPECT_EQ(convert_tensor(Tensor::from<int8_t>({-3}, Shape{1}), DType::kF32)->data<float>()[0], -3.F);
  EXPECT_EQ(convert_tensor(Tensor::from<uint32_t>({4000000000}, Shape{1}), DType::kI64)->data<int64_t>()[0],
            4000000000);
  EXPECT_EQ(convert_tensor(Tensor::from<uint16_t>({65535}, Shape{1}), DType::kI32)->data<int32_t>()[0],
            65535);
  EXPECT_EQ(convert_tensor(*Tensor::zeros({DType::kBool, Shape{2}}), DType::kF32)->data<float>()[1], 0.F);
}

TEST(ConvertTensor, WhatWouldLoseNumbersIsRefused) {
  EXPECT_EQ(convert_tensor(Tensor::from<float>({1}, Shape{1}), DType::kI64).status().code(),
            Code::kInvalidArgument);
  EXPECT_FALSE(convert_tensor(Tensor::from<int64_t>({1}, Shape{1}), DType::kF32).ok());
  EXPECT_FALSE(convert_tensor(Tensor::from<int64_t>({1}, Shape{1}), DType::kI32).ok());
}

}  // namespace
}  // namespace limber
