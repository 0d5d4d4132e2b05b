#include <cmath>
#include <optional>

#include "backend/cpu/simd/indexed_rows.h"

namespace limber::own {
namespace {

struct AxisRule {
  int64_t in = 0, out = 0;
  double scale = 1;
};

// Where output coordinate i lies on the input; nullopt: a rule that is not known here.
std::optional<double> source_coordinate(const std::string& rule, const AxisRule& axis, int64_t i) {
  const auto x = static_cast<double>(i), in = static_cast<double>(axis.in),
             whole = static_cast<double>(axis.out);
  // The length the scale stands for: not whole when scales were given and the length was rounded down.
  const double exact = axis.scale * in;
  // Scales are floats in a file: what is off by less than their rounding is whole.
  const double length = std::fabs(exact - whole) < 1e-4 ? whole : exact;
  const double step = in / length;
  if (rule == "half_pixel") return (x + 0.5) * step - 0.5;
  if (rule == "pytorch_half_pixel") return axis.out > 1 ? (x + 0.5) * step - 0.5 : 0.0;
  if (rule == "asymmetric") return x * step;
  if (rule == "tf_half_pixel_for_nn") return (x + 0.5) * step;
  if (rule == "align_corners") return length == 1 ? 0.0 : x * (in - 1) / (length - 1);
  if (rule == "half_pixel_symmetric") return in / 2 * (1 - whole / length) + (x + 0.5) * step - 0.5;
  return std::nullopt;
}

std::optional<double> rounded(const std::string& rule, double x) {
  if (rule == "round_prefer_floor") return std::ceil(x - 0.5);
  if (rule == "round_prefer_ceil") return std::floor(x + 0.5);
  if (rule == "floor") return std::floor(x);
  if (rule == "ceil") return std::ceil(x);
  return std::nullopt;
}

int64_t clamped(double index, int64_t size) {
  return static_cast<int64_t>(std::clamp(index, 0.0, static_cast<double>(size - 1)));
}

// y[i] = x[first[i]] + (x[second[i]] - x[first[i]]) * weight[i] along one axis.
struct LinearTaps {
  std::vector<int32_t> first, second;
  std::vector<float> weight;

  bool identity(int64_t size) const {
    if (static_cast<int64_t>(first.size()) != size) return false;
    for (size_t i = 0; i < first.size(); ++i) {
      const bool same = first[i] == static_cast<int32_t>(i) && (weight[i] == 0 || second[i] == first[i]);
      if (!same) return false;
    }
    return true;
  }
};

std::optional<LinearTaps> linear_taps(const std::string& rule, const AxisRule& axis) {
  if (axis.in > INT32_MAX) return std::nullopt;
  LinearTaps taps;
  for (int64_t i = 0; i < axis.out; ++i) {
    const auto x = source_coordinate(rule, axis, i);
    if (!x) return std::nullopt;
    const double low = std::floor(*x);
    taps.first.push_back(static_cast<int32_t>(clamped(low, axis.in)));
    taps.second.push_back(static_cast<int32_t>(clamped(low + 1, axis.in)));
    taps.weight.push_back(static_cast<float>(*x - low));
  }
  return taps;
}

// Bilinear: rows are interpolated along x once, when the first output row needs them, then blended along y.
class Bilinear {
 public:
  Bilinear(int64_t planes, const AxisRule& vertical, const AxisRule& horizontal, LinearTaps y, LinearTaps x)
      : table_(&simd()),
        planes_(planes),
        in_rows_(vertical.in),
        out_rows_(vertical.out),
        in_cols_(horizontal.in),
        out_cols_(horizontal.out),
        copies_rows_(x.identity(horizontal.in)),
        y_(std::move(y)),
        x_(std::move(x)) {
    const int64_t useful = (planes_ * out_rows_ * out_cols_ + kGrain - 1) / kGrain;
    workers_ = std::max<int64_t>(1, std::min<int64_t>(max_threads(), useful));
  }

  size_t scratch_bytes() const {
    return copies_rows_ ? 0 : static_cast<size_t>(workers_ * 2 * row_floats()) * sizeof(float);
  }

  void run(const float* x, float* y, float* scratch) const {
    const int64_t total = planes_ * out_rows_, share = (total + workers_ - 1) / workers_;
    parallel_for(workers_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t w = begin; w < end; ++w) {
        rows(x, y, w * share, std::min(total, (w + 1) * share), scratch + w * 2 * row_floats());
      }
    });
  }

 private:
  // Two interpolated rows and which input rows (counted over all planes) they come from.
  struct RowCache {
    float* rows[2];
    int64_t tags[2] = {-1, -1};
  };

  int64_t row_floats() const { return (out_cols_ + 15) / 16 * 16; }

  // Input row `row` interpolated along x; `keep` is a row that must stay in the cache.
  const float* row_of(const float* x, int64_t row, int64_t keep, RowCache& cache) const {
    if (copies_rows_) return x + row * in_cols_;
    for (int i = 0; i < 2; ++i) {
      if (cache.tags[i] == row) return cache.rows[i];
    }
    const int slot = cache.tags[0] == keep ? 1 : 0;
    cache.tags[slot] = row;
    table_->lerp_gather(x + row * in_cols_, x_.first.data(), x_.second.data(), x_.weight.data(),
                        cache.rows[slot], out_cols_);
    return cache.rows[slot];
  }

  void rows(const float* x, float* y, int64_t begin, int64_t end, float* scratch) const {
    RowCache cache{{scratch, scratch + row_floats()}};
    for (int64_t r = begin; r < end; ++r) {
      const int64_t plane = r / out_rows_ * in_rows_;
      const auto i = static_cast<size_t>(r % out_rows_);
      const int64_t first = plane + y_.first[i], second = plane + y_.second[i];
      const float* a = row_of(x, first, second, cache);
      const float* b = row_of(x, second, first, cache);
      table_->lerp_rows(a, b, y_.weight[i], y + r * out_cols_, out_cols_);
    }
  }

  const SimdTable* table_;
  int64_t planes_, in_rows_, out_rows_, in_cols_, out_cols_, workers_ = 1;
  bool copies_rows_;  // the horizontal axis keeps its size
  LinearTaps y_, x_;
};

std::vector<AxisRule> axis_rules(const Shape& x, const Shape& y, const Attrs& attrs) {
  std::vector<AxisRule> axes;
  for (int d = 0; d < x.rank(); ++d)
    axes.push_back({x.dim(d), y.dim(d), attrs.floats("scales")[static_cast<size_t>(d)]});
  return axes;
}

KernelPtr make_nearest(const TensorType& x, const std::vector<AxisRule>& axes, const Attrs& attrs) {
  const std::string rule = attrs.s("coordinates", "half_pixel"),
                    rounding = attrs.s("nearest", "round_prefer_floor");
  std::vector<std::vector<int64_t>> sources;
  for (const AxisRule& axis : axes) {
    std::vector<int64_t> table;
    for (int64_t i = 0; i < axis.out; ++i) {
      const auto at = source_coordinate(rule, axis, i);
      const auto index = at ? rounded(rounding, *at) : std::nullopt;
      if (!index) return nullptr;
      table.push_back(clamped(*index, axis.in));
    }
    sources.push_back(std::move(table));
  }
  return make_indexed_copy(IndexedRows(x.shape, sources), x.dtype, 0);
}

KernelPtr make_linear(const std::vector<AxisRule>& axes, const Attrs& attrs) {
  const std::string rule = attrs.s("coordinates", "half_pixel");
  const size_t rank = axes.size();
  int64_t planes = 1;
  std::vector<LinearTaps> taps;
  for (size_t d = 0; d < rank; ++d) {
    auto axis = linear_taps(rule, axes[d]);
    if (!axis) return nullptr;
    if (d + 2 < rank) {
      if (!axis->identity(axes[d].in)) return nullptr;
      planes *= axes[d].in;
    } else {
      taps.push_back(*std::move(axis));
    }
  }
  if (taps.size() == 1) taps.insert(taps.begin(), LinearTaps{{0}, {0}, {0}});
  const AxisRule rows = rank >= 2 ? axes[rank - 2] : AxisRule{1, 1, 1};
  Bilinear bilinear(planes, rows, axes[rank - 1], std::move(taps[0]), std::move(taps[1]));
  const size_t scratch = bilinear.scratch_bytes();
  return make_kernel(
      [bilinear = std::move(bilinear)](const KernelIo& io) {
        bilinear.run(io.in<float>(0), io.out<float>(0), static_cast<float*>(io.scratch));
      },
      scratch);
}

}  // namespace

KernelPtr make_resize(const Graph& graph, const Node& node) {
  const TensorType &x = input_type(graph, node, 0), &y = output_type(graph, node);
  if (x.rank() == 0 || x.shape.elements() == 0 || x.shape.dim(x.rank() - 1) > INT32_MAX) return nullptr;
  if (y.shape.elements() == 0) return make_kernel([](const KernelIo&) {});
  const std::vector<AxisRule> axes = axis_rules(x.shape, y.shape, node.attrs);
  const std::string mode = node.attrs.s("mode", "nearest");
  if (mode == "nearest") return make_nearest(x, axes, node.attrs);
  const bool plain = node.attrs.i("antialias", 0) == 0 && node.attrs.i("exclude_outside", 0) == 0;
  if (mode == "linear" && plain && x.dtype == DType::kF32) return make_linear(axes, node.attrs);
  return nullptr;
}

}  // namespace limber::own
