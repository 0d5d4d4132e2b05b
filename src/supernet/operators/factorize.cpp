#include "supernet/operators/factorize.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/assert.h"

namespace limber {
namespace {

// A symmetric matrix as q * tridiagonal * q^T. Rows of `q` are kept transposed: row k is the k-th basis
// vector.
struct Tridiagonal {
  std::vector<double> diagonal, below;  // below[i] lies between i and i + 1
  Matrix basis;
};

// One reflection makes column k zero below its second entry; `v` is the reflecting vector from k + 1 on.
void reflect(Matrix& m, Matrix& basis, int64_t k, std::vector<double>& v, std::vector<double>& p) {
  const int64_t n = m.rows;
  double norm = 0;
  for (int64_t i = k + 1; i < n; ++i) norm += m.at(i, k) * m.at(i, k);
  norm = std::sqrt(norm);
  if (norm == 0) return;
  for (int64_t i = k + 1; i < n; ++i) v[static_cast<size_t>(i)] = m.at(i, k);
  const double head = v[static_cast<size_t>(k + 1)];
  v[static_cast<size_t>(k + 1)] += head < 0 ? -norm : norm;
  double square = 0;
  for (int64_t i = k + 1; i < n; ++i) square += v[static_cast<size_t>(i)] * v[static_cast<size_t>(i)];
  const double beta = 2 / square;

  // m <- m - v w^T - w v^T with p = beta m v, w = p - (beta v.p / 2) v.
  std::fill(p.begin(), p.end(), 0.0);
  for (int64_t i = k + 1; i < n; ++i) {
    const double* row = m.row(i);
    const double factor = beta * v[static_cast<size_t>(i)];
    for (int64_t j = k; j < n; ++j) p[static_cast<size_t>(j)] += factor * row[j];
  }
  double dot = 0;
  for (int64_t i = k + 1; i < n; ++i) dot += v[static_cast<size_t>(i)] * p[static_cast<size_t>(i)];
  const double half = 0.5 * beta * dot;
  for (int64_t i = k + 1; i < n; ++i) p[static_cast<size_t>(i)] -= half * v[static_cast<size_t>(i)];
  for (int64_t i = k + 1; i < n; ++i) {
    double* row = m.row(i);
    const double vi = v[static_cast<size_t>(i)], wi = p[static_cast<size_t>(i)];
    for (int64_t j = k + 1; j < n; ++j)
      row[j] -= vi * p[static_cast<size_t>(j)] + wi * v[static_cast<size_t>(j)];
  }
  m.at(k + 1, k) = m.at(k, k + 1) = head < 0 ? norm : -norm;

  // basis <- reflection * basis
  std::fill(p.begin(), p.end(), 0.0);
  for (int64_t i = k + 1; i < n; ++i) {
    const double* row = basis.row(i);
    const double factor = beta * v[static_cast<size_t>(i)];
    for (int64_t j = 0; j < n; ++j) p[static_cast<size_t>(j)] += factor * row[j];
  }
  for (int64_t i = k + 1; i < n; ++i) {
    double* row = basis.row(i);
    const double vi = v[static_cast<size_t>(i)];
    for (int64_t j = 0; j < n; ++j) row[j] -= vi * p[static_cast<size_t>(j)];
  }
}

Tridiagonal tridiagonal_form(Matrix m) {
  const int64_t n = m.rows;
  Tridiagonal result;
  result.basis = Matrix(n, n);
  for (int64_t i = 0; i < n; ++i) result.basis.at(i, i) = 1;
  std::vector<double> v(static_cast<size_t>(n)), p(static_cast<size_t>(n));
  for (int64_t k = 0; k + 2 < n; ++k) reflect(m, result.basis, k, v, p);
  for (int64_t i = 0; i < n; ++i) {
    result.diagonal.push_back(m.at(i, i));
    result.below.push_back(i + 1 < n ? m.at(i + 1, i) : 0);
  }
  return result;
}

// Rows i and i + 1 of the basis turn by the angle of (c, s).
void turn_rows(Matrix& basis, int64_t i, double c, double s) {
  double* a = basis.row(i);
  double* b = basis.row(i + 1);
  for (int64_t j = 0; j < basis.columns; ++j) {
    const double x = a[j], y = b[j];
    a[j] = c * x - s * y;
    b[j] = s * x + c * y;
  }
}

// One implicit QL step on rows low..high with a shift from the top corner.
void ql_step(Tridiagonal& t, size_t low, size_t high) {
  auto& d = t.diagonal;
  auto& e = t.below;
  const double slope = (d[low + 1] - d[low]) / (2 * e[low]);
  const double root = std::hypot(slope, 1.0);
  double g = d[high] - d[low] + e[low] / (slope + (slope < 0 ? -root : root));
  double c = 1, s = 1, shift = 0;
  for (size_t i = high; i-- > low;) {
    const double f = s * e[i], b = c * e[i];
    const double r = std::hypot(f, g);
    e[i + 1] = r;
    if (r == 0) {
      d[i + 1] -= shift;
      e[high] = 0;
      return;
    }
    s = f / r;
    c = g / r;
    const double moved = d[i + 1] - shift;
    const double q = (d[i] - moved) * s + 2 * c * b;
    shift = s * q;
    d[i + 1] = moved + shift;
    g = c * q - b;
    turn_rows(t.basis, static_cast<int64_t>(i), c, s);
  }
  d[low] -= shift;
  e[low] = g;
  e[high] = 0;
}

void diagonalise(Tridiagonal& t) {
  constexpr int kMaxSteps = 100;  // a few are usual
  const size_t n = t.diagonal.size();
  for (size_t low = 0; low < n; ++low) {
    for (int step = 0; step < kMaxSteps; ++step) {
      size_t high = low;
      while (high + 1 < n) {
        const double scale = std::abs(t.diagonal[high]) + std::abs(t.diagonal[high + 1]);
        if (std::abs(t.below[high]) <= 1e-16 * scale) break;
        ++high;
      }
      if (high == low) break;
      ql_step(t, low, high);
    }
  }
}

Matrix gram_of_rows(const Matrix& m) {
  const Matrix columns = transposed(m);
  Matrix gram(m.rows, m.rows);
  for (int64_t k = 0; k < columns.rows; ++k) {
    const double* x = columns.row(k);
    for (int64_t i = 0; i < m.rows; ++i) {
      double* row = gram.row(i);
      const double factor = x[i];
      for (int64_t j = 0; j <= i; ++j) row[j] += factor * x[j];
    }
  }
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = i + 1; j < m.rows; ++j) gram.at(i, j) = gram.at(j, i);
  }
  return gram;
}

}  // namespace

Matrix transposed(const Matrix& m) {
  Matrix t(m.columns, m.rows);
  for (int64_t r = 0; r < m.rows; ++r) {
    for (int64_t c = 0; c < m.columns; ++c) t.at(c, r) = m.at(r, c);
  }
  return t;
}

Matrix product(const Matrix& a, const Matrix& b) {
  LIMBER_ASSERT(a.columns == b.rows);
  Matrix result(a.rows, b.columns);
  for (int64_t r = 0; r < a.rows; ++r) {
    double* to = result.row(r);
    for (int64_t k = 0; k < a.columns; ++k) {
      const double factor = a.at(r, k);
      const double* from = b.row(k);
      for (int64_t c = 0; c < b.columns; ++c) to[c] += factor * from[c];
    }
  }
  return result;
}

Eigen symmetric_eigen(Matrix m) {
  LIMBER_ASSERT(m.rows == m.columns);
  Tridiagonal t = tridiagonal_form(std::move(m));
  diagonalise(t);
  std::vector<size_t> order(t.diagonal.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return t.diagonal[a] > t.diagonal[b]; });
  Eigen result;
  result.vectors = Matrix(t.basis.rows, t.basis.columns);
  for (size_t i = 0; i < order.size(); ++i) {
    result.values.push_back(t.diagonal[order[i]]);
    const double* from = t.basis.row(static_cast<int64_t>(order[i]));
    std::copy(from, from + t.basis.columns, result.vectors.row(static_cast<int64_t>(i)));
  }
  return result;
}

// Projecting on the leading directions of one side gives the best approximation without dividing by singular
// values, so small ones, which the Gram matrix knows badly, do no harm.
Factors::Factors(Matrix m) : matrix_(std::move(m)) {
  const bool tall = matrix_.rows > matrix_.columns;
  Eigen eigen = symmetric_eigen(gram_of_rows(tall ? transposed(matrix_) : matrix_));
  directions_ = std::move(eigen.vectors);
  for (double value : eigen.values) singular_values_.push_back(std::sqrt(std::max(value, 0.0)));
}

Factors::Pair Factors::truncated(int64_t rank) const {
  LIMBER_ASSERT(rank > 0 && rank <= full_rank());
  Matrix leading(rank, directions_.columns);
  std::copy(directions_.data.begin(), directions_.data.begin() + static_cast<int64_t>(leading.data.size()),
            leading.data.begin());
  Matrix turned = transposed(leading);
  if (matrix_.rows > matrix_.columns) return {product(matrix_, turned), std::move(leading)};
  return {std::move(turned), product(leading, matrix_)};
}

}  // namespace limber
