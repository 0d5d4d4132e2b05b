// Approximating a weight matrix by a product of two smaller ones.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace limber {

// Row-major.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> data;

  Matrix() = default;
  Matrix(int64_t r, int64_t c) : rows(r), columns(c), data(static_cast<size_t>(r * c), 0.0) {}
  double& at(int64_t r, int64_t c) { return data[static_cast<size_t>(r * columns + c)]; }
  double at(int64_t r, int64_t c) const { return data[static_cast<size_t>(r * columns + c)]; }
  double* row(int64_t r) { return data.data() + r * columns; }
  const double* row(int64_t r) const { return data.data() + r * columns; }
};

Matrix transposed(const Matrix& m);
Matrix product(const Matrix& a, const Matrix& b);  // REQUIRES: a.columns == b.rows

struct EigenSystem {
  std::vector<double> values;  // descending
  Matrix vectors;              // one per row, orthonormal
};
// REQUIRES: symmetric
EigenSystem symmetric_eigen(const Matrix& m);

// The singular directions of a matrix on its shorter side; from them follow the factors of every rank.
class Factors {
 public:
  explicit Factors(Matrix m);

  int64_t full_rank() const { return std::min(matrix_.rows, matrix_.columns); }
  const std::vector<double>& singular_values() const { return singular_values_; }  // descending
  // m ~ left * right, with left[rows, rank] and right[rank, columns]: no matrix of this rank is nearer in the
  // sum of squares. At full rank the product is m up to rounding. REQUIRES: 0 < rank <= full_rank()
  struct Pair {
    Matrix left, right;
  };
  Pair truncated(int64_t rank) const;

 private:
  Matrix matrix_;
  Matrix directions_;  // rows: the singular vectors of the shorter side
  std::vector<double> singular_values_;
};

// Factors by the name of what they are of. Not thread-safe.
class FactorCache {
 public:
  template <typename Make>
  const Factors& get(const std::string& key, const Make& make) {
    auto& entry = entries_[key];
    if (!entry) entry = std::make_unique<Factors>(make());
    return *entry;
  }
  void clear() { entries_.clear(); }

 private:
  std::map<std::string, std::unique_ptr<Factors>> entries_;
};

}  // namespace limber
