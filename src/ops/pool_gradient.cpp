#include "ops/gradients.h"

namespace limber::gradients {
namespace {

// One window that is all of space.
Attrs global_window(const Shape& x) {
  const Ints dims = x.dims();
  const Ints space(dims.begin() + 2, dims.end());
  return {{"kernel", space}, {"strides", Ints(space.size(), 1)}, {"pads", Ints(2 * space.size(), 0)}};
}

// y^p = sum |x|^p over the window: d|x| / dy is what x and y each contribute here.
ValueId from_y(GradientContext& g, int64_t p) {
  const ValueId y = g.y(), dy = g.dy();
  if (p == 1) return dy;
  const ValueId quotient =
      g.div(dy, p == 2 ? y : g.emit(OpKind::kPow, {y, g.number(static_cast<double>(p - 1), y)}));
  return choose(g, compare(g, OpKind::kEqual, y, 0), g.number(0, y), quotient);
}
ValueId from_x(GradientContext& g, int64_t p) {
  const ValueId x = g.x(0);
  if (p == 2) return x;
  const ValueId sign = g.emit(OpKind::kSign, {x});
  if (p == 1) return sign;
  return g.mul(sign,
               g.emit(OpKind::kPow, {g.emit(OpKind::kAbs, {x}), g.number(static_cast<double>(p - 1), x)}));
}

}  // namespace

void max_pool(GradientContext& g) {
  g.give(0, g.emit(OpKind::kMaxPoolBackward, {g.x(0), g.dy()}, without(g.attrs(), {"storage_order"})));
}

void average_pool(GradientContext& g) {
  Attrs attrs = g.attrs();
  attrs.set("shape", g.shape(g.x(0)));
  g.give(0, g.emit(OpKind::kAveragePoolBackward, {g.dy()}, std::move(attrs)));
}

// A mean that counts the padding, times the size of the window, is a sum.
void lp_pool(GradientContext& g) {
  const int64_t p = g.attrs().i("p");
  Attrs attrs = without(g.attrs(), {"p"});
  attrs.set("shape", g.shape(g.x(0))).set("count_include_pad", int64_t{1});
  double volume = 1;
  for (int64_t k : g.attrs().ints("kernel")) volume *= static_cast<double>(k);
  const ValueId sums =
      g.scale(g.emit(OpKind::kAveragePoolBackward, {from_y(g, p)}, std::move(attrs)), volume);
  g.give(0, g.mul(from_x(g, p), sums));
}

void global_average_pool(GradientContext& g) {
  const Shape x = g.shape(g.x(0));
  Attrs attrs = global_window(x);
  attrs.set("shape", x);
  g.give(0, g.emit(OpKind::kAveragePoolBackward, {g.dy()}, std::move(attrs)));
}

void global_max_pool(GradientContext& g) {
  const Shape x = g.shape(g.x(0));
  Attrs attrs = global_window(x);
  attrs.set("dilations", Ints(static_cast<size_t>(x.rank() - 2), 1));
  g.give(0, g.emit(OpKind::kMaxPoolBackward, {g.x(0), g.dy()}, std::move(attrs)));
}

void global_lp_pool(GradientContext& g) {
  const int64_t p = g.attrs().i("p");
  g.give(0, g.mul(from_x(g, p), from_y(g, p)));
}

}  // namespace limber::gradients
