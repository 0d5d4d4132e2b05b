// Operators whose indices are run-time data. Indices outside an axis are treated as resolve_index says;
// reading from an axis without elements gives zeros.
#include <algorithm>
#include <cstring>
#include <functional>

#include "backend/ref/element.h"
#include "backend/ref/factory.h"

namespace limber::ref {
namespace {

using LoadIndex = int64_t (*)(const void* base, int64_t i);

LoadIndex index_loader(const NodeView& v, int input) { return access<int64_t>(v.in(input).dtype).load; }

KernelResult make_zeros(const NodeView& v) {
  const size_t bytes = v.out(0).bytes();
  return make_kernel([=](const KernelIo& io) {
    if (bytes != 0) std::memset(io.outputs[0], 0, bytes);
  });
}

KernelResult make_gather(const NodeView& v) {
  const AxisView x(v.in_dims(0), v.attrs().i("axis"));
  if (x.outer * x.size * x.inner == 0) return make_zeros(v);
  const int64_t count = v.in(1).shape.elements();
  const LoadIndex load = index_loader(v, 1);
  const size_t run = static_cast<size_t>(x.inner) * dtype_size(v.in(0).dtype);
  return make_kernel([=](const KernelIo& io) {
    for (int64_t o = 0; o < x.outer; ++o) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t from = o * x.size + resolve_index(load(io.inputs[1], i), x.size);
        copy_element(io.outputs[0], o * count + i, io.inputs[0], from, run);
      }
    }
  });
}

// One line of dx at a time is summed in scratch.
KernelResult make_gather_backward(const NodeView& v) {
  if (!is_float(v.in(0).dtype)) return no_kernel(v, v.in(0).dtype);
  const AxisView x(v.out_dims(0), v.attrs().i("axis"));
  if (x.outer * x.size * x.inner == 0) return make_zeros(v);
  const int64_t count = v.in(1).shape.elements();
  const LoadIndex load = index_loader(v, 1);
  const auto elem = access<double>(v.in(0).dtype);
  const auto run = [=](const KernelIo& io) {
    auto* acc = static_cast<double*>(io.scratch);
    x.each_line([&](int64_t first) {
      const int64_t outer = first / (x.size * x.inner), inner = first % x.inner;
      std::fill_n(acc, x.size, 0.0);
      for (int64_t i = 0; i < count; ++i) {
        acc[resolve_index(load(io.inputs[1], i), x.size)] +=
            elem.load(io.inputs[0], (outer * count + i) * x.inner + inner);
      }
      for (int64_t i = 0; i < x.size; ++i) elem.store(io.outputs[0], first + i * x.inner, acc[i]);
    });
  };
  return make_kernel(run, static_cast<size_t>(x.size) * sizeof(double));
}

KernelResult make_gather_elements(const NodeView& v) {
  const Dims x = v.in_dims(0), indices = v.in_dims(1);
  if (x.elements() == 0) return make_zeros(v);
  const auto axis = static_cast<int>(v.attrs().i("axis"));
  const LoadIndex load = index_loader(v, 1);
  const size_t size = dtype_size(v.in(0).dtype);
  Dims strides = strides_for(x);
  const int64_t step = strides[axis], limit = x[axis];
  strides[axis] = 0;
  return make_kernel([=](const KernelIo& io) {
    int64_t i = 0;
    walk<1>(indices, {strides}, [&](const Dims&, const std::array<int64_t, 1>& at) {
      const int64_t from = at[0] + resolve_index(load(io.inputs[1], i), limit) * step;
      copy_element(io.outputs[0], i++, io.inputs[0], from, size);
    });
  });
}

// Tuples of indices (the last axis of `indices`) that address slices of x after `batch_dims` axes.
struct Tuples {
  int64_t batches = 1, per_batch = 1, length = 0, slice = 1, batch_stride = 1;
  Dims limits, strides;  // of the addressed axes; strides in elements of x
  LoadIndex load = nullptr;

  // Offset in x of the slice that tuple t of `indices` addresses, within its batch.
  int64_t offset(const void* indices, int64_t t) const {
    int64_t result = 0;
    for (int k = 0; k < limits.rank; ++k) {
      result += resolve_index(load(indices, t * length + k), limits[k]) * strides[k];
    }
    return result;
  }
};

Tuples tuples_of(const NodeView& v, int batch_dims) {
  const Dims x = v.in_dims(0), indices = v.in_dims(1), strides = strides_for(x);
  Tuples t;
  t.length = indices[indices.rank - 1];
  const int end = batch_dims + static_cast<int>(t.length);
  t.batches = x.product(0, batch_dims);
  t.per_batch = indices.product(batch_dims, indices.rank - 1);
  t.slice = x.product(end, x.rank);
  t.batch_stride = x.product(batch_dims, x.rank);
  t.load = index_loader(v, 1);
  for (int axis = batch_dims; axis < end; ++axis) {
    t.limits.push_back(x[axis]);
    t.strides.push_back(strides[axis]);
  }
  return t;
}

KernelResult make_gather_nd(const NodeView& v) {
  if (v.in(0).shape.elements() == 0) return make_zeros(v);
  const Tuples t = tuples_of(v, static_cast<int>(v.attrs().i("batch_dims", 0)));
  const size_t size = dtype_size(v.in(0).dtype), run = static_cast<size_t>(t.slice) * size;
  return make_kernel([=](const KernelIo& io) {
    for (int64_t i = 0; i < t.batches * t.per_batch; ++i) {
      const int64_t from = i / t.per_batch * t.batch_stride + t.offset(io.inputs[1], i);
      std::memcpy(io.out<std::byte>(0) + static_cast<size_t>(i) * run,
                  io.in<std::byte>(0) + static_cast<size_t>(from) * size, run);
    }
  });
}

// How an update meets what is there: y[to] = combine(y[to], updates[from]).
using Combine = std::function<void(void* y, int64_t to, const void* updates, int64_t from)>;

template <typename C>
Combine combine_with(DType dtype, C (*fn)(C, C)) {
  const auto elem = access<C>(dtype);
  return [=](void* y, int64_t to, const void* updates, int64_t from) {
    elem.store(y, to, fn(elem.load(y, to), elem.load(updates, from)));
  };
}

Result<Combine> combine_of(const NodeView& v) {
  const std::string reduction = v.attrs().s("reduction", "none");
  const DType dtype = v.in(0).dtype;
  const size_t size = dtype_size(dtype);
  if (reduction == "none") {
    return Combine([size](void* y, int64_t to, const void* updates, int64_t from) {
      copy_element(y, to, updates, from, size);
    });
  }
  if (dtype == DType::kBool) return no_kernel(v, dtype);
  return with_domain(dtype, [&](auto zero) -> Result<Combine> {
    using C = decltype(zero);
    if (reduction == "add") return combine_with<C>(dtype, &wrapping_add<C>);
    if (reduction == "mul") return combine_with<C>(dtype, &wrapping_mul<C>);
    if (reduction == "max") return combine_with<C>(dtype, &maximum<C>);
    if (reduction == "min") return combine_with<C>(dtype, &minimum<C>);
    return unsupported("{} '{}': reduction '{}'; known are none, add, mul, max, min", op_name(v.node.op),
                       v.node.name, reduction);
  });
}

KernelResult make_scatter_elements(const NodeView& v) {
  LIMBER_ASSIGN(const Combine combine, combine_of(v));
  const Dims x = v.in_dims(0), indices = v.in_dims(1);
  if (x.elements() == 0) return make_zeros(v);
  const auto axis = static_cast<int>(v.attrs().i("axis"));
  const LoadIndex load = index_loader(v, 1);
  const size_t bytes = v.in(0).bytes();
  Dims strides = strides_for(x);
  const int64_t step = strides[axis], limit = x[axis];
  strides[axis] = 0;
  return make_kernel([=](const KernelIo& io) {
    std::memcpy(io.outputs[0], io.inputs[0], bytes);
    int64_t i = 0;
    walk<1>(indices, {strides}, [&](const Dims&, const std::array<int64_t, 1>& at) {
      const int64_t to = at[0] + resolve_index(load(io.inputs[1], i), limit) * step;
      combine(io.outputs[0], to, io.inputs[2], i++);
    });
  });
}

KernelResult make_scatter_nd(const NodeView& v) {
  LIMBER_ASSIGN(const Combine combine, combine_of(v));
  if (v.in(0).shape.elements() == 0) return make_zeros(v);
  const Tuples t = tuples_of(v, 0);
  const size_t bytes = v.in(0).bytes();
  return make_kernel([=](const KernelIo& io) {
    std::memcpy(io.outputs[0], io.inputs[0], bytes);
    for (int64_t i = 0; i < t.per_batch; ++i) {
      const int64_t to = t.offset(io.inputs[1], i);
      for (int64_t k = 0; k < t.slice; ++k) combine(io.outputs[0], to + k, io.inputs[2], i * t.slice + k);
    }
  });
}

// An index outside [-depth, depth) switches nothing on.
KernelResult make_one_hot(const NodeView& v) {
  const AxisView y(v.out_dims(0), v.attrs().i("axis"));
  const LoadIndex load = index_loader(v, 0);
  const size_t size = dtype_size(v.in(1).dtype);
  return make_kernel([=](const KernelIo& io) {
    for (int64_t i = 0; i < y.outer * y.size * y.inner; ++i) {
      const int64_t position = i / y.inner % y.size;
      int64_t hot = load(io.inputs[0], i / (y.size * y.inner) * y.inner + i % y.inner);
      if (hot < 0) hot += y.size;
      copy_element(io.outputs[0], i, io.inputs[1], hot == position ? 1 : 0, size);
    }
  });
}

KernelResult make_reverse_sequence(const NodeView& v) {
  const Dims x = v.in_dims(0), strides = strides_for(x);
  const auto batch = static_cast<int>(v.attrs().i("batch_axis")),
             time = static_cast<int>(v.attrs().i("time_axis"));
  const LoadIndex load = index_loader(v, 1);
  const size_t size = dtype_size(v.in(0).dtype);
  return make_kernel([=](const KernelIo& io) {
    int64_t i = 0;
    walk<1>(x, {strides}, [&](const Dims& index, const std::array<int64_t, 1>& at) {
      const int64_t length = std::min(load(io.inputs[1], index[batch]), x[time]), t = index[time];
      const int64_t source = t < length ? length - 1 - t : t;
      copy_element(io.outputs[0], i++, io.inputs[0], at[0] + (source - t) * strides[time], size);
    });
  });
}

}  // namespace

LIMBER_REF_KERNEL(Gather, make_gather(v))
LIMBER_REF_KERNEL(GatherBackward, make_gather_backward(v))
LIMBER_REF_KERNEL(GatherElements, make_gather_elements(v))
LIMBER_REF_KERNEL(GatherND, make_gather_nd(v))
LIMBER_REF_KERNEL(ScatterElements, make_scatter_elements(v))
LIMBER_REF_KERNEL(ScatterND, make_scatter_nd(v))
LIMBER_REF_KERNEL(OneHot, make_one_hot(v))
LIMBER_REF_KERNEL(ReverseSequence, make_reverse_sequence(v))

}  // namespace limber::ref
