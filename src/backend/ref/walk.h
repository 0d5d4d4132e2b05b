// Index arithmetic without allocation: shapes and strides in fixed arrays, and loops over them.
#pragma once

#include <array>
#include <cstdint>

#include "tensor/shape.h"

namespace limber::ref {

// Dimensions or strides (in elements), one per axis.
struct Dims {
  int rank = 0;
  std::array<int64_t, kMaxRank> at{};

  int64_t& operator[](int axis) { return at[static_cast<size_t>(axis)]; }
  int64_t operator[](int axis) const { return at[static_cast<size_t>(axis)]; }
  void push_back(int64_t value) {
    LIMBER_ASSERT(rank < kMaxRank);
    (*this)[rank++] = value;
  }
  // Product of the dimensions [from, to).
  int64_t product(int from, int to) const {
    int64_t result = 1;
    for (int axis = from; axis < to; ++axis) result *= (*this)[axis];
    return result;
  }
  int64_t elements() const { return product(0, rank); }
};

// REQUIRES (all below): constant shapes of rank <= kMaxRank
inline Dims dims_of(const Shape& shape) {
  Dims dims;
  for (const Dim& d : shape) dims.push_back(d.value());
  return dims;
}

// Row-major strides.
inline Dims strides_for(const Dims& dims) {
  Dims strides = dims;
  int64_t stride = 1;
  for (int axis = dims.rank - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= dims[axis];
  }
  return strides;
}

// Strides that read a tensor of shape `from` as if it had shape `to` (numpy broadcasting).
inline Dims broadcast_strides(const Shape& from, const Shape& to) {
  const Dims dims = dims_of(from);
  const Dims strides = strides_for(dims);
  Dims result;
  result.rank = to.rank();
  const int shift = to.rank() - dims.rank;
  for (int axis = 0; axis < dims.rank; ++axis) {
    if (dims[axis] != 1) result[axis + shift] = strides[axis];
  }
  return result;
}

// Visits every index of `dims` in row-major order: f(index, offsets), offsets[k] being the dot product
// of the index with strides[k].
template <size_t N, typename F>
void walk(const Dims& dims, const std::array<Dims, N>& strides, F&& f) {
  if (dims.elements() == 0) return;
  Dims index;
  index.rank = dims.rank;
  std::array<int64_t, N> offsets{};
  while (true) {
    f(static_cast<const Dims&>(index), static_cast<const std::array<int64_t, N>&>(offsets));
    int axis = dims.rank - 1;
    for (; axis >= 0; --axis) {
      for (size_t k = 0; k < N; ++k) offsets[k] += strides[k][axis];
      if (++index[axis] < dims[axis]) break;
      for (size_t k = 0; k < N; ++k) offsets[k] -= strides[k][axis] * dims[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

// A tensor seen along one axis: outer * size * inner elements.
struct AxisView {
  int64_t outer = 1, size = 1, inner = 1;

  AxisView(const Dims& dims, int64_t axis)
      : outer(dims.product(0, static_cast<int>(axis))),
        size(dims[static_cast<int>(axis)]),
        inner(dims.product(static_cast<int>(axis) + 1, dims.rank)) {}
  // Calls f(first) for every line along the axis; its elements are first + i * inner.
  template <typename F>
  void each_line(F&& f) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) f(o * size * inner + i);
    }
  }
};

// Indices that come from run-time data. Negative ones count from the end; what is still outside is
// clamped to the nearest valid index: a kernel cannot fail and must not touch foreign memory.
// REQUIRES: size > 0
inline int64_t resolve_index(int64_t index, int64_t size) {
  if (index < 0) index += size;
  return index < 0 ? 0 : index >= size ? size - 1 : index;
}

}  // namespace limber::ref
