#include <algorithm>

#include "ops/gradients.h"

namespace limber::gradients {
namespace {

// y = alpha * op(a) op(b), with operands of rank two or more.
struct Product {
  ValueId a, b, dy;
  bool trans_a, trans_b;
  double alpha;
};

ValueId product(GradientContext& g, ValueId a, ValueId b, bool trans_a, bool trans_b, double alpha) {
  Attrs attrs;
  if (trans_a) attrs.set("trans_a", int64_t{1});
  if (trans_b) attrs.set("trans_b", int64_t{1});
  if (alpha != 1) attrs.set("alpha", alpha);
  return g.emit(OpKind::kMatMul, {a, b}, std::move(attrs));
}

int64_t batches(const Shape& shape) {
  int64_t count = 1;
  for (int i = 0; i < shape.rank() - 2; ++i) count *= shape.dim(i);
  return count;
}

ValueId swap_last_axes(GradientContext& g, ValueId v) {
  const int rank = g.shape(v).rank();
  Ints perm(static_cast<size_t>(std::max(rank, 2)));
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return g.emit(OpKind::kTranspose, {v}, {{"perm", std::move(perm)}});
}

// [.., M, K] as one matrix.
ValueId as_matrix(GradientContext& g, ValueId v) {
  const Shape shape = g.shape(v);
  const int64_t columns = shape.dim(shape.rank() - 1);
  int64_t rows = 1;
  for (int i = 0; i < shape.rank() - 1; ++i) rows *= shape.dim(i);
  return g.reshape(v, Shape{rows, columns});
}

ValueId left_gradient(GradientContext& g, const Product& p) {
  if (p.trans_a) return product(g, p.b, p.dy, p.trans_b, true, p.alpha);
  return product(g, p.dy, p.b, false, !p.trans_b, p.alpha);
}

// For a single matrix b all rows of a are one long contraction.
ValueId right_gradient(GradientContext& g, Product p) {
  if (batches(g.shape(p.b)) == 1 && batches(g.shape(p.a)) > 1) {
    if (p.trans_a) p.a = swap_last_axes(g, p.a);
    p.trans_a = false;
    p.a = as_matrix(g, p.a);
    p.dy = as_matrix(g, p.dy);
  }
  if (p.trans_b) return product(g, p.dy, p.a, true, p.trans_a, p.alpha);
  return product(g, p.a, p.dy, !p.trans_a, false, p.alpha);
}

// Vectors become matrices of one row (a) or column (b), those that the other one's gradient needs.
Product as_matrices(GradientContext& g, ValueId dy) {
  Product p{g.x(0),
            g.x(1),
            dy,
            g.attrs().i("trans_a", 0) == 1,
            g.attrs().i("trans_b", 0) == 1,
            g.attrs().f("alpha", 1)};
  const Shape a = g.shape(p.a), b = g.shape(p.b);
  if (a.rank() > 1 && b.rank() > 1) return p;
  const Shape of_y = g.shape(dy);
  std::vector<Dim> y(of_y.begin(), of_y.end());
  if (b.rank() == 1) y.emplace_back(1);
  if (a.rank() == 1) y.insert(y.end() - 1, Dim(1));
  p.dy = g.reshape(dy, Shape(std::move(y)));
  if (a.rank() == 1 && g.wants(1)) p.a = g.reshape(p.a, Shape{1, a[0]});
  if (b.rank() == 1 && g.wants(0)) p.b = g.reshape(p.b, Shape{b[0], 1});
  return p;
}

// The column of a vector is no axis to sum over.
ValueId as_operand(GradientContext& g, ValueId gradient, const Shape& b) {
  if (b.rank() != 1) return gradient;
  return g.reshape(g.sum_to(gradient, Shape{b[0], 1}), b);
}

void give_product(GradientContext& g, ValueId dy) {
  if (!g.wants(0) && !g.wants(1)) return;
  const Product p = as_matrices(g, dy);
  if (g.wants(0)) g.give(0, left_gradient(g, p));
  if (g.wants(1)) g.give(1, as_operand(g, right_gradient(g, p), g.shape(g.x(1))));
}

}  // namespace

void gemm(GradientContext& g) {
  give_product(g, g.dy());
  if (g.wants(2)) g.give(2, g.scale(g.dy(), g.attrs().f("beta", 1)));
}

void matmul(GradientContext& g) {
  const ValueId dy = before_activation(g);
  give_product(g, dy);
  g.give(2, dy);
  g.give(3, dy);
}

// The probabilities are computed anew.
void attention(GradientContext& g) {
  const ValueId q = g.x(0), k = g.x(1), v = g.x(2), dy = g.dy();
  const double scale = g.attrs().f("scale");
  std::vector<ValueId> scores = {q, k};
  if (g.has(3)) scores.push_back(g.x(3));
  const Attrs along_keys{{"axis", int64_t{g.shape(q).rank() - 1}}};
  const ValueId weights = g.emit(
      OpKind::kSoftmax,
      {g.emit(OpKind::kMatMul, std::move(scores), {{"trans_b", int64_t{1}}, {"alpha", scale}})}, along_keys);
  if (g.wants(2)) g.give(2, product(g, weights, dy, true, false, 1));
  if (!g.wants(0) && !g.wants(1) && !g.wants(3)) return;
  const ValueId dweights = product(g, dy, v, false, true, 1);
  const ValueId dscores = g.emit(OpKind::kSoftmaxBackward, {weights, dweights}, along_keys);
  g.give(3, dscores);
  if (g.wants(0)) g.give(0, product(g, dscores, k, false, false, scale));
  if (g.wants(1)) g.give(1, product(g, dscores, q, true, false, scale));
}

}  // namespace limber::gradients
