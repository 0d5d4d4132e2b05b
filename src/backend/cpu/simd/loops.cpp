#include "backend/cpu/simd/loops.h"

namespace limber::own {

StridedLoop::StridedLoop(const std::vector<int64_t>& dims, const std::vector<Strides>& strides) {
  LIMBER_ASSERT(strides.size() <= kMaxOperands);
  strides_.resize(strides.size());
  elements_ = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    elements_ *= dims[d];
    if (dims[d] == 1) continue;
    bool merges = !dims_.empty();
    for (size_t k = 0; k < strides.size() && merges; ++k) {
      merges = strides_[k].back() == strides[k][d] * dims[d];
    }
    if (merges) {
      dims_.back() *= dims[d];
    } else {
      dims_.push_back(dims[d]);
    }
    for (size_t k = 0; k < strides.size(); ++k) {
      if (merges) {
        strides_[k].back() = strides[k][d];
      } else {
        strides_[k].push_back(strides[k][d]);
      }
    }
  }
  while (dims_.size() < 2) {
    dims_.insert(dims_.begin(), 1);
    for (Strides& s : strides_) s.insert(s.begin(), 0);
  }
  cols_ = std::max<int64_t>(1, dims_.back());
  rows_ = std::max<int64_t>(1, dims_[dims_.size() - 2]);
  for (size_t k = 0; k < strides_.size(); ++k) {
    col_stride_[k] = strides_[k].back();
    row_stride_[k] = strides_[k][strides_[k].size() - 2];
  }
}

StridedLoop StridedLoop::broadcast(const Shape& out, const std::vector<Shape>& operands) {
  std::vector<Strides> strides;
  for (const Shape& shape : operands) strides.push_back(broadcast_strides(shape, out));
  return StridedLoop(out.dims(), strides);
}

void StridedLoop::locate(int64_t row, int64_t col, LoopPart& part) const {
  for (size_t k = 0; k < strides_.size(); ++k) part.in[k] = col * col_stride_[k];
  for (size_t d = dims_.size() - 2; d > 0; --d) {
    const int64_t index = row % dims_[d];
    row /= dims_[d];
    for (size_t k = 0; k < strides_.size(); ++k) part.in[k] += index * strides_[k][d];
  }
  for (size_t k = 0; k < strides_.size(); ++k) part.in[k] += row * strides_[k][0];
}

Strides broadcast_strides(const Shape& shape, const Shape& out) {
  const Strides own = strides_of(shape);
  Strides strides(static_cast<size_t>(out.rank()), 0);
  const size_t shift = strides.size() - own.size();
  for (size_t d = 0; d < own.size(); ++d) {
    if (shape.dim(static_cast<int>(d)) != 1) strides[d + shift] = own[d];
  }
  return strides;
}

}  // namespace limber::own
