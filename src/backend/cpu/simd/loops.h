// Loops over a dense output and operands that lie in it with strides: broadcasting, slices, transposes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/parallel.h"
#include "tensor/shape.h"

namespace limber::own {

inline constexpr int kMaxOperands = 3;

using Strides = std::vector<int64_t>;

// The part of a loop that one call works on: `rows` rows of `cols` output elements, all in the two
// innermost (collapsed) dimensions, or a piece of one row.
struct LoopPart {
  int64_t out = 0;                         // offset of the first output element
  std::array<int64_t, kMaxOperands> in{};  // offsets of the first operand elements
  int64_t rows = 0, cols = 0;
};

class StridedLoop {
 public:
  // `strides`: per operand, in elements, one per dimension. Dimensions that can be walked as one are merged.
  StridedLoop(const std::vector<int64_t>& dims, const std::vector<Strides>& strides);
  // Operands of these shapes broadcast to `out`.
  static StridedLoop broadcast(const Shape& out, const std::vector<Shape>& operands);

  int64_t elements() const { return elements_; }
  int64_t cols() const { return cols_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t row_stride(int operand) const { return row_stride_[static_cast<size_t>(operand)]; }
  int64_t col_stride(int operand) const { return col_stride_[static_cast<size_t>(operand)]; }

  // Calls body(part) for parts that cover the output elements [begin, end), in order.
  template <typename Body>
  void visit(int64_t begin, int64_t end, const Body& body) const {
    while (begin < end) {
      const int64_t row = begin / cols_, col = begin % cols_;
      LoopPart part;
      part.out = begin;
      if (col == 0 && end - begin >= cols_) {
        part.rows = std::min((end - begin) / cols_, rows_ - row % rows_);
        part.cols = cols_;
      } else {
        part.rows = 1;
        part.cols = std::min(cols_ - col, end - begin);
      }
      locate(row, col, part);
      body(part);
      begin += part.rows * part.cols;
    }
  }

  // The same over all elements, on several threads when there are more than `grain`.
  template <typename Body>
  void run(int64_t grain, const Body& body) const {
    constexpr int64_t kUnit = 64;  // threads meet at whole cache lines
    parallel_for(
        (elements_ + kUnit - 1) / kUnit, std::max<int64_t>(1, grain / kUnit),
        [&](int64_t begin, int64_t end) { visit(begin * kUnit, std::min(elements_, end * kUnit), body); });
  }

 private:
  void locate(int64_t row, int64_t col, LoopPart& part) const;

  std::vector<int64_t> dims_;     // outermost first; at least two
  std::vector<Strides> strides_;  // by operand
  int64_t elements_ = 0, rows_ = 1, cols_ = 1;
  std::array<int64_t, kMaxOperands> row_stride_{}, col_stride_{};
};

// body(begin, end) over elements [0, n).
template <typename Body>
void for_elements(int64_t n, int64_t grain, const Body& body) {
  constexpr int64_t kUnit = 64;  // threads meet at whole cache lines
  parallel_for((n + kUnit - 1) / kUnit, std::max<int64_t>(1, grain / kUnit),
               [&](int64_t begin, int64_t end) { body(begin * kUnit, std::min(n, end * kUnit)); });
}

// Row-major strides of `shape` seen as `out` (numpy broadcasting): 0 where it is repeated.
Strides broadcast_strides(const Shape& shape, const Shape& out);

}  // namespace limber::own
