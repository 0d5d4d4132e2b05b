#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace limber {
namespace {

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
    EXPECT_GE(dtype_size(dtype), 1u);
    EXPECT_FALSE(is_float(dtype) && is_integer(dtype));
  }
  EXPECT_EQ(parse_dtype("float"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
  EXPECT_FALSE(is_signed(DType::kBool));
}

TEST(Half, EveryHalfSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = half_to_float(half);
    const bool is_nan = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
    ASSERT_EQ(std::isnan(value), is_nan) << bits;
    if (is_nan) {
      ASSERT_TRUE(std::isnan(half_to_float(float_to_half(value)))) << bits;
    } else {
      ASSERT_EQ(float_to_half(value), half) << bits;
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  // Between each pair of neighbours: below the middle goes down, above goes up, the middle to even.
  for (uint16_t low = 0; low < 0x7bff; ++low) {
    const float a = half_to_float(low), b = half_to_float(static_cast<uint16_t>(low + 1));
    const float middle = (a + b) / 2;
    const auto high = static_cast<uint16_t>(low + 1);
    ASSERT_EQ(float_to_half(middle), (low & 1) == 0 ? low : high) << low;
    ASSERT_EQ(float_to_half(std::nextafter(middle, 0.0f)), low) << low;
    ASSERT_EQ(float_to_half(std::nextafter(middle, 1e9f)), high) << low;
    ASSERT_EQ(float_to_half(-middle), float_to_half(middle) | 0x8000) << low;
  }
}

TEST(Half, EdgesOfTheRange) {
  EXPECT_EQ(float_to_half(65504.0f), 0x7bff);
  EXPECT_EQ(float_to_half(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(INFINITY), 0x7c00);
  EXPECT_EQ(float_to_half(-INFINITY), 0xfc00);
  EXPECT_EQ(float_to_half(0x1p-25f), 0);
  EXPECT_EQ(float_to_half(0x1.8p-25f), 1);
  EXPECT_EQ(float_to_half(-0.0f), 0x8000);
}

TEST(BFloat16, EveryValueSurvivesAndRoundsToNearestEven) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = bfloat16_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(value))));
    } else {
      ASSERT_EQ(float_to_bfloat16(value), bits);
    }
  }
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
}

TEST(Tensor, HoldsItsValues) {
  const Tensor t = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(t.type().to_string(), "f32[2,3]");
  EXPECT_EQ(t.bytes(), 24u);
  EXPECT_EQ(t.data<float>()[4], 5.0f);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.raw()) % Buffer::kAlignment, 0u);
}

TEST(Tensor, CopiesShareBytes) {
  Tensor t = Tensor::from<int64_t>({1, 2}, {2});
  const Tensor copy = t;
  t.data<int64_t>()[0] = 9;
  EXPECT_EQ(copy.data<int64_t>()[0], 9);
  EXPECT_EQ(t.reshaped({2, 1}).raw(), t.raw());
}

TEST(Tensor, ZerosAndEmpty) {
  const Tensor t = *Tensor::zeros({DType::kI32, {3}});
  for (int32_t v : t.data<int32_t>()) EXPECT_EQ(v, 0);
  EXPECT_TRUE(Tensor::allocate({DType::kF32, {0, 4}}).ok());
  EXPECT_EQ(Tensor::scalar(2.5).elements(), 1);
}

TEST(Tensor, ImpossibleSizeIsAStatus) {
  EXPECT_EQ(Buffer::allocate(SIZE_MAX).status().code(), Code::kResourceExhausted);
  EXPECT_EQ(Buffer::allocate(SIZE_MAX - 64).status().code(), Code::kResourceExhausted);
}

TEST(Tensor, BorrowedBytesKeepTheirOwner) {
  auto owner = std::make_shared<std::vector<float>>(4, 1.5f);
  const std::weak_ptr<std::vector<float>> watch = owner;
  auto buffer = Buffer::borrow(owner->data(), 16, owner);
  owner.reset();
  EXPECT_FALSE(buffer->owned());
  const Tensor t({DType::kF32, {2}}, buffer, 8);
  EXPECT_EQ(t.data<float>()[1], 1.5f);
  EXPECT_FALSE(watch.expired());
}

TEST(Tensor, ElementsOfEveryType) {
  EXPECT_EQ(element_as_double(Tensor::from<float>({0.5f}, {1}), 0), 0.5);
  EXPECT_EQ(element_as_int(Tensor::from<int8_t>({-3}, {1}), 0), -3);
  EXPECT_EQ(element_as_int(Tensor::from<uint16_t>({65535}, {1}), 0), 65535);
  EXPECT_EQ(element_as_int(Tensor::from<int64_t>({INT64_MIN}, {1}), 0), INT64_MIN);
  EXPECT_EQ(element_as_double(Tensor::from<bool>({true}, {1}), 0), 1.0);
  Tensor half = *Tensor::allocate({DType::kF16, {1}});
  const uint16_t bits = 0x3c00;
  std::memcpy(half.raw(), &bits, 2);
  EXPECT_EQ(element_as_double(half, 0), 1.0);
}

}  // namespace
}  // namespace limber
