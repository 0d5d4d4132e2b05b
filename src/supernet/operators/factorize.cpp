#include "supernet/operators/factorize.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace limber {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<const RowMajor> view(const Matrix& m) { return {m.data.data(), m.rows, m.columns}; }
Eigen::Map<RowMajor> view(Matrix& m) { return {m.data.data(), m.rows, m.columns}; }

template <typename Expression>
Matrix matrix_of(const Expression& expression) {
  Matrix m(expression.rows(), expression.cols());
  view(m).noalias() = expression;
  return m;
}

}  // namespace

Matrix transposed(const Matrix& m) { return matrix_of(view(m).transpose()); }

// The only product there is: each combination of orders would be an instantiation of its own, of which each
// takes seconds to compile. Turning a matrix first costs next to nothing beside the product.
Matrix product(const Matrix& a, const Matrix& b) {
  LIMBER_ASSERT(a.columns == b.rows);
  return matrix_of(view(a) * view(b));
}

EigenSystem symmetric_eigen(const Matrix& m) {
  LIMBER_ASSERT(m.rows == m.columns);
  const Eigen::SelfAdjointEigenSolver<RowMajor> solver(view(m));
  EigenSystem result{{}, matrix_of(solver.eigenvectors().rowwise().reverse().transpose())};
  result.values.assign(solver.eigenvalues().begin(), solver.eigenvalues().end());
  std::reverse(result.values.begin(), result.values.end());  // Eigen's ascend
  return result;
}

// Projecting on the leading directions of one side gives the best approximation without dividing by singular
// values, so small ones, which the Gram matrix knows badly, do no harm.
Factors::Factors(Matrix m) : matrix_(std::move(m)) {
  const Matrix turned = transposed(matrix_);
  EigenSystem eigen =
      symmetric_eigen(matrix_.rows > matrix_.columns ? product(turned, matrix_) : product(matrix_, turned));
  directions_ = std::move(eigen.vectors);
  for (double value : eigen.values) singular_values_.push_back(std::sqrt(std::max(value, 0.0)));
}

Factors::Pair Factors::truncated(int64_t rank) const {
  LIMBER_ASSERT(rank > 0 && rank <= full_rank());
  Matrix leading = matrix_of(view(directions_).topRows(rank));
  Matrix turned = transposed(leading);
  if (matrix_.rows > matrix_.columns) return {product(matrix_, turned), std::move(leading)};
  return {std::move(turned), product(leading, matrix_)};
}

}  // namespace limber
