// Operators whose number of valid output rows is only known after the run. Rows beyond it are zero.
#include <algorithm>
#include <cmath>

#include "backend/ref/element.h"
#include "backend/ref/factory.h"

namespace limber::ref {
namespace {

struct Box {
  double y0, x0, y1, x1;
  double area() const { return (y1 - y0) * (x1 - x0); }
};

struct Suppression {
  int64_t batches = 0, classes = 0, boxes = 0, max_boxes = 0;
  bool center_point = false;
  double iou_threshold = 0, score_threshold = 0;
  Access<double> box, score;

  // Corners are given in any order.
  Box load_box(const void* data, int64_t i) const {
    const double a = box.load(data, i * 4), b = box.load(data, i * 4 + 1);
    const double c = box.load(data, i * 4 + 2), d = box.load(data, i * 4 + 3);
    if (center_point) return {b - d / 2, a - c / 2, b + d / 2, a + c / 2};
    return {std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};
  }

  bool overlap(const Box& a, const Box& b) const {
    const double height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
    const double width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
    if (height <= 0 || width <= 0 || a.area() <= 0 || b.area() <= 0) return false;
    const double both = height * width;
    return both / (a.area() + b.area() - both) > iou_threshold;
  }
};

// Fills `order` with the boxes that pass the score threshold, best first; ties: lower index first.
int64_t rank_boxes(const Suppression& s, const void* scores, int64_t first, int64_t* order) {
  const bool no_threshold = s.score_threshold == -std::numeric_limits<double>::infinity();
  int64_t count = 0;
  for (int64_t i = 0; i < s.boxes; ++i) {
    const double score = s.score.load(scores, first + i);
    if (score > s.score_threshold || (no_threshold && !std::isnan(score))) order[count++] = i;
  }
  std::sort(order, order + count, [&](int64_t a, int64_t b) {
    const double x = s.score.load(scores, first + a), y = s.score.load(scores, first + b);
    return x > y || (x == y && a < b);
  });
  return count;
}

void suppress(const Suppression& s, const KernelIo& io, int64_t rows) {
  auto* order = static_cast<int64_t*>(io.scratch);
  auto* selected = static_cast<int64_t*>(io.scratch) + s.boxes;
  int64_t row = 0;
  const auto write = [&](int64_t batch, int64_t klass, int64_t box) {
    if (io.outputs[0] != nullptr) {
      const int64_t values[3] = {batch, klass, box};
      std::copy_n(values, 3, io.out<int64_t>(0) + row * 3);
    }
    ++row;
  };
  for (int64_t pair = 0; pair < s.batches * s.classes; ++pair) {
    const int64_t batch = pair / s.classes;
    const int64_t count = rank_boxes(s, io.inputs[1], pair * s.boxes, order);
    int64_t kept = 0;
    for (int64_t i = 0; i < count && kept < s.max_boxes; ++i) {
      const Box box = s.load_box(io.inputs[0], batch * s.boxes + order[i]);
      const bool suppressed = std::any_of(selected, selected + kept, [&](int64_t other) {
        return s.overlap(box, s.load_box(io.inputs[0], batch * s.boxes + other));
      });
      if (suppressed) continue;
      selected[kept++] = order[i];
      write(batch, pair % s.classes, order[i]);
    }
  }
  if (io.outputs[0] != nullptr) std::fill(io.out<int64_t>(0) + row * 3, io.out<int64_t>(0) + rows * 3, 0);
  if (io.outputs.size() > 1 && io.outputs[1] != nullptr) *io.out<int64_t>(1) = row;
}

KernelResult make_non_max_suppression(const NodeView& v) {
  for (int i : {0, 1}) {
    if (!is_float(v.in(i).dtype)) return no_kernel(v, v.in(i).dtype);
  }
  const Dims boxes = v.in_dims(0), scores = v.in_dims(1);
  Suppression s;
  s.batches = scores[0];
  s.classes = scores[1];
  s.boxes = boxes[1];
  s.max_boxes = std::clamp<int64_t>(v.attrs().i("max_boxes"), 0, s.boxes);
  s.center_point = v.attrs().i("center_point_box", 0) != 0;
  s.iou_threshold = v.attrs().f("iou_threshold");
  s.score_threshold = v.attrs().f("score_threshold");
  s.box = access<double>(v.in(0).dtype);
  s.score = access<double>(v.in(1).dtype);
  const int64_t rows = s.batches * s.classes * s.max_boxes;
  return make_kernel([=](const KernelIo& io) { suppress(s, io, rows); },
                     2 * static_cast<size_t>(s.boxes) * sizeof(int64_t));
}

KernelResult make_non_zero(const NodeView& v) {
  const Dims x = v.in_dims(0);
  const bool wants_rows = v.has_out(0), wants_count = v.has_out(1);
  return with_domain(v.in(0).dtype, [&](auto zero) -> KernelResult {
    using C = decltype(zero);
    const auto load = access<C>(v.in(0).dtype).load;
    return make_kernel([=](const KernelIo& io) {
      int64_t i = 0, row = 0;
      walk<0>(x, {}, [&](const Dims& index, const std::array<int64_t, 0>&) {
        if (load(io.inputs[0], i++) == C(0)) return;
        if (wants_rows) std::copy_n(index.at.begin(), x.rank, io.out<int64_t>(0) + row * x.rank);
        ++row;
      });
      if (wants_rows)
        std::fill(io.out<int64_t>(0) + row * x.rank, io.out<int64_t>(0) + x.elements() * x.rank, 0);
      if (wants_count) *io.out<int64_t>(1) = row;
    });
  });
}

}  // namespace

LIMBER_REF_KERNEL(NonMaxSuppression, make_non_max_suppression(v))
LIMBER_REF_KERNEL(NonZero, make_non_zero(v))

}  // namespace limber::ref
