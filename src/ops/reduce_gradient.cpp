#include "ops/gradients.h"

namespace limber::gradients {
namespace {

// x with 1 on the reduced axes.
Shape reduced_shape(const GradientContext& g) {
  Shape shape = g.shape(g.x(0));
  for (int64_t axis : g.attrs().ints("axes")) shape[static_cast<int>(axis)] = 1;
  return shape;
}

// dy and y such that they broadcast against x.
ValueId kept_dy(GradientContext& g) { return g.reshape(g.dy(), reduced_shape(g)); }
ValueId kept_y(GradientContext& g) { return g.reshape(g.y(), reduced_shape(g)); }

void give_spread(GradientContext& g, ValueId a) { g.give(0, g.expand(a, g.shape(g.x(0)))); }

}  // namespace

void reduce_sum(GradientContext& g) { give_spread(g, kept_dy(g)); }

void reduce_mean(GradientContext& g) {
  double count = 1;
  for (int64_t axis : g.attrs().ints("axes"))
    count *= static_cast<double>(g.shape(g.x(0)).dim(static_cast<int>(axis)));
  give_spread(g, g.scale(kept_dy(g), 1 / count));
}

// Elements that tie share alike.
void reduce_extreme(GradientContext& g) {
  const ValueId x = g.x(0);
  const ValueId hit = g.emit(OpKind::kCast, {g.emit(OpKind::kEqual, {x, kept_y(g)})},
                             {{"to", std::string(dtype_name(g.type(x).dtype))}});
  const ValueId count = g.sum(hit, g.attrs().ints("axes"), true);
  g.give(0, g.mul(hit, g.div(kept_dy(g), count)));
}

void reduce_prod(GradientContext& g) {
  g.give(0, g.emit(OpKind::kProdBackward, {g.x(0), kept_dy(g)}, {{"axes", g.attrs().ints("axes")}}));
}

void reduce_l1(GradientContext& g) { g.give(0, g.mul(g.emit(OpKind::kSign, {g.x(0)}), kept_dy(g))); }

// Zero where everything is zero.
void reduce_l2(GradientContext& g) {
  const ValueId y = kept_y(g), zero = g.number(0, y);
  const ValueId share = choose(g, g.emit(OpKind::kEqual, {y, zero}), zero, g.div(kept_dy(g), y));
  g.give(0, g.mul(g.x(0), share));
}

void reduce_log_sum(GradientContext& g) {
  give_spread(g, g.div(kept_dy(g), g.emit(OpKind::kExp, {kept_y(g)})));
}

void reduce_log_sum_exp(GradientContext& g) {
  g.give(0, g.mul(kept_dy(g), g.emit(OpKind::kExp, {g.sub(g.x(0), kept_y(g))})));
}

void reduce_sum_square(GradientContext& g) { g.give(0, g.mul(g.x(0), g.scale(kept_dy(g), 2))); }

void softmax(GradientContext& g) {
  g.give(0, g.emit(OpKind::kSoftmaxBackward, {g.y(), g.dy()}, {{"axis", g.attrs().i("axis")}}));
}

void log_softmax(GradientContext& g) {
  const ValueId total = g.sum(g.dy(), {g.attrs().i("axis")}, true);
  g.give(0, g.sub(g.dy(), g.mul(g.emit(OpKind::kExp, {g.y()}), total)));
}

void top_k(GradientContext& g) {
  if (g.y(1) == kNoValue) return g.fail(invalid("its output 1 is needed for the gradient but absent"));
  g.give(0, g.emit(OpKind::kScatterElements, {g.zeros(g.type(g.x(0))), g.y(1), g.dy()},
                   {{"axis", g.attrs().i("axis")}}));
}

void cum_sum(GradientContext& g) {
  Attrs attrs = g.attrs();
  attrs.set("reverse", int64_t{attrs.i("reverse", 0) == 0});
  g.give(0, g.emit(OpKind::kCumSum, {g.dy()}, std::move(attrs)));
}

}  // namespace limber::gradients
