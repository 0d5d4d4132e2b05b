// Reductions over any set of axes, and ArgMax / ArgMin.
#include <algorithm>
#include <cmath>

#include "backend/ref/element.h"
#include "backend/ref/factory.h"

namespace limber::ref {
namespace {

// The elements that one output element is made of.
template <typename C>
struct Series {
  const void* data;
  Access<C> elem;
  DType dtype;
  int64_t base;
  const Dims& dims;
  const Dims& strides;

  int64_t count() const { return dims.elements(); }
  template <typename F>
  void each(F&& f) const {
    walk<1>(dims, {strides},
            [&](const Dims&, const std::array<int64_t, 1>& at) { f(elem.load(data, base + at[0])); });
  }
  template <typename T, typename F>
  T fold(T start, F&& f) const {
    each([&](C x) { start = f(start, x); });
    return start;
  }
};

template <typename C>
C reduce_sum(const Series<C>& s) {
  return s.fold(C(0), [](C sum, C x) { return wrapping_add(sum, x); });
}
template <typename C>
C reduce_mean(const Series<C>& s) {
  if constexpr (std::is_floating_point_v<C>)
    return reduce_sum(s) / static_cast<C>(s.count());
  else
    return s.count() == 0 ? C(0) : reduce_sum(s) / static_cast<C>(s.count());
}
template <typename C>
C reduce_max(const Series<C>& s) {
  return s.fold(lowest<C>(s.dtype), [](C best, C x) { return maximum(best, x); });
}
template <typename C>
C reduce_min(const Series<C>& s) {
  return s.fold(highest<C>(s.dtype), [](C best, C x) { return minimum(best, x); });
}
template <typename C>
C reduce_prod(const Series<C>& s) {
  return s.fold(C(1), [](C product, C x) { return wrapping_mul(product, x); });
}
template <typename C>
C reduce_l1(const Series<C>& s) {
  return s.fold(C(0), [](C sum, C x) { return x < C(0) ? wrapping_sub(sum, x) : wrapping_add(sum, x); });
}
template <typename C>
C reduce_sum_square(const Series<C>& s) {
  return s.fold(C(0), [](C sum, C x) { return wrapping_add(sum, wrapping_mul(x, x)); });
}
// The roots and logarithms of integers are computed in double and truncated.
template <typename C>
C reduce_l2(const Series<C>& s) {
  return convert<C>(std::sqrt(
      s.fold(0.0, [](double sum, C x) { return sum + static_cast<double>(x) * static_cast<double>(x); })));
}
template <typename C>
C reduce_log_sum(const Series<C>& s) {
  return convert<C>(std::log(s.fold(0.0, [](double sum, C x) { return sum + static_cast<double>(x); })));
}
template <typename C>
C reduce_log_sum_exp(const Series<C>& s) {
  const double top = s.fold(-std::numeric_limits<double>::infinity(),
                            [](double best, C x) { return maximum(best, static_cast<double>(x)); });
  if (!std::isfinite(top)) return convert<C>(top);
  const double sum =
      s.fold(0.0, [top](double total, C x) { return total + std::exp(static_cast<double>(x) - top); });
  return convert<C>(top + std::log(sum));
}

template <typename C>
using ReduceFn = C (*)(const Series<C>&);

template <typename C>
ReduceFn<C> reduce_function(OpKind op) {
  switch (op) {
    case OpKind::kReduceSum:
      return &reduce_sum<C>;
    case OpKind::kReduceMean:
      return &reduce_mean<C>;
    case OpKind::kReduceMax:
      return &reduce_max<C>;
    case OpKind::kReduceMin:
      return &reduce_min<C>;
    case OpKind::kReduceProd:
      return &reduce_prod<C>;
    case OpKind::kReduceL1:
      return &reduce_l1<C>;
    case OpKind::kReduceL2:
      return &reduce_l2<C>;
    case OpKind::kReduceLogSum:
      return &reduce_log_sum<C>;
    case OpKind::kReduceLogSumExp:
      return &reduce_log_sum_exp<C>;
    case OpKind::kReduceSumSquare:
      return &reduce_sum_square<C>;
    default:
      LIMBER_UNREACHABLE();
  }
}

// The axes of x that stay and those that go.
struct ReducedAxes {
  Dims kept, kept_strides, reduced, reduced_strides;

  ReducedAxes(const Dims& x, const std::vector<int64_t>& axes) {
    const Dims strides = strides_for(x);
    for (int axis = 0; axis < x.rank; ++axis) {
      const bool reduce = std::find(axes.begin(), axes.end(), axis) != axes.end();
      (reduce ? reduced : kept).push_back(x[axis]);
      (reduce ? reduced_strides : kept_strides).push_back(strides[axis]);
    }
  }
};

KernelResult make_reduction(const NodeView& v) {
  const DType dtype = v.in(0).dtype;
  const bool compares = v.node.op == OpKind::kReduceMax || v.node.op == OpKind::kReduceMin;
  if (dtype == DType::kBool && !compares) return no_kernel(v, dtype);
  const ReducedAxes a(v.in_dims(0), v.attrs().ints("axes"));
  return with_domain(dtype, [&](auto zero) -> KernelResult {
    using C = decltype(zero);
    const auto elem = access<C>(dtype);
    const auto fn = reduce_function<C>(v.node.op);
    return make_kernel([=](const KernelIo& io) {
      int64_t i = 0;
      walk<1>(a.kept, {a.kept_strides}, [&](const Dims&, const std::array<int64_t, 1>& at) {
        const Series<C> series{io.inputs[0], elem, dtype, at[0], a.reduced, a.reduced_strides};
        elem.store(io.outputs[0], i++, fn(series));
      });
    });
  });
}

// The product of all but one element is computed for every element anew.
KernelResult make_prod_backward(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const ReducedAxes a(v.in_dims(0), v.attrs().ints("axes"));
  const auto elem = access<double>(v.in(0).dtype);
  return make_kernel([=](const KernelIo& io) {
    int64_t group = 0;
    walk<1>(a.kept, {a.kept_strides}, [&](const Dims&, const std::array<int64_t, 1>& base) {
      const double dy = elem.load(io.inputs[1], group++);
      walk<1>(a.reduced, {a.reduced_strides}, [&](const Dims&, const std::array<int64_t, 1>& mine) {
        double product = dy;
        walk<1>(a.reduced, {a.reduced_strides}, [&](const Dims&, const std::array<int64_t, 1>& other) {
          if (other[0] != mine[0]) product *= elem.load(io.inputs[0], base[0] + other[0]);
        });
        elem.store(io.outputs[0], base[0] + mine[0], product);
      });
    });
  });
}

// NaN counts as the most extreme number, as in numpy.
template <typename C>
KernelResult make_arg_kernel(const AxisView& lines, DType dtype, bool largest, bool last) {
  const auto elem = access<C>(dtype);
  return make_kernel([=](const KernelIo& io) {
    int64_t out = 0;
    lines.each_line([&](int64_t first) {
      int64_t best_index = 0;
      C best = lines.size == 0 ? C(0) : elem.load(io.inputs[0], first);
      for (int64_t i = 1; i < lines.size; ++i) {
        const C x = elem.load(io.inputs[0], first + i * lines.inner);
        const bool better = is_nan(x) ? !is_nan(best) : largest ? x > best : x < best;
        const bool equal = x == best || (is_nan(x) && is_nan(best));
        if (!better && !(last && equal)) continue;
        best = x;
        best_index = i;
      }
      io.out<int64_t>(0)[out++] = best_index;
    });
  });
}

KernelResult make_arg(const NodeView& v, bool largest) {
  const DType dtype = v.in(0).dtype;
  const AxisView lines(v.in_dims(0), v.attrs().i("axis"));
  const bool last = v.attrs().i("select_last", 0) != 0;
  return with_domain(dtype,
                     [&](auto zero) { return make_arg_kernel<decltype(zero)>(lines, dtype, largest, last); });
}

}  // namespace

LIMBER_REF_KERNEL(ReduceSum, make_reduction(v))
LIMBER_REF_KERNEL(ReduceMean, make_reduction(v))
LIMBER_REF_KERNEL(ReduceMax, make_reduction(v))
LIMBER_REF_KERNEL(ReduceMin, make_reduction(v))
LIMBER_REF_KERNEL(ReduceProd, make_reduction(v))
LIMBER_REF_KERNEL(ReduceL1, make_reduction(v))
LIMBER_REF_KERNEL(ReduceL2, make_reduction(v))
LIMBER_REF_KERNEL(ReduceLogSum, make_reduction(v))
LIMBER_REF_KERNEL(ReduceLogSumExp, make_reduction(v))
LIMBER_REF_KERNEL(ReduceSumSquare, make_reduction(v))
LIMBER_REF_KERNEL(ProdBackward, make_prod_backward(v))
LIMBER_REF_KERNEL(ArgMax, make_arg(v, true))
LIMBER_REF_KERNEL(ArgMin, make_arg(v, false))

}  // namespace limber::ref
