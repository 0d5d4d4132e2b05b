// Copies where every axis has its own table of source positions: padding, nearest-neighbour resizing.
#pragma once

#include <algorithm>
#include <cstring>

#include "backend/cpu/simd/own_families.h"

namespace limber::own {

inline constexpr int32_t kFill = -1;

class IndexedRows {
 public:
  // `sources[d][i]`: the index of axis d of x that index i of y reads, kFill for the fill value.
  // REQUIRES: rank > 0, the last axis of x is at most INT32_MAX long
  IndexedRows(const Shape& x, const std::vector<std::vector<int64_t>>& sources);

  template <typename T>
  void run(const T* x, T* y, T fill) const {
    parallel_for(rows_, row_grain(cols_), [&](int64_t begin, int64_t end) {
      int64_t previous = kFill;
      for (int64_t r = begin; r < end; ++r) {
        const int64_t source = source_of(r);
        T* row = y + r * cols_;
        if (source == kFill) {
          std::fill_n(row, cols_, fill);
        } else if (source == previous) {
          std::memcpy(row, row - cols_, static_cast<size_t>(cols_) * sizeof(T));
        } else {
          fill_row(x + source, row, fill);
        }
        previous = source;
      }
    });
  }

 private:
  // Where the input row behind output row r begins; kFill: all of it is the fill value.
  int64_t source_of(int64_t r) const {
    int64_t offset = 0;
    for (size_t d = outer_.size(); d-- > 0;) {
      const auto size = static_cast<int64_t>(outer_[d].size());
      const int64_t s = outer_[d][static_cast<size_t>(d == 0 ? r : r % size)];
      if (s == kFill) return kFill;
      offset += s;
      r = d == 0 ? 0 : r / size;
    }
    return offset;
  }

  template <typename T>
  void fill_row(const T* src, T* dst, T fill) const {
    if constexpr (sizeof(T) == 4) {
      if (gathers_) {
        return table_->gather32(reinterpret_cast<const uint32_t*>(src), inner_.data(),
                                reinterpret_cast<uint32_t*>(dst), cols_);
      }
    }
    const auto each = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int32_t s = inner_[static_cast<size_t>(i)];
        dst[i] = s == kFill ? fill : src[s];
      }
    };
    each(0, run_begin_);
    if (run_end_ > run_begin_) {
      std::memcpy(dst + run_begin_, src + inner_[static_cast<size_t>(run_begin_)],
                  static_cast<size_t>(run_end_ - run_begin_) * sizeof(T));
    }
    each(run_end_, cols_);
  }

  std::vector<std::vector<int64_t>> outer_;  // by axis but the last: offset in x, or kFill
  std::vector<int32_t> inner_;               // of the last axis
  const SimdTable* table_;
  bool gathers_ = false;  // the last axis has no fill and no long contiguous stretch
  int64_t rows_ = 1, cols_ = 0;
  int64_t run_begin_ = 0, run_end_ = 0;  // the longest stretch of a row that is contiguous in x
};

// A kernel that copies elements of `dtype`; `fill` is converted to it. nullptr for a fill it cannot convert.
KernelPtr make_indexed_copy(IndexedRows rows, DType dtype, double fill);

}  // namespace limber::own
