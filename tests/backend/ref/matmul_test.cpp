#include <cmath>

#include "tests/backend/ref/run_op.h"

namespace limber::test {
namespace {

const Tensor& a23() {
  static const Tensor t = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  return t;
}
const Tensor& b32() {
  static const Tensor t = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  return t;
}

TEST(RefMatMul, MultipliesMatricesAndVectors) {
  expect(run(OpKind::kMatMul, {a23(), b32()}), {DType::kF32, {2, 2}}, {22, 28, 49, 64});
  expect(run(OpKind::kMatMul, {f32({3}, {1, 1, 1}), b32()}), {DType::kF32, {2}}, {9, 12});
  expect(run(OpKind::kMatMul, {a23(), f32({3}, {1, 0, 1})}), {DType::kF32, {2}}, {4, 10});
  expect(run(OpKind::kMatMul, {f32({2}, {3, 4}), f32({2}, {3, 4})}), {DType::kF32, {}}, {25});
}

TEST(RefMatMul, BroadcastsBatches) {
  const Tensor a = counting({2, 1, 1, 2}), b = counting({3, 2, 1});
  expect(run(OpKind::kMatMul, {a, b}), {DType::kF32, {2, 3, 1, 1}}, {1, 3, 5, 3, 13, 23});
}

TEST(RefMatMul, TransposesAndScales) {
  expect(run(OpKind::kMatMul, {b32(), a23()},
             {{"trans_a", int64_t{1}}, {"trans_b", int64_t{1}}, {"alpha", 2.0}}),
         {DType::kF32, {2, 2}}, {44, 98, 56, 128});
}

TEST(RefMatMul, FusesBiasResidualAndActivation) {
  const Tensor bias = f32({2}, {-50, 0}), residual = f32({2, 2}, {1, 1, 1, 1});
  const TensorType t{DType::kF32, {2, 2}};
  expect(run(OpKind::kMatMul, {a23(), b32(), bias, residual}, {{"act", "relu"}}), t, {0, 29, 0, 65});
  expect(run(OpKind::kMatMul, {a23(), b32(), f32({2, 1}, {1, 2})}), t, {23, 29, 51, 66});
  expect(run(OpKind::kMatMul, {a23(), f32({3}, {1, 0, 1}), f32({2}, {10, 20})}), {DType::kF32, {2}},
         {14, 30});
}

TEST(RefMatMul, HandlesOtherTypes) {
  for (DType t :
       {DType::kF64, DType::kF16, DType::kBF16, DType::kI32, DType::kU32, DType::kI64, DType::kU64}) {
    expect(run(OpKind::kMatMul, {as(a23(), t), as(b32(), t)}), {t, {2, 2}}, {22, 28, 49, 64});
  }
}

TEST(RefGemm, AppliesAlphaBetaAndTransposes) {
  const Attrs attrs = {{"alpha", 0.5}, {"beta", 2.0}, {"trans_a", int64_t{1}}, {"trans_b", int64_t{1}}};
  expect(run(OpKind::kGemm, {b32(), a23(), f32({2}, {1, 2})}, attrs), {DType::kF32, {2, 2}},
         {13, 28.5, 16, 36});
  expect(run(OpKind::kGemm, {a23(), b32()}), {DType::kF32, {2, 2}}, {22, 28, 49, 64});
  expect(run(OpKind::kGemm, {a23(), b32(), f32({}, {1})}), {DType::kF32, {2, 2}}, {23, 29, 50, 65});
  expect(run(OpKind::kGemm, {a23(), b32(), f32({2, 1}, {1, 2})}), {DType::kF32, {2, 2}}, {23, 29, 51, 66});
}

Tensor einsum(const std::string& equation, const std::vector<Tensor>& inputs) {
  return run(OpKind::kEinsum, inputs, {{"equation", equation}});
}

TEST(RefEinsum, Contracts) {
  expect(einsum("ij,jk->ik", {a23(), b32()}), {DType::kF32, {2, 2}}, {22, 28, 49, 64});
  expect(einsum("ij,jk", {a23(), b32()}), {DType::kF32, {2, 2}}, {22, 28, 49, 64});
  expect(einsum("i , i ->", {f32({2}, {3, 4}), f32({2}, {3, 4})}), {DType::kF32, {}}, {25});
  expect(einsum("i,j->ij", {f32({2}, {1, 2}), f32({2}, {3, 4})}), {DType::kF32, {2, 2}}, {3, 4, 6, 8});
}

TEST(RefEinsum, TransposesAndSums) {
  expect(einsum("ij->ji", {a23()}), {DType::kF32, {3, 2}}, {1, 4, 2, 5, 3, 6});
  expect(einsum("ba", {a23()}), {DType::kF32, {3, 2}}, {1, 4, 2, 5, 3, 6});
  expect(einsum("ij->i", {a23()}), {DType::kF32, {2}}, {6, 15});
  expect(einsum("ij->", {a23()}), {DType::kF32, {}}, {21});
}

TEST(RefEinsum, TakesDiagonals) {
  expect(einsum("ii->i", {counting({3, 3})}), {DType::kF32, {3}}, {0, 4, 8});
  expect(einsum("ii", {counting({3, 3})}), {DType::kF32, {}}, {12});
  expect(einsum("...ii->...i", {counting({2, 2, 2})}), {DType::kF32, {2, 2}}, {0, 3, 4, 7});
}

TEST(RefEinsum, BroadcastsEllipses) {
  expect(einsum("...ij,...jk->...ik", {counting({2, 1, 2}), counting({2, 1})}), {DType::kF32, {2, 1, 1}},
         {1, 3});
  expect(einsum("...i->...", {counting({2, 3})}), {DType::kF32, {2}}, {3, 12});
  expect(einsum("i...,...", {f32({2}, {1, 2}), counting({2})}), {DType::kF32, {2, 2}}, {0, 0, 1, 2});
}

TEST(RefEinsum, MultipliesThreeIntegers) {
  const Tensor x = i64({2}, {1, 2});
  expect(einsum("i,i,i->", {x, x, x}), {DType::kI64, {}}, {9});
}

TEST(RefAttention, WeighsValues) {
  // Scores 0 and ln 3: weights 1/4 and 3/4.
  const Tensor q = f32({1, 1, 1}, {2}), k = f32({1, 2, 1}, {0, static_cast<float>(std::log(3.0))});
  const Tensor v = f32({1, 2, 2}, {4, 0, 8, 4});
  expect(run(OpKind::kAttention, {q, k, v}, {{"scale", 0.5}}), {DType::kF32, {1, 1, 2}}, {7, 3});
}

TEST(RefAttention, AddsABroadcastMask) {
  const Tensor q = counting({2, 2, 1}), k = f32({2, 2, 1}, {0, 0, 0, 0}), v = counting({2, 2, 1});
  const float no = -std::numeric_limits<float>::infinity();
  expect(run(OpKind::kAttention, {q, k, v, f32({2, 2}, {0, no, 0, 0})}, {{"scale", 1.0}}),
         {DType::kF32, {2, 2, 1}}, {0, 0.5, 2, 2.5});
}

}  // namespace
}  // namespace limber::test
