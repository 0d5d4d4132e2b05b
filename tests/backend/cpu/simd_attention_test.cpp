#include <gtest/gtest.h>

#include <limits>

#include "tests/backend/cpu/simd_test_util.h"

namespace limber {
namespace {

struct Sizes {
  int64_t heads, queries, keys, depth, width;
};

std::vector<Tensor> qkv(const Sizes& s) {
  return {random_tensor({1, s.heads, s.queries, s.depth}, 1), random_tensor({1, s.heads, s.keys, s.depth}, 2),
          random_tensor({1, s.heads, s.keys, s.width}, 3)};
}

TEST(SimdAttention, MatchesReference) {
  for (const Sizes& s :
       {Sizes{1, 1, 1, 1, 1}, Sizes{2, 3, 5, 7, 9}, Sizes{1, 17, 16, 8, 16}, Sizes{3, 65, 65, 64, 64},
        Sizes{2, 50, 33, 24, 40}, Sizes{1, 100, 7, 32, 3}, Sizes{2, 97, 130, 48, 48},
        Sizes{3, 197, 197, 64, 64}, Sizes{2, 0, 5, 4, 4}, Sizes{0, 3, 5, 4, 4}}) {
    expect_same_as_reference({OpKind::kAttention, qkv(s), {{"scale", 0.125}}});
  }
}

TEST(SimdAttention, EveryRowCountOfABlock) {
  for (int64_t queries = 1; queries <= 50; ++queries) {
    expect_same_as_reference({OpKind::kAttention, qkv({1, queries, 29, 5, 21}), {{"scale", 0.3}}});
  }
}

TEST(SimdAttention, EveryNumberOfKeys) {
  for (int64_t keys = 1; keys <= 100; ++keys) {
    expect_same_as_reference({OpKind::kAttention, qkv({1, 9, keys, 6, keys}), {{"scale", 0.3}}});
  }
}

TEST(SimdAttention, MaskBroadcasts) {
  const Sizes s{3, 21, 37, 8, 8};
  for (const Shape& mask :
       {Shape{21, 37}, Shape{1, 1, 1, 37}, Shape{1, 3, 21, 37}, Shape{3, 1, 1}, Shape{3, 21, 1}, Shape{}}) {
    auto inputs = qkv(s);
    inputs.push_back(random_tensor(mask, 4, -5, 5));
    expect_same_as_reference({OpKind::kAttention, inputs, {{"scale", 0.5}}});
  }
}

TEST(SimdAttention, MaskedKeysDoNotCount) {
  auto inputs = qkv({2, 5, 20, 8, 8});
  Tensor mask = *Tensor::zeros({DType::kF32, {5, 20}});
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = i + 1; j < 20; ++j) {
      mask.data<float>()[static_cast<size_t>(i * 20 + j)] = -std::numeric_limits<float>::infinity();
    }
  }
  inputs.push_back(mask);
  expect_same_as_reference({OpKind::kAttention, inputs, {{"scale", 1.0}}});
}

TEST(SimdAttention, LargeScoresDoNotOverflow) {
  auto inputs = qkv({1, 10, 40, 16, 16});
  expect_same_as_reference({OpKind::kAttention, inputs, {{"scale", 50.0}}, 1, {}, 1e-4, 1e-4});
}

TEST(SimdAttention, BatchesOfHeads) {
  expect_same_as_reference({OpKind::kAttention,
                            {random_tensor({2, 3, 65, 16}, 1), random_tensor({2, 3, 70, 16}, 2),
                             random_tensor({2, 3, 70, 24}, 3), random_tensor({2, 1, 65, 70}, 4)},
                            {{"scale", 0.25}}});
  expect_same_as_reference({OpKind::kAttention,
                            {random_tensor({6, 8}, 1), random_tensor({7, 8}, 2), random_tensor({7, 8}, 3)},
                            {{"scale", 0.25}}});
}

}  // namespace
}  // namespace limber
