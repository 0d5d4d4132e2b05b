// Control flow, detection and what is lowered to several operators.
#include <array>
#include <limits>

#include "io/importer.h"

namespace limber::onnx_io {
namespace {

// Importer::run_converter inlines the branch; a converter cannot.
Status branch(NodeContext&) { LIMBER_UNREACHABLE(); }

Result<double> threshold(NodeContext& c, int input, const char* what, double fallback) {
  if (!c.has(input)) return fallback;
  LIMBER_ASSIGN(const auto values, c.floats(input, what));
  if (values.size() != 1) return corrupt("{} has {} elements, expected one", what, values.size());
  return values[0];
}

Status non_max_suppression(NodeContext& c) {
  int64_t max_boxes = 0;
  if (c.has(2)) {
    LIMBER_ASSIGN(max_boxes, c.one_int(2, "max_output_boxes_per_class"));
  }
  if (max_boxes < 0) return corrupt("max_output_boxes_per_class is {}", max_boxes);
  LIMBER_ASSIGN(const double iou, threshold(c, 3, "iou_threshold", 0));
  LIMBER_ASSIGN(const double score,
                threshold(c, 4, "score_threshold", -std::numeric_limits<double>::infinity()));
  const Attrs attrs{{"center_point_box", c.i("center_point_box", 0)},
                    {"max_boxes", max_boxes},
                    {"iou_threshold", iou},
                    {"score_threshold", score}};
  LIMBER_ASSIGN(const auto results, c.emit_all(OpKind::kNonMaxSuppression, {c.in(0), c.in(1)}, attrs, 2));
  c.set(0, results[0], results[1]);
  return {};
}

Status non_zero(NodeContext& c) {
  LIMBER_ASSIGN(const auto results, c.emit_all(OpKind::kNonZero, {c.in(0)}, {}, 2));
  c.set(0, results[0], results[1], true);
  return {};
}

// What MaxPool read, with everything it did not choose as zero. Indices count in the shape that the
// window gives; an output_shape that is larger adds zeros at the ends.
Status max_unpool(NodeContext& c) {
  const TensorType x = c.type(0);
  const auto spatial = static_cast<size_t>(std::max(x.rank() - 2, 0));
  std::vector<int64_t> kernel = c.ints("kernel_shape"), strides = c.ints("strides"), pads = c.ints("pads");
  if (strides.empty()) strides.assign(spatial, 1);
  if (pads.empty()) pads.assign(2 * spatial, 0);
  if (spatial == 0 || kernel.size() != spatial || strides.size() != spatial || pads.size() != 2 * spatial) {
    return corrupt("the window does not fit {}", x.to_string());
  }
  for (const auto* numbers : {&kernel, &strides, &pads}) {
    for (int64_t n : *numbers) {
      if (n < 0 || n > kMaxWindow) return corrupt("kernel_shape, strides or pads hold {}", n);
    }
  }
  Shape shape{x.shape[0], x.shape[1]};
  for (size_t i = 0; i < spatial; ++i) {
    const Dim fixed(kernel[i] - strides[i] - pads[i] - pads[spatial + i]);
    const auto grown = mul(x.shape[static_cast<int>(i) + 2], Dim(strides[i]));
    const auto dim = grown ? add(*grown, fixed) : std::nullopt;
    if (!dim || (dim->is_constant() && dim->value() < 0))
      return corrupt("the window does not fit {}", x.to_string());
    shape.push_back(*dim);
  }
  const auto from = product(x.shape, 0, x.rank()), to = product(shape, 0, shape.rank());
  if (!from || !to) return unsupported("several symbolic dimensions in {}", x.to_string());
  LIMBER_ASSIGN(const ValueId zeros,
                c.emit(OpKind::kExpand, {c.scalar(0, x.dtype)}, {{"shape", Shape{*to}}}));
  LIMBER_ASSIGN(const ValueId indices, c.reshape(c.in(1), Shape{*from}));
  LIMBER_ASSIGN(const ValueId values, c.reshape(c.in(0), Shape{*from}));
  const Attrs attrs{{"axis", int64_t{0}}, {"reduction", std::string("none")}};
  LIMBER_ASSIGN(ValueId y, c.emit(OpKind::kScatterElements, {zeros, indices, values}, attrs));
  LIMBER_ASSIGN(y, c.reshape(y, shape));
  if (c.has(2)) {
    LIMBER_ASSIGN(const auto wanted, c.dims(2, "output_shape"));
    if (static_cast<int>(wanted.size()) != shape.rank())
      return corrupt("output_shape has {} entries", wanted.size());
    std::vector<int64_t> amounts(2 * wanted.size(), 0);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const auto extra = sub(wanted[i], shape[static_cast<int>(i)]);
      if (!extra) return unsupported("a symbolic output_shape");
      LIMBER_ASSIGN(amounts[wanted.size() + i], c.constant_dim(*extra, "output_shape"));
    }
    LIMBER_ASSIGN(y, c.emit(OpKind::kPad, {y}, {{"pads", amounts}, {"mode", std::string("constant")}}));
  }
  c.set(0, y);
  return {};
}

constexpr auto kOtherTable = std::to_array<Converter>({
    {"If", 1, 1, -1, 1, kAny, branch},
    {"MaxUnpool", 2, 3, 1, 9, kAny, max_unpool},
    {"NonMaxSuppression", 2, 5, 1, 10, kAny, non_max_suppression},
    {"NonZero", 1, 1, 1, 9, kAny, non_zero},
});

}  // namespace

std::span<const Converter> other_converters() { return kOtherTable; }

}  // namespace limber::onnx_io
