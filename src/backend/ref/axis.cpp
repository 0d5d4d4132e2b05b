// Operators that work along one axis: the softmax family, TopK, CumSum.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/ref/element.h"
#include "backend/ref/factory.h"

namespace limber::ref {
namespace {

KernelResult make_softmax(const NodeView& v, bool logarithm) {
  LIMBER_TRY(check_floats(v));
  const AxisView lines(v.in_dims(0), v.attrs().i("axis"));
  const auto elem = access<double>(v.in(0).dtype);
  return make_kernel([=](const KernelIo& io) {
    lines.each_line([&](int64_t first) {
      const auto load = [&](int64_t i) { return elem.load(io.inputs[0], first + i * lines.inner); };
      double top = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t i = 0; i < lines.size; ++i) top = maximum(top, load(i));
      for (int64_t i = 0; i < lines.size; ++i) sum += std::exp(load(i) - top);
      for (int64_t i = 0; i < lines.size; ++i) {
        const double y = logarithm ? load(i) - top - std::log(sum) : std::exp(load(i) - top) / sum;
        elem.store(io.outputs[0], first + i * lines.inner, y);
      }
    });
  });
}

KernelResult make_hardmax(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const AxisView lines(v.in_dims(0), v.attrs().i("axis"));
  const auto elem = access<double>(v.in(0).dtype);
  return make_kernel([=](const KernelIo& io) {
    lines.each_line([&](int64_t first) {
      const auto load = [&](int64_t i) { return elem.load(io.inputs[0], first + i * lines.inner); };
      int64_t best = 0;
      for (int64_t i = 1; i < lines.size; ++i) {
        if (load(i) > load(best)) best = i;
      }
      for (int64_t i = 0; i < lines.size; ++i) {
        elem.store(io.outputs[0], first + i * lines.inner, i == best ? 1.0 : 0.0);
      }
    });
  });
}

KernelResult make_softmax_backward(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const AxisView lines(v.in_dims(0), v.attrs().i("axis"));
  const auto elem = access<double>(v.in(0).dtype);
  return make_kernel([=](const KernelIo& io) {
    lines.each_line([&](int64_t first) {
      const auto y = [&](int64_t i) { return elem.load(io.inputs[0], first + i * lines.inner); };
      const auto dy = [&](int64_t i) { return elem.load(io.inputs[1], first + i * lines.inner); };
      double sum = 0;
      for (int64_t i = 0; i < lines.size; ++i) sum += dy(i) * y(i);
      for (int64_t i = 0; i < lines.size; ++i)
        elem.store(io.outputs[0], first + i * lines.inner, (dy(i) - sum) * y(i));
    });
  });
}

// NaN counts as the largest number, which makes this a total order that std::partial_sort may use.
template <typename C>
bool before(C a, C b, bool largest) {
  if (is_nan(a) || is_nan(b)) return largest ? is_nan(a) && !is_nan(b) : !is_nan(a) && is_nan(b);
  return largest ? a > b : a < b;
}

template <typename C>
KernelResult make_topk_kernel(const NodeView& v, int64_t k) {
  const AxisView lines(v.in_dims(0), v.attrs().i("axis"));
  const auto elem = access<C>(v.in(0).dtype);
  const bool largest = v.attrs().i("largest", 1) != 0;
  const bool values = v.has_out(0), indices = v.has_out(1);
  const auto run = [=](const KernelIo& io) {
    if (k == 0) return;
    auto* order = static_cast<int64_t*>(io.scratch);
    lines.each_line([&](int64_t first) {
      const auto load = [&](int64_t i) { return elem.load(io.inputs[0], first + i * lines.inner); };
      std::iota(order, order + lines.size, int64_t{0});
      std::partial_sort(order, order + k, order + lines.size, [&](int64_t a, int64_t b) {
        const C x = load(a), y = load(b);
        return before(x, y, largest) || (!before(y, x, largest) && a < b);
      });
      const int64_t line = first / (lines.size * lines.inner) * k * lines.inner + first % lines.inner;
      for (int64_t i = 0; i < k; ++i) {
        if (values) elem.store(io.outputs[0], line + i * lines.inner, load(order[i]));
        if (indices) io.out<int64_t>(1)[line + i * lines.inner] = order[i];
      }
    });
  };
  return make_kernel(run, static_cast<size_t>(lines.size) * sizeof(int64_t));
}

KernelResult make_topk(const NodeView& v) {
  const int64_t k = v.attrs().i("k"), size = v.in(0).shape.dim(static_cast<int>(v.attrs().i("axis")));
  if (k < 0 || k > size) return invalid("TopK '{}': k = {} of {} elements", v.node.name, k, size);
  return with_domain(v.in(0).dtype, [&](auto zero) { return make_topk_kernel<decltype(zero)>(v, k); });
}

KernelResult make_cumsum(const NodeView& v) {
  const DType dtype = v.in(0).dtype;
  if (dtype == DType::kBool) return no_kernel(v, dtype);
  const AxisView lines(v.in_dims(0), v.attrs().i("axis"));
  const bool exclusive = v.attrs().i("exclusive", 0) != 0, reverse = v.attrs().i("reverse", 0) != 0;
  return with_domain(dtype, [&](auto zero) -> KernelResult {
    using C = decltype(zero);
    const auto elem = access<C>(dtype);
    return make_kernel([=](const KernelIo& io) {
      lines.each_line([&](int64_t first) {
        C sum = 0;
        for (int64_t step = 0; step < lines.size; ++step) {
          const int64_t at = first + (reverse ? lines.size - 1 - step : step) * lines.inner;
          const C after = wrapping_add(sum, elem.load(io.inputs[0], at));
          elem.store(io.outputs[0], at, exclusive ? sum : after);
          sum = after;
        }
      });
    });
  });
}

}  // namespace

LIMBER_REF_KERNEL(Softmax, make_softmax(v, false))
LIMBER_REF_KERNEL(LogSoftmax, make_softmax(v, true))
LIMBER_REF_KERNEL(SoftmaxBackward, make_softmax_backward(v))
LIMBER_REF_KERNEL(Hardmax, make_hardmax(v))
LIMBER_REF_KERNEL(TopK, make_topk(v))
LIMBER_REF_KERNEL(CumSum, make_cumsum(v))

}  // namespace limber::ref
