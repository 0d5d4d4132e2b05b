// The whole of one instruction set's kernels. Only code in the anonymous namespace below and builtins: a
// shared inline function emitted here with these compiler flags could be the copy the linker keeps.
#include <cstddef>
#include <cstdint>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "backend/cpu/simd/simd.h"

#if defined(__clang__)
#define LIMBER_UNROLL _Pragma("unroll")
#else
#define LIMBER_UNROLL _Pragma("GCC unroll 16")
#endif

namespace limber::LIMBER_ISA {
const SimdTable& table();
namespace {
// Each stands on those before it.
// clang-format off
#include "backend/cpu/simd/vec.inl"
#include "backend/cpu/simd/math.inl"
#include "backend/cpu/simd/elementwise.inl"
#include "backend/cpu/simd/reduce.inl"
#include "backend/cpu/simd/norm.inl"
#include "backend/cpu/simd/move.inl"
#include "backend/cpu/simd/attention.inl"
#include "backend/cpu/simd/training.inl"
#include "backend/cpu/simd/winograd.inl"
// clang-format on

constexpr SimdTable make_table() {
  SimdTable t{};
  t.name = LIMBER_ISA_NAME;
  t.lanes = kLanes;
  fill_elementwise(t);
  fill_reduce(t);
  fill_norm(t);
  fill_move(t);
  fill_attention(t);
  fill_training(t);
  fill_winograd(t);
  return t;
}
constexpr SimdTable kTable = make_table();
}  // namespace

const SimdTable& table() { return kTable; }
}  // namespace limber::LIMBER_ISA
