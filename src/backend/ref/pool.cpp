// Pooling over the spatial axes of x[N,C,spatial..], and its gradients.
#include <algorithm>
#include <cmath>

#include "backend/ref/element.h"
#include "backend/ref/factory.h"

namespace limber::ref {
namespace {

struct Windows {
  int64_t planes = 0;  // N * C
  Dims in, out, kernel, stride, dilation, begin_pad, end_pad;

  int64_t plane_size() const { return in.elements(); }
};

Dims spatial_dims(const Dims& dims) {
  Dims result;
  for (int axis = 2; axis < dims.rank; ++axis) result.push_back(dims[axis]);
  return result;
}

Dims dims_from(const std::vector<int64_t>& values, size_t first, int count) {
  Dims result;
  for (int i = 0; i < count; ++i) result.push_back(values[first + static_cast<size_t>(i)]);
  return result;
}

Dims all(int64_t value, int rank) {
  Dims result;
  for (int i = 0; i < rank; ++i) result.push_back(value);
  return result;
}

Windows windows_of(const NodeView& v, const Dims& x, const Dims& y) {
  const int rank = x.rank - 2;
  Windows w;
  w.planes = x[0] * x[1];
  w.in = spatial_dims(x);
  w.out = spatial_dims(y);
  w.kernel = dims_from(v.attrs().ints("kernel"), 0, rank);
  w.stride = dims_from(v.attrs().ints("strides"), 0, rank);
  w.dilation = v.attrs().has("dilations") ? dims_from(v.attrs().ints("dilations"), 0, rank) : all(1, rank);
  w.begin_pad = dims_from(v.attrs().ints("pads"), 0, rank);
  w.end_pad = dims_from(v.attrs().ints("pads"), static_cast<size_t>(rank), rank);
  return w;
}

Windows windows_of(const NodeView& v) {
  return windows_of(v, v.in_dims(0), v.out_dims(v.has_out(0) ? 0 : 1));
}

// The same for the global operators: one window, everything.
Windows global_window(const NodeView& v) {
  const Dims x = v.in_dims(0);
  const int rank = x.rank - 2;
  Windows w;
  w.planes = x[0] * x[1];
  w.in = w.kernel = spatial_dims(x);
  w.out = w.stride = w.dilation = all(1, rank);
  w.begin_pad = w.end_pad = all(0, rank);
  return w;
}

// One window. `declared` counts its cells in the plane and in the padding; cells beyond that, which only
// ceil_mode reaches, do not count.
struct Window {
  Dims first, taps;  // position of the first cell in the plane, and how many there are, per axis
  int64_t declared = 1;
};

Window window_at(const Windows& w, const Dims& index) {
  const auto steps = [](int64_t distance, int64_t step) {
    return distance <= 0 ? 0 : (distance + step - 1) / step;
  };
  Window result;
  for (int axis = 0; axis < w.in.rank; ++axis) {
    const int64_t start = index[axis] * w.stride[axis] - w.begin_pad[axis], step = w.dilation[axis];
    const int64_t skipped = steps(-start, step);
    const int64_t end = std::min(w.kernel[axis], steps(w.in[axis] - start, step));
    result.first.push_back(start + skipped * step);
    result.taps.push_back(std::max<int64_t>(0, end - skipped));
    result.declared *= std::min(w.kernel[axis], steps(w.in[axis] + w.end_pad[axis] - start, step));
  }
  return result;
}

// Calls f(offset, position) for the window's cells in the plane.
template <typename F>
void visit(const Windows& w, const Window& window, F&& f) {
  Dims strides = strides_for(w.in);
  int64_t base = 0;
  for (int axis = 0; axis < w.in.rank; ++axis) {
    base += window.first[axis] * strides[axis];
    strides[axis] *= w.dilation[axis];
  }
  walk<1>(window.taps, {strides}, [&](const Dims& tap, const std::array<int64_t, 1>& at) {
    Dims position = window.first;
    for (int axis = 0; axis < tap.rank; ++axis) position[axis] += tap[axis] * w.dilation[axis];
    f(base + at[0], position);
  });
}

// The index of a cell in its plane when the first spatial axis runs fastest.
int64_t column_major(const Dims& dims, const Dims& position) {
  int64_t index = 0, stride = 1;
  for (int axis = 0; axis < dims.rank; ++axis) {
    index += position[axis] * stride;
    stride *= dims[axis];
  }
  return index;
}

// A window that holds only padding gives the lowest number and index -1.
template <typename C>
KernelResult make_max_pool_kernel(const Windows& w, DType dtype, bool values, bool indices, bool columns) {
  const auto elem = access<C>(dtype);
  const C low = lowest<C>(dtype);
  return make_kernel([=](const KernelIo& io) {
    int64_t out = 0;
    for (int64_t plane = 0; plane < w.planes; ++plane) {
      const int64_t first = plane * w.plane_size();
      walk<0>(w.out, {}, [&](const Dims& index, const std::array<int64_t, 0>&) {
        C best = low;
        int64_t best_index = -1;
        visit(w, window_at(w, index), [&](int64_t offset, const Dims& position) {
          const C x = elem.load(io.inputs[0], first + offset);
          if (best_index >= 0 && !(x > best) && !(is_nan(x) && !is_nan(best))) return;
          best = x;
          best_index = first + (columns ? column_major(w.in, position) : offset);
        });
        if (values) elem.store(io.outputs[0], out, best);
        if (indices) io.out<int64_t>(1)[out] = best_index;
        ++out;
      });
    }
  });
}

KernelResult make_max_pool(const NodeView& v, const Windows& w) {
  const DType dtype = v.in(0).dtype;
  const bool columns = v.attrs().i("storage_order", 0) != 0;
  return with_domain(dtype, [&](auto zero) {
    return make_max_pool_kernel<decltype(zero)>(w, dtype, v.has_out(0), v.has_out(1), columns);
  });
}

KernelResult make_average_pool(const NodeView& v, const Windows& w) {
  LIMBER_TRY(check_floats(v));
  const auto elem = access<double>(v.in(0).dtype);
  const bool include_pad = v.attrs().i("count_include_pad", 0) != 0;
  return make_kernel([=](const KernelIo& io) {
    int64_t out = 0;
    for (int64_t plane = 0; plane < w.planes; ++plane) {
      const int64_t first = plane * w.plane_size();
      walk<0>(w.out, {}, [&](const Dims& index, const std::array<int64_t, 0>&) {
        double sum = 0;
        const Window window = window_at(w, index);
        visit(w, window,
              [&](int64_t offset, const Dims&) { sum += elem.load(io.inputs[0], first + offset); });
        const int64_t count = include_pad ? window.declared : window.taps.elements();
        elem.store(io.outputs[0], out++, sum / static_cast<double>(std::max<int64_t>(1, count)));
      });
    }
  });
}

KernelResult make_lp_pool(const NodeView& v, const Windows& w) {
  LIMBER_TRY(check_floats(v));
  const auto elem = access<double>(v.in(0).dtype);
  const auto p = static_cast<double>(v.attrs().i("p"));
  return make_kernel([=](const KernelIo& io) {
    int64_t out = 0;
    for (int64_t plane = 0; plane < w.planes; ++plane) {
      const int64_t first = plane * w.plane_size();
      walk<0>(w.out, {}, [&](const Dims& index, const std::array<int64_t, 0>&) {
        double sum = 0;
        visit(w, window_at(w, index), [&](int64_t offset, const Dims&) {
          sum += std::pow(std::fabs(elem.load(io.inputs[0], first + offset)), p);
        });
        elem.store(io.outputs[0], out++, std::pow(sum, 1.0 / p));
      });
    }
  });
}

// dx plane by plane, summed in scratch: f(io, window, y, acc, first) adds what window number y of all,
// whose plane of x starts at `first`, gives.
template <typename F>
KernelResult make_pool_backward(const NodeView& v, const Windows& w, F f) {
  const auto elem = access<double>(v.out(0).dtype);
  const auto run = [=](const KernelIo& io) {
    auto* acc = static_cast<double*>(io.scratch);
    int64_t y = 0;
    for (int64_t plane = 0; plane < w.planes; ++plane) {
      const int64_t first = plane * w.plane_size();
      std::fill_n(acc, w.plane_size(), 0.0);
      walk<0>(w.out, {}, [&](const Dims& index, const std::array<int64_t, 0>&) {
        f(io, window_at(w, index), y++, acc, first);
      });
      for (int64_t i = 0; i < w.plane_size(); ++i) elem.store(io.outputs[0], first + i, acc[i]);
    }
  };
  return make_kernel(run, static_cast<size_t>(w.plane_size()) * sizeof(double));
}

KernelResult make_max_pool_backward(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const Windows w = windows_of(v, v.in_dims(0), v.in_dims(1));
  const auto elem = access<double>(v.in(0).dtype);
  return make_pool_backward(
      v, w, [=](const KernelIo& io, const Window& window, int64_t y, double* acc, int64_t first) {
        double best = 0;
        int64_t best_offset = -1;
        visit(w, window, [&](int64_t offset, const Dims&) {
          const double x = elem.load(io.inputs[0], first + offset);
          if (best_offset >= 0 && !(x > best) && !(is_nan(x) && !is_nan(best))) return;
          best = x;
          best_offset = offset;
        });
        if (best_offset >= 0) acc[best_offset] += elem.load(io.inputs[1], y);
      });
}

KernelResult make_average_pool_backward(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const Windows w = windows_of(v, v.out_dims(0), v.in_dims(0));
  const auto elem = access<double>(v.in(0).dtype);
  const bool include_pad = v.attrs().i("count_include_pad", 0) != 0;
  return make_pool_backward(
      v, w, [=](const KernelIo& io, const Window& window, int64_t y, double* acc, int64_t) {
        const int64_t count = include_pad ? window.declared : window.taps.elements();
        const double share = elem.load(io.inputs[0], y) / static_cast<double>(std::max<int64_t>(1, count));
        visit(w, window, [&](int64_t offset, const Dims&) { acc[offset] += share; });
      });
}

}  // namespace

LIMBER_REF_KERNEL(MaxPool, make_max_pool(v, windows_of(v)))
LIMBER_REF_KERNEL(AveragePool, make_average_pool(v, windows_of(v)))
LIMBER_REF_KERNEL(LpPool, make_lp_pool(v, windows_of(v)))
LIMBER_REF_KERNEL(GlobalMaxPool, make_max_pool(v, global_window(v)))
LIMBER_REF_KERNEL(GlobalAveragePool, make_average_pool(v, global_window(v)))
LIMBER_REF_KERNEL(GlobalLpPool, make_lp_pool(v, global_window(v)))
LIMBER_REF_KERNEL(MaxPoolBackward, make_max_pool_backward(v))
LIMBER_REF_KERNEL(AveragePoolBackward, make_average_pool_backward(v))

}  // namespace limber::ref
