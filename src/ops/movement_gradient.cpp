#include <algorithm>

#include "ops/gradients.h"
#include "ops/slice.h"

namespace limber::gradients {
namespace {

// The sum of what was taken from each place of an axis of this size.
ValueId gather_backward(GradientContext& g, ValueId dy, int axis, int64_t size, const Ints& indices) {
  Shape shape = g.shape(dy);
  shape[axis] = size;
  return g.emit(OpKind::kGatherBackward, {dy, index_constant(g, indices)},
                {{"shape", shape}, {"axis", int64_t{axis}}});
}

// Where the element at `at` of an axis padded in this mode comes from; `at` is relative to its start.
int64_t pad_source(const std::string& mode, int64_t at, int64_t size) {
  if (at >= 0 && at < size) return at;
  if (mode == "edge" || size == 1) return at < 0 ? 0 : size - 1;
  const int64_t period = mode == "wrap" ? size : 2 * (size - 1);
  const int64_t phase = (at % period + period) % period;
  return phase < size ? phase : period - phase;
}

ValueId pad_backward(GradientContext& g, const std::string& mode, const Ints& pads) {
  const Shape x = g.shape(g.x(0)), y = g.shape(g.y());
  ValueId dy = g.dy();
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t begin = pads[static_cast<size_t>(axis)];
    if (begin == 0 && pads[pads.size() / 2 + static_cast<size_t>(axis)] == 0) continue;
    Ints indices(static_cast<size_t>(y.dim(axis)));
    for (size_t i = 0; i < indices.size(); ++i)
      indices[i] = pad_source(mode, static_cast<int64_t>(i) - begin, x.dim(axis));
    dy = gather_backward(g, dy, axis, x.dim(axis), indices);
  }
  return dy;
}

}  // namespace

void reshape(GradientContext& g) { g.give(0, g.reshape(g.dy(), g.shape(g.x(0)))); }

void transpose(GradientContext& g) {
  const Ints& perm = g.attrs().ints("perm");
  Ints inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  g.give(0, g.emit(OpKind::kTranspose, {g.dy()}, {{"perm", std::move(inverse)}}));
}

void expand(GradientContext& g) { g.give(0, g.dy()); }

// Axis by axis, so that the rank stays small.
void tile(GradientContext& g) {
  const Shape x = g.shape(g.x(0));
  const Ints& repeats = g.attrs().ints("repeats");
  ValueId dy = g.dy();
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t count = repeats[static_cast<size_t>(axis)];
    if (count == 1) continue;
    Shape to = g.shape(dy);
    int64_t before = 1, after = 1;
    for (int i = 0; i < axis; ++i) before *= to.dim(i);
    for (int i = axis + 1; i < to.rank(); ++i) after *= to.dim(i);
    to[axis] = x[axis];
    dy = g.sum(g.reshape(dy, Shape{before, count, x[axis], after}), {1}, false);
    dy = g.reshape(dy, to);
  }
  g.give(0, dy);
}

void concat(GradientContext& g) {
  const int64_t axis = g.attrs().i("axis");
  int64_t start = 0;
  for (size_t i = 0; i < g.node().inputs.size(); ++i) {
    const int64_t end = start + g.shape(g.x(i)).dim(static_cast<int>(axis));
    if (g.wants(i)) {
      g.give(
          i,
          g.emit(OpKind::kSlice, {g.dy()},
                 {{"axes", Ints{axis}}, {"starts", Ints{start}}, {"ends", Ints{end}}, {"steps", Ints{1}}}));
    }
    start = end;
  }
}

void split(GradientContext& g) {
  const int64_t axis = g.attrs().i("axis");
  const Ints& sizes = g.attrs().ints("sizes");
  TensorType part = g.type(g.x(0));
  std::vector<ValueId> parts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    part.shape[static_cast<int>(axis)] = sizes[i];
    parts.push_back(g.dy(i) == kNoValue ? g.zeros(part) : g.dy(i));
  }
  g.give(0, g.emit(OpKind::kConcat, std::move(parts), {{"axis", axis}}));
}

// Padding for axes that are cut, a scatter for those that are stepped over.
void slice(GradientContext& g) {
  const Shape x = g.shape(g.x(0));
  const Ints &axes = g.attrs().ints("axes"), &starts = g.attrs().ints("starts"),
             &ends = g.attrs().ints("ends"), &steps = g.attrs().ints("steps");
  Ints pads(2 * static_cast<size_t>(x.rank()), 0);
  ValueId dy = g.dy();
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<int>(axes[i]);
    const SliceRange range = slice_range(x.dim(axis), starts[i], ends[i], steps[i]);
    if (range.step == 1 || range.count == 0) {
      pads[static_cast<size_t>(axis)] = range.start;
      pads[pads.size() / 2 + static_cast<size_t>(axis)] = x.dim(axis) - range.start - range.count;
      continue;
    }
    Ints indices(static_cast<size_t>(range.count));
    for (size_t k = 0; k < indices.size(); ++k)
      indices[k] = range.start + static_cast<int64_t>(k) * range.step;
    dy = gather_backward(g, dy, axis, x.dim(axis), indices);
  }
  const bool pads_any = std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; });
  g.give(0, pads_any ? g.emit(OpKind::kPad, {dy}, {{"pads", std::move(pads)}}) : dy);
}

void pad(GradientContext& g) {
  Ints pads = g.attrs().ints("pads");
  const std::string mode = g.attrs().s("mode", "constant");
  if (mode != "constant") return g.give(0, pad_backward(g, mode, pads));
  for (int64_t& p : pads) p = -p;
  g.give(0, g.emit(OpKind::kPad, {g.dy()}, {{"pads", std::move(pads)}}));
}

void trilu(GradientContext& g) { g.give(0, g.emit(OpKind::kTrilu, {g.dy()}, g.attrs())); }

void reverse_sequence(GradientContext& g) {
  g.give(0, g.emit(OpKind::kReverseSequence, {g.dy(), g.x(1)}, g.attrs()));
}

void depth_to_space(GradientContext& g) {
  const int64_t block = g.attrs().i("blocksize");
  if (g.attrs().s("mode", "DCR") == "DCR")
    return g.give(0, g.emit(OpKind::kSpaceToDepth, {g.dy()}, {{"blocksize", block}}));
  const Shape x = g.shape(g.x(0)), y = g.shape(g.y());
  const ValueId blocks = g.reshape(g.dy(), Shape{x[0], y[1], x[2], block, x[3], block});
  g.give(0, g.reshape(g.emit(OpKind::kTranspose, {blocks}, {{"perm", Ints{0, 1, 3, 5, 2, 4}}}), x));
}

void space_to_depth(GradientContext& g) {
  g.give(0, g.emit(OpKind::kDepthToSpace, {g.dy()}, {{"blocksize", g.attrs().i("blocksize")}}));
}

void resize(GradientContext& g) {
  Attrs attrs = g.attrs();
  attrs.set("shape", g.shape(g.x(0)));
  g.give(0, g.emit(OpKind::kResizeBackward, {g.dy()}, std::move(attrs)));
}

}  // namespace limber::gradients
