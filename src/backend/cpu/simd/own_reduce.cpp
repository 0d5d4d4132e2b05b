#include <cmath>
#include <limits>

#include "backend/cpu/simd/own_families.h"

namespace limber::own {
namespace {

// Outputs that one accumulation keeps on the stack: 2 KB, well inside the first-level cache.
constexpr int64_t kTile = 512;

enum class Finish : uint8_t { kNone, kMean, kSqrt, kLog };

struct Rule {
  SimdReduce reduce = SimdReduce::kSum;
  Finish finish = Finish::kNone;
  float initial = 0;
};

Rule rule_of(OpKind op) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  switch (op) {
    case OpKind::kReduceMean:
    case OpKind::kGlobalAveragePool:
      return {SimdReduce::kSum, Finish::kMean, 0};
    case OpKind::kReduceMax:
    case OpKind::kGlobalMaxPool:
      return {SimdReduce::kMax, Finish::kNone, -kInf};
    case OpKind::kReduceMin:
      return {SimdReduce::kMin, Finish::kNone, kInf};
    case OpKind::kReduceProd:
      return {SimdReduce::kProd, Finish::kNone, 1};
    case OpKind::kReduceL1:
      return {SimdReduce::kAbsSum, Finish::kNone, 0};
    case OpKind::kReduceL2:
      return {SimdReduce::kSquareSum, Finish::kSqrt, 0};
    case OpKind::kReduceLogSum:
      return {SimdReduce::kSum, Finish::kLog, 0};
    case OpKind::kReduceLogSumExp:
      return {SimdReduce::kExpSum, Finish::kLog, 0};
    case OpKind::kReduceSumSquare:
      return {SimdReduce::kSquareSum, Finish::kNone, 0};
    default:
      return {SimdReduce::kSum, Finish::kNone, 0};
  }
}

struct Axis {
  int64_t size, stride;
};

// x seen as kept axes (outermost first) and reduced axes, neighbours of one kind merged, plus what lies
// innermost: either a reduced run of `run` elements or `width` kept elements beside each other.
class Reduction {
 public:
  Reduction(const Shape& shape, const std::vector<bool>& reduced, Rule rule) : rule_(rule), table_(&simd()) {
    int64_t stride = shape.elements();
    std::vector<bool> kinds;
    std::vector<Axis> axes;
    for (int d = 0; d < shape.rank(); ++d) {
      const int64_t size = shape.dim(d);
      const bool kind = reduced[static_cast<size_t>(d)];
      stride = size == 0 ? 0 : stride / size;
      (kind ? count_ : outputs_) *= size;
      if (size == 1) continue;
      if (!axes.empty() && kinds.back() == kind) {
        axes.back() = {axes.back().size * size, stride};
      } else {
        axes.push_back({size, stride});
        kinds.push_back(kind);
      }
    }
    if (!axes.empty()) {
      (kinds.back() ? run_ : width_) = axes.back().size;
      axes.pop_back();
      last_reduced_ = kinds.back();
      kinds.pop_back();
    }
    for (size_t i = 0; i < axes.size(); ++i) (kinds[i] ? reduced_ : kept_).push_back(axes[i]);
  }

  void run(const float* x, float* y) const {
    if (outputs_ == 0) return;
    if (last_reduced_) {
      parallel_for(outputs_, row_grain(count_), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = finish(reduce_one(x + offset_of(kept_, i)));
      });
      return;
    }
    const int64_t tiles = (width_ + kTile - 1) / kTile;
    const int64_t work = std::max<int64_t>(1, count_ * std::min(width_, kTile));
    parallel_for(outputs_ / width_ * tiles, row_grain(work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / tiles, column = i % tiles * kTile;
        reduce_tile(x + offset_of(kept_, row) + column, y + row * width_ + column,
                    std::min(kTile, width_ - column));
      }
    });
  }

 private:
  static int64_t offset_of(const std::vector<Axis>& axes, int64_t index) {
    if (axes.empty()) return 0;
    int64_t offset = 0;
    for (size_t d = axes.size() - 1; d > 0; --d) {
      offset += index % axes[d].size * axes[d].stride;
      index /= axes[d].size;
    }
    return offset + index * axes[0].stride;
  }

  int64_t outer_count() const { return count_ == 0 ? 0 : count_ / (last_reduced_ ? run_ : 1); }

  // Joins the results of all runs. `op` kExpSum needs the maximum first.
  float reduce_runs(const float* x, SimdReduce op, float initial, float shift) const {
    const auto reduce = table_->reduce[static_cast<size_t>(op)];
    const auto accumulate = table_->accumulate[static_cast<size_t>(joining(op))];
    float acc = initial;
    for (int64_t r = 0; r < outer_count(); ++r) {
      const float part = reduce(x + offset_of(reduced_, r), run_, shift);
      if (r == 0) {
        acc = part;
      } else {
        accumulate(&acc, &part, nullptr, 1);
      }
    }
    return acc;
  }

  float reduce_one(const float* x) const {
    if (rule_.reduce != SimdReduce::kExpSum) return reduce_runs(x, rule_.reduce, rule_.initial, 0);
    const float top = reduce_runs(x, SimdReduce::kMax, -std::numeric_limits<float>::infinity(), 0);
    return !std::isfinite(top) ? top : std::log(reduce_runs(x, SimdReduce::kExpSum, 0, top)) + top;
  }

  void reduce_tile(const float* x, float* y, int64_t n) const {
    alignas(64) float acc[kTile];
    alignas(64) float top[kTile];
    std::fill_n(acc, n, rule_.initial);
    const bool exponential = rule_.reduce == SimdReduce::kExpSum;
    if (exponential) {
      std::fill_n(top, n, -std::numeric_limits<float>::infinity());
      accumulate_rows(SimdReduce::kMax, x, top, nullptr, n);
    }
    accumulate_rows(rule_.reduce, x, acc, top, n);
    for (int64_t i = 0; i < n; ++i) {
      y[i] = !exponential ? finish(acc[i]) : std::isfinite(top[i]) ? std::log(acc[i]) + top[i] : top[i];
    }
  }

  void accumulate_rows(SimdReduce op, const float* x, float* acc, const float* shift, int64_t n) const {
    const auto accumulate = table_->accumulate[static_cast<size_t>(op)];
    for (int64_t r = 0; r < outer_count(); ++r) accumulate(acc, x + offset_of(reduced_, r), shift, n);
  }

  // What joins two partial results of `op`.
  static SimdReduce joining(SimdReduce op) {
    const bool sum = op == SimdReduce::kAbsSum || op == SimdReduce::kSquareSum || op == SimdReduce::kExpSum;
    return sum ? SimdReduce::kSum : op;
  }

  float finish(float acc) const {
    switch (rule_.finish) {
      case Finish::kMean:
        return acc / static_cast<float>(count_);
      case Finish::kSqrt:
        return std::sqrt(acc);
      case Finish::kLog:
        return rule_.reduce == SimdReduce::kExpSum ? acc : std::log(acc);
      default:
        return acc;
    }
  }

  Rule rule_;
  const SimdTable* table_;
  std::vector<Axis> kept_, reduced_;
  int64_t outputs_ = 1, count_ = 1;  // elements of y; elements of x behind each of them
  int64_t run_ = 1, width_ = 1;
  bool last_reduced_ = true;
};

}  // namespace

KernelPtr make_reduce(const Graph& graph, const Node& node) {
  if (!all_f32(graph, node)) return nullptr;
  const Shape& shape = input_type(graph, node, 0).shape;
  std::vector<bool> reduced(static_cast<size_t>(shape.rank()), false);
  if (node.op == OpKind::kGlobalAveragePool || node.op == OpKind::kGlobalMaxPool) {
    for (size_t d = 2; d < reduced.size(); ++d) reduced[d] = true;
  } else {
    for (int64_t axis : node.attrs.ints("axes")) reduced[static_cast<size_t>(axis)] = true;
  }
  return make_kernel([reduction = Reduction(shape, reduced, rule_of(node.op))](const KernelIo& io) {
    reduction.run(io.in<float>(0), io.out<float>(0));
  });
}

KernelPtr make_arg(const Graph& graph, const Node& node) {
  const TensorType& type = input_type(graph, node, 0);
  if (type.dtype != DType::kF32 || type.rank() == 0) return nullptr;
  const int axis = static_cast<int>(node.attrs.i("axis"));
  const Shape& shape = type.shape;
  const int64_t outer = product(shape, 0, axis), n = shape.dim(axis),
                inner = product(shape, axis + 1, shape.rank());
  const bool last = node.attrs.i("select_last", 0) != 0;
  const bool largest = node.op == OpKind::kArgMax;
  if (n == 0 || n > INT32_MAX) return nullptr;
  const SimdTable& table = simd();
  return make_kernel([=, &table](const KernelIo& io) {
    const int64_t tiles = (inner + kTile - 1) / kTile;
    const float* x = io.in<float>(0);
    int64_t* y = io.out<int64_t>(0);
    parallel_for(outer * tiles, row_grain(n * std::min(inner, kTile)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / tiles, column = i % tiles * kTile;
        const ArgArgs args{n, inner, std::min(kTile, inner - column), largest, last};
        table.arg_columns(x + row * n * inner + column, y + row * inner + column, args);
      }
    });
  });
}

}  // namespace limber::own
