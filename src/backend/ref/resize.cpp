// Resize. Every axis is resampled on its own: which input elements an output coordinate is made of, and
// with which weights, is worked out once, when the kernel is made.
#include <algorithm>
#include <cmath>

#include "backend/ref/element.h"
#include "backend/ref/factory.h"

namespace limber::ref {
namespace {

// What one output coordinate reads along its axis: taps [begin, end) of the axis.
struct Coordinate {
  int32_t begin, end;
  bool outside;  // tf_crop_and_resize: the coordinate is beyond the input
};
struct AxisTaps {
  std::vector<Coordinate> coordinates;
  std::vector<int64_t> index;
  std::vector<double> weight;
};

struct AxisRule {
  int64_t in = 0, out = 0;
  double scale = 1, roi_start = 0, roi_end = 1;
};

struct ResizeRule {
  std::string mode, coordinates, nearest;
  double cubic_coeff = -0.75;
  bool exclude_outside = false, antialias = false;
};

// The output length that the scale stands for; that is not a whole number when scales were given and
// the real length was rounded down.
double resized_length(const AxisRule& a) {
  const double length = a.scale * static_cast<double>(a.in), whole = static_cast<double>(a.out);
  return std::fabs(length - whole) < 1e-4 ? whole : length;
}

// Tables are kept per axis, so an axis must not be absurdly long.
constexpr int64_t kMaxAxis = int64_t{1} << 24;

// Where output coordinate x lies on the input.
Result<double> source_coordinate(const ResizeRule& rule, const AxisRule& a, int64_t coordinate) {
  const auto x = static_cast<double>(coordinate), in = static_cast<double>(a.in);
  const double out = resized_length(a), step = in / out;
  const std::string& mode = rule.coordinates;
  if (mode == "half_pixel") return (x + 0.5) * step - 0.5;
  if (mode == "pytorch_half_pixel") return a.out > 1 ? (x + 0.5) * step - 0.5 : 0.0;
  if (mode == "asymmetric") return x * step;
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5) * step;
  if (mode == "align_corners") return out == 1 ? 0.0 : x * (in - 1) / (out - 1);
  if (mode == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(a.out) / out;
    return in / 2 * (1 - adjustment) + (x + 0.5) * step - 0.5;
  }
  if (mode == "tf_crop_and_resize") {
    if (out == 1) return 0.5 * (a.roi_start + a.roi_end) * (in - 1);
    return a.roi_start * (in - 1) + x * (a.roi_end - a.roi_start) * (in - 1) / (out - 1);
  }
  return unsupported("Resize: the reference backend does not know the coordinates '{}'", mode);
}

Result<double> nearest_index(const ResizeRule& rule, double x) {
  if (rule.nearest == "round_prefer_floor") return std::ceil(x - 0.5);
  if (rule.nearest == "round_prefer_ceil") return std::floor(x + 0.5);
  if (rule.nearest == "floor") return std::floor(x);
  if (rule.nearest == "ceil") return std::ceil(x);
  return unsupported("Resize: the reference backend does not know the rounding '{}'", rule.nearest);
}

double linear_weight(double distance) { return std::max(0.0, 1.0 - std::fabs(distance)); }

// The kernel of Keys' cubic convolution, with `a` its free parameter.
double cubic_weight(double distance, double a) {
  const double d = std::fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

// Adds the taps of one coordinate. A filter that must not alias is widened by 1 / scale.
Status add_taps(const ResizeRule& rule, const AxisRule& a, double x, AxisTaps& taps) {
  const auto clamped = [&](double i) { return std::clamp<int64_t>(convert<int64_t>(i), 0, a.in - 1); };
  if (rule.mode == "nearest") {
    LIMBER_ASSIGN(const double at, nearest_index(rule, x));
    taps.index.push_back(clamped(at));
    taps.weight.push_back(1);
    return {};
  }
  const bool cubic = rule.mode == "cubic";
  if (!cubic && rule.mode != "linear") {
    return unsupported("Resize: the reference backend does not know the mode '{}'", rule.mode);
  }
  const double shrink = rule.antialias ? std::min(1.0, a.scale) : 1.0;
  const double radius = (cubic ? 2 : 1) / shrink;
  const size_t first = taps.weight.size();
  double total = 0;
  for (double i = std::floor(x - radius) + 1; i < std::floor(x) + std::ceil(radius) + 1; ++i) {
    double weight =
        cubic ? cubic_weight((i - x) * shrink, rule.cubic_coeff) : linear_weight((i - x) * shrink);
    if (rule.exclude_outside && (i < 0 || i >= static_cast<double>(a.in))) weight = 0;
    if (weight == 0) continue;
    taps.index.push_back(clamped(i));
    taps.weight.push_back(weight);
    total += weight;
  }
  for (size_t i = first; total != 0 && i < taps.weight.size(); ++i) taps.weight[i] /= total;
  return {};
}

Result<AxisTaps> taps_of(const ResizeRule& rule, const AxisRule& a) {
  AxisTaps taps;
  for (int64_t i = 0; a.in > 0 && i < a.out; ++i) {
    Coordinate c{static_cast<int32_t>(taps.index.size()), 0, false};
    LIMBER_ASSIGN(const double x, source_coordinate(rule, a, i));
    c.outside = rule.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(a.in - 1));
    LIMBER_TRY(add_taps(rule, a, x, taps));
    c.end = static_cast<int32_t>(taps.index.size());
    taps.coordinates.push_back(c);
  }
  return taps;
}

Result<std::vector<AxisTaps>> all_taps(const NodeView& v, const Dims& x, const Dims& y) {
  const Attrs& attrs = v.attrs();
  const std::vector<double>& scales = attrs.floats("scales");
  const std::vector<double> roi = attrs.has("roi") ? attrs.floats("roi") : std::vector<double>{};
  const ResizeRule rule{attrs.s("mode", "nearest"),
                        attrs.s("coordinates", "half_pixel"),
                        attrs.s("nearest", "round_prefer_floor"),
                        attrs.f("cubic_coeff", -0.75),
                        attrs.i("exclude_outside", 0) != 0,
                        attrs.i("antialias", 0) != 0};
  const auto rank = static_cast<size_t>(x.rank);
  std::vector<AxisTaps> all;
  for (size_t axis = 0; axis < rank; ++axis) {
    AxisRule a{x.at[axis], y.at[axis], scales[axis]};
    if (std::max(a.in, a.out) > kMaxAxis) {
      return unsupported("Resize '{}': axis {} goes from {} to {} elements; the limit is {}", v.node.name,
                         axis, a.in, a.out, kMaxAxis);
    }
    if (roi.size() == 2 * rank) {
      a.roi_start = roi[axis];
      a.roi_end = roi[rank + axis];
    }
    LIMBER_ASSIGN(AxisTaps taps, taps_of(rule, a));
    all.push_back(std::move(taps));
  }
  return all;
}

// Nearest copies elements, so it is exact for every dtype.
KernelResult make_nearest(const NodeView& v, std::vector<AxisTaps> taps) {
  const Dims y = v.out_dims(0), strides = strides_for(v.in_dims(0));
  const size_t size = dtype_size(v.in(0).dtype);
  std::array<std::byte, 8> fill{};
  access<double>(v.in(0).dtype).store(fill.data(), 0, v.attrs().f("extrapolation", 0));
  return make_kernel([=, taps = std::move(taps)](const KernelIo& io) {
    int64_t i = 0;
    walk<0>(y, {}, [&](const Dims& index, const std::array<int64_t, 0>&) {
      int64_t from = 0;
      bool outside = false;
      for (int axis = 0; axis < y.rank; ++axis) {
        const AxisTaps& t = taps[static_cast<size_t>(axis)];
        const Coordinate& c = t.coordinates[static_cast<size_t>(index[axis])];
        outside = outside || c.outside;
        from += t.index[static_cast<size_t>(c.begin)] * strides[axis];
      }
      copy_element(io.outputs[0], i++, outside ? fill.data() : io.inputs[0], outside ? 0 : from, size);
    });
  });
}

// The weighted sum over the taps of axes [axis, rank).
double interpolate(const std::vector<AxisTaps>& taps, const Dims& index, const Dims& strides, int axis,
                   int64_t offset, double (*load)(const void*, int64_t), const void* x) {
  if (axis == index.rank) return load(x, offset);
  const AxisTaps& t = taps[static_cast<size_t>(axis)];
  const Coordinate& c = t.coordinates[static_cast<size_t>(index[axis])];
  double sum = 0;
  for (auto i = static_cast<size_t>(c.begin); i < static_cast<size_t>(c.end); ++i) {
    sum += t.weight[i] *
           interpolate(taps, index, strides, axis + 1, offset + t.index[i] * strides[axis], load, x);
  }
  return sum;
}

KernelResult make_interpolation(const NodeView& v, std::vector<AxisTaps> taps) {
  if (v.in(0).dtype == DType::kBool) return no_kernel(v, DType::kBool);
  const Dims y = v.out_dims(0), strides = strides_for(v.in_dims(0));
  const auto elem = access<double>(v.in(0).dtype);
  const double extrapolation = v.attrs().f("extrapolation", 0);
  return make_kernel([=, taps = std::move(taps)](const KernelIo& io) {
    int64_t i = 0;
    walk<0>(y, {}, [&](const Dims& index, const std::array<int64_t, 0>&) {
      bool outside = false;
      for (int axis = 0; axis < y.rank; ++axis) {
        outside =
            outside || taps[static_cast<size_t>(axis)].coordinates[static_cast<size_t>(index[axis])].outside;
      }
      elem.store(io.outputs[0], i++,
                 outside ? extrapolation : interpolate(taps, index, strides, 0, 0, elem.load, io.inputs[0]));
    });
  });
}

KernelResult make_resize(const NodeView& v) {
  if (v.in(0).shape.elements() == 0 && v.out(0).shape.elements() != 0) {
    return invalid("Resize '{}': nothing to make [{}] from", v.node.name, v.out(0).shape.to_string());
  }
  LIMBER_ASSIGN(std::vector<AxisTaps> taps, all_taps(v, v.in_dims(0), v.out_dims(0)));
  if (v.attrs().s("mode", "nearest") == "nearest") return make_nearest(v, std::move(taps));
  return make_interpolation(v, std::move(taps));
}

// Adds dy times the weights of the taps of axes [axis, rank) to where they read. A coordinate outside
// the input read nothing.
void spread(const std::vector<AxisTaps>& taps, const Dims& index, const Dims& strides, int axis,
            int64_t offset, double dy, double* acc) {
  if (axis == index.rank) {
    acc[offset] += dy;
    return;
  }
  const AxisTaps& t = taps[static_cast<size_t>(axis)];
  const Coordinate& c = t.coordinates[static_cast<size_t>(index[axis])];
  if (c.outside) return;
  for (auto i = static_cast<size_t>(c.begin); i < static_cast<size_t>(c.end); ++i)
    spread(taps, index, strides, axis + 1, offset + t.index[i] * strides[axis], dy * t.weight[i], acc);
}

KernelResult make_resize_backward(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const Dims x = v.out_dims(0), y = v.in_dims(0), strides = strides_for(x);
  LIMBER_ASSIGN(std::vector<AxisTaps> taps, all_taps(v, x, y));
  const auto elem = access<double>(v.in(0).dtype);
  const auto run = [=, taps = std::move(taps)](const KernelIo& io) {
    auto* acc = static_cast<double*>(io.scratch);
    std::fill_n(acc, x.elements(), 0.0);
    int64_t i = 0;
    if (x.elements() != 0) {
      walk<0>(y, {}, [&](const Dims& index, const std::array<int64_t, 0>&) {
        spread(taps, index, strides, 0, 0, elem.load(io.inputs[0], i++), acc);
      });
    }
    for (i = 0; i < x.elements(); ++i) elem.store(io.outputs[0], i, acc[i]);
  };
  return make_kernel(run, static_cast<size_t>(x.elements()) * sizeof(double));
}

}  // namespace

LIMBER_REF_KERNEL(Resize, make_resize(v))
LIMBER_REF_KERNEL(ResizeBackward, make_resize_backward(v))

}  // namespace limber::ref
