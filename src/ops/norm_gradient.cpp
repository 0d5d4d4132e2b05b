#include "ops/gradients.h"

namespace limber::gradients {
namespace {

bool has_output(const GradientContext& g, size_t output) {
  return output < g.node().outputs.size() && g.y(output) != kNoValue;
}

// Only the first output may carry a gradient, and these two must be there.
bool check_statistics(GradientContext& g, size_t first, size_t second) {
  for (size_t i = 1; i < g.node().outputs.size(); ++i) {
    if (g.dy(i) != kNoValue) g.fail(unsupported("the loss depends on its statistics (output {})", i));
  }
  if (!has_output(g, first) || !has_output(g, second))
    g.fail(invalid("its outputs {} and {} are needed for the gradient but absent", first, second));
  return g.status().ok();
}

// A vector of channels that broadcasts over x[N,C,..].
ValueId per_channel(GradientContext& g, ValueId v, int rank) {
  Shape shape(std::vector<Dim>(static_cast<size_t>(rank), Dim(1)));
  shape[1] = g.shape(v)[0];
  return g.reshape(v, shape);
}

// Every group of channels of every image is a row of its own.
void group_norm(GradientContext& g, int64_t groups) {
  const ValueId x = g.x(0), scale = g.x(1), dy = g.dy();
  const Shape shape = g.shape(x);
  if (g.wants(2)) g.give(2, g.sum(dy, axes_except(shape.rank(), 1), false));
  if (!g.wants(0) && !g.wants(1)) return;
  const int64_t rows = shape.dim(0) * groups;
  const Shape by_row{shape.dim(0), groups, rows == 0 ? 0 : shape.elements() / rows};
  const Attrs axis{{"axis", int64_t{2}}};
  Attrs norm = axis;
  norm.set("epsilon", g.attrs().f("epsilon"));
  const ValueId row = g.reshape(x, by_row);
  const auto made = g.emit_all(OpKind::kLayerNorm, {row}, norm, {true, true, true});
  const ValueId mean = made[1], inv_std = made[2];
  if (g.wants(1)) g.give(1, g.sum(g.mul(dy, g.reshape(made[0], shape)), axes_except(shape.rank(), 1), false));
  if (g.wants(0)) {
    const ValueId scaled = g.reshape(g.mul(dy, per_channel(g, scale, shape.rank())), by_row);
    const auto dx = g.emit(OpKind::kLayerNormBackward, {row, scaled, mean, inv_std}, axis);
    g.give(0, g.reshape(dx, shape));
  }
}

}  // namespace

// Also towards the mean and the variance, which here are inputs like any other.
void batch_norm(GradientContext& g) {
  const ValueId scale = g.x(1), bias = g.x(2), mean = g.x(3), variance = g.x(4);
  const ValueId shifted = g.add(variance, g.number(g.attrs().f("epsilon"), variance));
  const ValueId inv_std = g.emit(OpKind::kReciprocal, {g.emit(OpKind::kSqrt, {shifted})});
  const auto made =
      g.emit_all(OpKind::kBatchNormBackward, {g.x(0), g.dy(), scale, bias, mean, inv_std},
                 {{"frozen", int64_t{1}}}, {g.wants(0), g.wants(1) || g.wants(4), g.wants(2) || g.wants(3)});
  for (size_t i = 0; i < 3; ++i) g.give(i, made[i]);
  if (!g.wants(3) && !g.wants(4)) return;
  const ValueId factor = g.mul(scale, inv_std);
  if (g.wants(3)) g.give(3, g.neg(g.mul(made[2], factor)));
  if (g.wants(4)) g.give(4, g.scale(g.mul(made[1], g.mul(factor, inv_std)), -0.5));
}

// The running statistics do not influence y.
void batch_norm_training(GradientContext& g) {
  if (!check_statistics(g, 3, 4)) return;
  Attrs attrs;
  if (g.attrs().has("act")) attrs.set("act", g.attrs().s("act"));
  const auto made = g.emit_all(OpKind::kBatchNormBackward, {g.x(0), g.dy(), g.x(1), g.x(2), g.y(3), g.y(4)},
                               std::move(attrs), {g.wants(0), g.wants(1), g.wants(2)});
  for (size_t i = 0; i < 3; ++i) g.give(i, made[i]);
}

void layer_norm(GradientContext& g) {
  if (!check_statistics(g, 1, 2)) return;
  std::vector<ValueId> inputs = {g.x(0), g.dy(), g.y(1), g.y(2)};
  if (g.has(1)) inputs.push_back(g.x(1));
  const auto made = g.emit_all(OpKind::kLayerNormBackward, std::move(inputs), {{"axis", g.attrs().i("axis")}},
                               {g.wants(0), g.wants(1), g.wants(2)});
  for (size_t i = 0; i < 3; ++i) g.give(i, made[i]);
}

void instance_norm(GradientContext& g) { group_norm(g, g.shape(g.x(0)).dim(1)); }
void group_norm(GradientContext& g) { group_norm(g, g.attrs().i("groups")); }

// y = x * d^-beta with d = bias + alpha * (mean of x^2 over a window of channels, zeros beyond the ends).
void lrn(GradientContext& g) {
  const ValueId x = g.x(0);
  const Shape shape = g.shape(x);
  const int64_t size = g.attrs().i("size"), channels = shape.dim(1);
  const double alpha = g.attrs().f("alpha"), beta = g.attrs().f("beta");
  int64_t plane = 1;
  for (int i = 2; i < shape.rank(); ++i) plane *= shape.dim(i);
  const Shape planes{shape.dim(0), 1, channels, plane};
  Attrs window{{"kernel", Ints{size, 1}},
               {"strides", Ints{1, 1}},
               {"pads", Ints{(size - 1) / 2, 0, size / 2, 0}},
               {"count_include_pad", int64_t{1}}};
  const ValueId mean = g.emit(OpKind::kAveragePool, {g.reshape(square(g, x), planes)}, window);
  const ValueId d = g.add(g.scale(g.reshape(mean, shape), alpha), g.number(g.attrs().f("bias"), x));
  const ValueId direct = g.mul(g.dy(), g.emit(OpKind::kPow, {d, g.number(-beta, x)}));
  const ValueId per_window = g.reshape(g.div(g.mul(g.dy(), g.y()), d), planes);
  window.set("shape", planes);
  const ValueId spread = g.reshape(g.emit(OpKind::kAveragePoolBackward, {per_window}, window), shape);
  g.give(0, g.sub(direct, g.scale(g.mul(x, spread), 2 * alpha * beta)));
}

// A line of zeros has no gradient.
void lp_norm(GradientContext& g) {
  const bool l1 = g.attrs().i("p") == 1;
  const Ints axis = {g.attrs().i("axis")};
  const ValueId x = g.x(0), y = g.y(), dy = g.dy();
  const ValueId norm =
      g.emit(l1 ? OpKind::kReduceL1 : OpKind::kReduceL2, {x}, {{"axes", axis}, {"keepdims", int64_t{1}}});
  const ValueId direction = l1 ? g.emit(OpKind::kSign, {x}) : y;
  const ValueId along = g.mul(direction, g.sum(g.mul(dy, y), axis, true));
  const ValueId dx = g.div(g.sub(dy, along), norm);
  g.give(0, choose(g, compare(g, OpKind::kEqual, norm, 0), g.number(0, x), dx));
}

}  // namespace limber::gradients
