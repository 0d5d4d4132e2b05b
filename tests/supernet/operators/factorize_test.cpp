#include "supernet/operators/factorize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace limber {
namespace {

Matrix random_matrix(int64_t rows, int64_t columns, uint64_t seed) {
  Matrix m(rows, columns);
  Random random(seed);
  for (double& x : m.data) x = random.uniform(-1, 1);
  return m;
}

Matrix symmetric_matrix(int64_t n, uint64_t seed) {
  Matrix m = random_matrix(n, n, seed);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) m.at(i, j) = m.at(j, i);
  }
  return m;
}

double squared_distance(const Matrix& a, const Matrix& b) {
  double sum = 0;
  for (size_t i = 0; i < a.data.size(); ++i) sum += (a.data[i] - b.data[i]) * (a.data[i] - b.data[i]);
  return sum;
}

void expect_identity(const Matrix& m) {
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < m.columns; ++j) ASSERT_NEAR(m.at(i, j), i == j ? 1 : 0, 1e-11);
  }
}

TEST(SymmetricEigen, VectorsAreOrthonormalAndRebuildTheMatrix) {
  for (const int64_t n : {1, 2, 3, 4, 9, 33, 80}) {
    const Matrix m = symmetric_matrix(n, static_cast<uint64_t>(n));
    const EigenSystem eigen = symmetric_eigen(m);
    expect_identity(product(eigen.vectors, transposed(eigen.vectors)));
    Matrix scaled = eigen.vectors;
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_TRUE(i == 0 || eigen.values[static_cast<size_t>(i - 1)] >= eigen.values[static_cast<size_t>(i)]);
      for (int64_t j = 0; j < n; ++j) scaled.at(i, j) *= eigen.values[static_cast<size_t>(i)];
    }
    EXPECT_LE(squared_distance(product(transposed(eigen.vectors), scaled), m),
              1e-20 * static_cast<double>(n * n));
  }
}

TEST(SymmetricEigen, DegenerateMatrices) {
  const Matrix none = symmetric_eigen(Matrix(5, 5)).vectors;
  expect_identity(product(none, transposed(none)));
  Matrix ones(6, 6);
  for (double& x : ones.data) x = 1;
  const EigenSystem eigen = symmetric_eigen(ones);
  EXPECT_NEAR(eigen.values[0], 6, 1e-12);
  for (size_t i = 1; i < 6; ++i) EXPECT_NEAR(eigen.values[i], 0, 1e-12);
  expect_identity(product(eigen.vectors, transposed(eigen.vectors)));
}

TEST(Factors, FullRankIsTheMatrix) {
  for (const auto& [rows, columns] : {std::pair{7, 20}, {20, 7}, {12, 12}, {1, 5}, {5, 1}}) {
    const Matrix m = random_matrix(rows, columns, 3);
    const Factors factors(m);
    const auto pair = factors.truncated(factors.full_rank());
    EXPECT_LE(squared_distance(product(pair.left, pair.right), m), 1e-20);
  }
}

TEST(Factors, TruncationLosesTheSmallestSingularValues) {
  const Matrix m = random_matrix(15, 40, 4);
  const Factors factors(m);
  for (const int64_t rank : {1, 4, 9, 14}) {
    const auto pair = factors.truncated(rank);
    double lost = 0;
    for (size_t i = static_cast<size_t>(rank); i < 15; ++i)
      lost += factors.singular_values()[i] * factors.singular_values()[i];
    EXPECT_NEAR(squared_distance(product(pair.left, pair.right), m), lost, 1e-9);
  }
}

TEST(Factors, NoNearbyFactorsAreBetter) {
  const Matrix m = random_matrix(10, 14, 5);
  const auto best = Factors(m).truncated(3);
  const double least = squared_distance(product(best.left, best.right), m);
  Random random(6);
  for (int i = 0; i < 50; ++i) {
    auto other = best;
    for (double& x : other.left.data) x += 1e-3 * random.normal();
    for (double& x : other.right.data) x += 1e-3 * random.normal();
    EXPECT_GE(squared_distance(product(other.left, other.right), m), least);
  }
}

TEST(Factors, AMatrixOfLowRankNeedsNoMore) {
  const Matrix m = product(random_matrix(30, 4, 7), random_matrix(4, 25, 8));
  const auto pair = Factors(m).truncated(4);
  EXPECT_LE(squared_distance(product(pair.left, pair.right), m), 1e-18);
}

}  // namespace
}  // namespace limber
