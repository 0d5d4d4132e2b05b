#include "ops/gradients.h"

namespace limber::gradients {
namespace {

// dy of a ConvTranspose without what output padding beyond a stride added: no element of x reaches there.
ValueId without_output_padding(GradientContext& g) {
  const Ints &padding = g.attrs().ints("output_padding"), &strides = g.attrs().ints("strides");
  const Shape shape = g.shape(g.dy());
  Ints pads(2 * static_cast<size_t>(shape.rank()), 0);
  bool crops = false;
  for (size_t i = 0; i < padding.size(); ++i) {
    if (padding[i] < strides[i]) continue;
    pads[static_cast<size_t>(shape.rank()) + 2 + i] = -padding[i];
    crops = true;
  }
  return crops ? g.emit(OpKind::kPad, {g.dy()}, {{"pads", std::move(pads)}}) : g.dy();
}

Ints kernel_of(const Shape& weights) {
  const Ints dims = weights.dims();
  return Ints(dims.begin() + 2, dims.end());
}

}  // namespace

void conv(GradientContext& g) {
  const ValueId dy = before_activation(g);
  g.give(3, dy);
  const Attrs window = without(g.attrs(), {"act", "act_alpha", "act_beta"});
  if (g.wants(1)) {
    Attrs attrs = window;
    attrs.set("kernel", kernel_of(g.shape(g.x(1))));
    const auto made =
        g.emit_all(OpKind::kConvBackwardWeights, {g.x(0), dy}, std::move(attrs), {true, g.wants(2)});
    g.give(1, made[0]);
    g.give(2, made[1]);
  } else if (g.wants(2)) {
    g.give(2, g.sum(dy, axes_except(g.shape(dy).rank(), 1), false));
  }
  if (g.wants(0)) {
    Attrs attrs = window;
    attrs.set("shape", g.shape(g.x(0)));
    g.give(0, g.emit(OpKind::kConvBackwardData, {dy, g.x(1)}, std::move(attrs)));
  }
}

// ConvTranspose is a Conv's gradient: its own gradient is the Conv.
void conv_transpose(GradientContext& g) {
  if (g.wants(2)) g.give(2, g.sum(g.dy(), axes_except(g.shape(g.dy()).rank(), 1), false));
  if (!g.wants(0) && !g.wants(1)) return;
  const ValueId dy = without_output_padding(g);
  const Attrs window = without(g.attrs(), {"output_padding"});
  if (g.wants(1)) {
    Attrs attrs = window;
    attrs.set("kernel", kernel_of(g.shape(g.x(1))));
    g.give(1, g.emit(OpKind::kConvBackwardWeights, {dy, g.x(0)}, std::move(attrs)));
  }
  if (g.wants(0)) g.give(0, g.emit(OpKind::kConv, {dy, g.x(1)}, window));
}

}  // namespace limber::gradients
