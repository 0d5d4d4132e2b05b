// Resize and Upsample.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "io/importer.h"

namespace limber::onnx_io {
namespace {

struct Target {
  Shape shape;
  std::vector<double> scales;
};

// floor(dim * scale), also of a symbolic dimension when the scale is an integer.
Result<Dim> scaled_dim(NodeContext& c, const Dim& dim, double scale) {
  if (!(scale > 0) || !(scale <= 1e6)) return corrupt("a scale of {}", scale);
  if (scale == 1) return dim;
  if (!dim.is_constant() && scale == std::trunc(scale)) {
    const auto result = mul(dim, Dim(static_cast<int64_t>(scale)));
    if (result) return *result;
  }
  LIMBER_ASSIGN(const int64_t n, c.constant_dim(dim, "a dimension to resize"));
  const double size = std::floor(static_cast<double>(n) * scale);
  if (!(size < 0x1p40)) return error(Code::kResourceExhausted, "a dimension of {}", size);
  return Dim(static_cast<int64_t>(size));
}

Result<Target> from_scales(NodeContext& c, const std::vector<double>& scales) {
  Target target{.shape = {}, .scales = scales};
  for (int i = 0; i < c.rank(0); ++i) {
    LIMBER_ASSIGN(const Dim dim, scaled_dim(c, c.type(0).shape[i], scales[static_cast<size_t>(i)]));
    target.shape.push_back(dim);
  }
  return target;
}

Result<Target> from_sizes(NodeContext& c, const std::vector<Dim>& sizes) {
  Target target{.shape = Shape(sizes), .scales = {}};
  for (int i = 0; i < c.rank(0); ++i) {
    const Dim from = c.type(0).shape[i], to = sizes[static_cast<size_t>(i)];
    const auto ratio = div_exact(to, from);
    if (ratio && ratio->is_constant()) {
      target.scales.push_back(static_cast<double>(ratio->value()));
      continue;
    }
    LIMBER_ASSIGN(const int64_t n, c.constant_dim(from, "a dimension to resize"));
    LIMBER_ASSIGN(const int64_t m, c.constant_dim(to, "a size"));
    if (m < 0 || n == 0) return corrupt("resizing a dimension of {} to {}", n, m);
    target.scales.push_back(static_cast<double>(m) / static_cast<double>(n));
  }
  return target;
}

// Keeps the aspect ratio: one scale for all axes that are resized.
Result<Target> keep_aspect(NodeContext& c, Target target, const std::vector<int64_t>& axes, bool larger) {
  double scale = target.scales[static_cast<size_t>(axes[0])];
  for (int64_t axis : axes) {
    const double s = target.scales[static_cast<size_t>(axis)];
    scale = larger ? std::max(scale, s) : std::min(scale, s);
  }
  for (int64_t axis : axes) {
    LIMBER_ASSIGN(const int64_t n,
                  c.constant_dim(c.type(0).shape[static_cast<int>(axis)], "a dimension to resize"));
    const double size = std::floor(static_cast<double>(n) * scale + 0.5);
    if (!(size < 0x1p40)) return error(Code::kResourceExhausted, "a dimension of {}", size);
    target.shape[static_cast<int>(axis)] = Dim(static_cast<int64_t>(size));
    target.scales[static_cast<size_t>(axis)] = scale;
  }
  return target;
}

// Values given for `axes` only, as one per axis.
template <typename T>
Result<std::vector<T>> spread(const std::vector<T>& values, const std::vector<int64_t>& axes,
                              std::vector<T> all) {
  if (values.size() != axes.size()) return corrupt("{} values for {} axes", values.size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i) all[static_cast<size_t>(axes[i])] = values[i];
  return all;
}

Result<std::vector<int64_t>> resized_axes(NodeContext& c) {
  std::vector<int64_t> axes = c.ints("axes");
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(c.rank(0)));
    std::iota(axes.begin(), axes.end(), 0);
  }
  LIMBER_TRY(normal_axes(axes, c.rank(0)).status());
  for (int64_t& axis : axes) {
    LIMBER_ASSIGN(axis, normal_axis(axis, c.rank(0)));
  }
  return axes;
}

Result<Target> resize_target(NodeContext& c, const std::vector<int64_t>& axes) {
  std::vector<double> scales;
  if (c.has(2)) {
    LIMBER_ASSIGN(scales, c.floats(2, "scales"));
  }
  const auto rank = static_cast<size_t>(c.rank(0));
  if (!scales.empty()) {
    LIMBER_ASSIGN(const auto all, spread(scales, axes, std::vector<double>(rank, 1)));
    return from_scales(c, all);
  }
  if (!c.has(3)) return corrupt("it has neither scales nor sizes");
  LIMBER_ASSIGN(const auto sizes, c.dims(3, "sizes"));
  const Shape& x = c.type(0).shape;
  LIMBER_ASSIGN(const auto all, spread(sizes, axes, std::vector<Dim>(x.begin(), x.end())));
  LIMBER_ASSIGN(Target target, from_sizes(c, all));
  const std::string policy = c.s("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || axes.empty()) return target;
  return keep_aspect(c, std::move(target), axes, policy == "not_smaller");
}

// roi as starts of all axes, then ends; [0, 1] for axes that are not named.
Result<std::vector<double>> region(NodeContext& c, const std::vector<int64_t>& axes) {
  if (!c.has(1)) return corrupt("tf_crop_and_resize without roi");
  LIMBER_ASSIGN(const auto roi, c.floats(1, "roi"));
  if (roi.size() != 2 * axes.size()) return corrupt("roi has {} values for {} axes", roi.size(), axes.size());
  const auto rank = static_cast<size_t>(c.rank(0));
  std::vector<double> all(rank, 0);
  all.resize(2 * rank, 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    all[static_cast<size_t>(axes[i])] = roi[i];
    all[rank + static_cast<size_t>(axes[i])] = roi[axes.size() + i];
  }
  return all;
}

Result<std::string> one_of(const std::string& name, const std::string& value,
                           std::span<const char* const> known) {
  const auto it = std::find(known.begin(), known.end(), value);
  if (it != known.end()) return value;
  return unsupported("{} '{}'", name, value);
}

// Resize before opset 11, and Upsample: scales only, coordinates by the simplest rule.
Status old_resize(NodeContext& c, const std::vector<double>& scales) {
  if (scales.size() != static_cast<size_t>(c.rank(0))) {
    return corrupt("{} scales of a tensor of rank {}", scales.size(), c.rank(0));
  }
  std::string mode = c.s("mode", "nearest");
  if (mode == "bilinear" || mode == "trilinear") mode = "linear";
  LIMBER_ASSIGN(mode, one_of("mode", mode, std::array{"nearest", "linear"}));
  LIMBER_ASSIGN(const Target target, from_scales(c, scales));
  const Attrs attrs{{"shape", target.shape},
                    {"scales", target.scales},
                    {"mode", mode},
                    {"coordinates", std::string("asymmetric")},
                    {"nearest", std::string("floor")}};
  LIMBER_ASSIGN(const ValueId y, c.emit(OpKind::kResize, {c.in(0)}, attrs));
  c.set(0, y);
  return {};
}

Status upsample(NodeContext& c) {
  if (c.version < 7) return old_resize(c, {1, 1, c.f("height_scale", 1), c.f("width_scale", 1)});
  if (c.version < 9) return old_resize(c, c.floats("scales"));
  if (!c.has(1)) return corrupt("input 1 (scales) is missing");
  LIMBER_ASSIGN(const auto scales, c.floats(1, "scales"));
  return old_resize(c, scales);
}

Status resize(NodeContext& c) {
  if (c.version < 11) {
    if (!c.has(1)) return corrupt("input 1 (scales) is missing");
    LIMBER_ASSIGN(const auto scales, c.floats(1, "scales"));
    return old_resize(c, scales);
  }
  LIMBER_ASSIGN(const auto axes, resized_axes(c));
  LIMBER_ASSIGN(Target target, resize_target(c, axes));
  LIMBER_ASSIGN(const std::string mode,
                one_of("mode", c.s("mode", "nearest"), std::array{"nearest", "linear", "cubic"}));
  LIMBER_ASSIGN(const std::string coordinates,
                one_of("coordinate_transformation_mode", c.s("coordinate_transformation_mode", "half_pixel"),
                       std::array{"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                  "half_pixel_symmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"}));
  LIMBER_ASSIGN(const std::string nearest,
                one_of("nearest_mode", c.s("nearest_mode", "round_prefer_floor"),
                       std::array{"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
  Attrs attrs{{"mode", mode},
              {"coordinates", coordinates},
              {"nearest", nearest},
              {"cubic_coeff", c.f("cubic_coeff_a", -0.75)},
              {"exclude_outside", int64_t{c.i("exclude_outside", 0) != 0}},
              {"extrapolation", c.f("extrapolation_value", 0)},
              {"antialias", int64_t{c.i("antialias", 0) != 0}}};
  if (coordinates == "tf_crop_and_resize") {
    LIMBER_ASSIGN(const auto roi, region(c, axes));
    attrs.set("roi", roi);
    const bool scaled = !c.has(3);
    for (int i = 0; scaled && i < c.rank(0); ++i) {
      const double part = roi[static_cast<size_t>(c.rank(0) + i)] - roi[static_cast<size_t>(i)];
      LIMBER_ASSIGN(target.shape[i],
                    scaled_dim(c, c.type(0).shape[i], part * target.scales[static_cast<size_t>(i)]));
    }
  }
  attrs.set("shape", target.shape);
  attrs.set("scales", target.scales);
  LIMBER_ASSIGN(const ValueId y, c.emit(OpKind::kResize, {c.in(0)}, attrs));
  c.set(0, y);
  return {};
}

constexpr auto kResizeTable = std::to_array<Converter>({
    {"Resize", 1, 4, 1, 10, kNewestOpset, resize},
    {"Upsample", 1, 2, 1, 1, 9, upsample},
});

}  // namespace

std::span<const Converter> resize_converters() { return kResizeTable; }

}  // namespace limber::onnx_io
