// Normalisation. Statistics and results are in double.
#include <algorithm>
#include <cmath>

#include "backend/ref/element.h"
#include "backend/ref/factory.h"

namespace limber::ref {
namespace {

using Elem = Access<double>;

// An input or output of a node, whatever its floating type.
Elem elem_in(const NodeView& v, int i) { return access<double>(v.has_in(i) ? v.in(i).dtype : DType::kF32); }
Elem elem_out(const NodeView& v, int i) {
  return access<double>(v.has_out(i) ? v.out(i).dtype : DType::kF32);
}

struct Moments {
  double mean = 0, variance = 0;  // population variance
};

// Of the elements that each(f) hands to f, in two passes.
template <typename Each>
Moments moments(int64_t count, Each&& each) {
  Moments m;
  each([&](double x) { m.mean += x; });
  m.mean /= static_cast<double>(count);
  each([&](double x) { m.variance += (x - m.mean) * (x - m.mean); });
  m.variance /= static_cast<double>(count);
  return m;
}

// x[N,C,..] as N * C planes.
struct Planes {
  int64_t batch, channels, size;
  explicit Planes(const Dims& x) : batch(x[0]), channels(x[1]), size(x.product(2, x.rank)) {}
};

KernelResult make_batch_norm(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const Planes p(v.in_dims(0));
  const std::array<Elem, 5> in = {elem_in(v, 0), elem_in(v, 1), elem_in(v, 2), elem_in(v, 3), elem_in(v, 4)};
  const Elem out = elem_out(v, 0);
  const double epsilon = v.attrs().f("epsilon");
  return make_kernel([=](const KernelIo& io) {
    const auto param = [&](size_t i, int64_t c) { return in[i].load(io.inputs[i], c); };
    for (int64_t plane = 0; plane < p.batch * p.channels; ++plane) {
      const int64_t c = plane % p.channels;
      const double factor = param(1, c) / std::sqrt(param(4, c) + epsilon);
      for (int64_t i = plane * p.size; i < (plane + 1) * p.size; ++i) {
        out.store(io.outputs[0], i, (in[0].load(io.inputs[0], i) - param(3, c)) * factor + param(2, c));
      }
    }
  });
}

KernelResult make_batch_norm_training(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const Planes p(v.in_dims(0));
  const std::array<Elem, 5> in = {elem_in(v, 0), elem_in(v, 1), elem_in(v, 2), elem_in(v, 3), elem_in(v, 4)};
  const Elem out = elem_out(v, 0), parameter = elem_in(v, 3);
  const std::array<bool, 5> wants = {v.has_out(0), v.has_out(1), v.has_out(2), v.has_out(3), v.has_out(4)};
  const double epsilon = v.attrs().f("epsilon"), momentum = v.attrs().f("momentum");
  const bool relu = v.attrs().s("act", "") == "relu";
  return make_kernel([=](const KernelIo& io) {
    for (int64_t c = 0; c < p.channels; ++c) {
      const auto each_index = [&](auto&& f) {
        for (int64_t n = 0; n < p.batch; ++n) {
          for (int64_t i = 0; i < p.size; ++i) f((n * p.channels + c) * p.size + i);
        }
      };
      const Moments m = moments(p.batch * p.size, [&](auto&& f) {
        each_index([&](int64_t i) { f(in[0].load(io.inputs[0], i)); });
      });
      const auto blend = [&](size_t i, double batch_value) {
        return in[i].load(io.inputs[i], c) * momentum + batch_value * (1.0 - momentum);
      };
      const double inv_std = 1.0 / std::sqrt(m.variance + epsilon);
      const std::array<double, 5> statistics = {0, blend(3, m.mean), blend(4, m.variance), m.mean, inv_std};
      for (size_t s = 1; s < 5; ++s) {
        if (wants[s]) parameter.store(io.outputs[s], c, statistics[s]);
      }
      if (!wants[0]) continue;
      // As they are stored: BatchNormApply has no others.
      const double mean = wants[3] ? parameter.load(io.outputs[3], c) : m.mean;
      const double factor =
          in[1].load(io.inputs[1], c) * (wants[4] ? parameter.load(io.outputs[4], c) : inv_std);
      const double bias = in[2].load(io.inputs[2], c);
      each_index([&](int64_t i) {
        const double y = (in[0].load(io.inputs[0], i) - mean) * factor + bias;
        out.store(io.outputs[0], i, relu && y < 0 ? 0.0 : y);
      });
    }
  });
}

KernelResult make_batch_norm_apply(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const Planes p(v.in_dims(0));
  const std::array<Elem, 5> in = {elem_in(v, 0), elem_in(v, 1), elem_in(v, 2), elem_in(v, 3), elem_in(v, 4)};
  const Elem out = elem_out(v, 0);
  const bool relu = v.attrs().s("act", "") == "relu";
  return make_kernel([=](const KernelIo& io) {
    for (int64_t i = 0; i < p.batch * p.channels * p.size; ++i) {
      const int64_t c = i / p.size % p.channels;
      const auto at = [&](size_t k) { return in[k].load(io.inputs[k], c); };
      const double y = (in[0].load(io.inputs[0], i) - at(3)) * (at(1) * at(4)) + at(2);
      out.store(io.outputs[0], i, relu && y < 0 ? 0.0 : y);
    }
  });
}

KernelResult make_layer_norm(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const Dims x = v.in_dims(0);
  const auto axis = static_cast<int>(v.attrs().i("axis"));
  const int64_t rows = x.product(0, axis), size = x.product(axis, x.rank);
  const double epsilon = v.attrs().f("epsilon");
  Dims row_dims;
  for (int i = axis; i < x.rank; ++i) row_dims.push_back(x[i]);
  const Shape row_shape(std::vector<Dim>(v.in(0).shape.begin() + axis, v.in(0).shape.end()));
  const bool has_scale = v.has_in(1), has_bias = v.has_in(2);
  const std::array<Dims, 2> strides = {has_scale ? broadcast_strides(v.in(1).shape, row_shape) : Dims{},
                                       has_bias ? broadcast_strides(v.in(2).shape, row_shape) : Dims{}};
  const std::array<Elem, 3> in = {elem_in(v, 0), elem_in(v, 1), elem_in(v, 2)};
  const std::array<Elem, 3> out = {elem_out(v, 0), elem_out(v, 1), elem_out(v, 2)};
  const bool wants_y = v.has_out(0), wants_mean = v.has_out(1), wants_inv = v.has_out(2);
  return make_kernel([=](const KernelIo& io) {
    for (int64_t r = 0; r < rows; ++r) {
      const Moments m = moments(size, [&](auto&& f) {
        for (int64_t i = r * size; i < (r + 1) * size; ++i) f(in[0].load(io.inputs[0], i));
      });
      const double inv_std = 1.0 / std::sqrt(m.variance + epsilon);
      if (wants_mean) out[1].store(io.outputs[1], r, m.mean);
      if (wants_inv) out[2].store(io.outputs[2], r, inv_std);
      if (!wants_y) continue;
      int64_t i = r * size;
      walk<2>(row_dims, strides, [&](const Dims&, const std::array<int64_t, 2>& at) {
        double y = (in[0].load(io.inputs[0], i) - m.mean) * inv_std;
        if (has_scale) y *= in[1].load(io.inputs[1], at[0]);
        if (has_bias) y += in[2].load(io.inputs[2], at[1]);
        out[0].store(io.outputs[0], i++, y);
      });
    }
  });
}

// InstanceNorm is GroupNorm with a group per channel.
KernelResult make_group_norm(const NodeView& v, int64_t groups) {
  LIMBER_TRY(check_floats(v));
  const Planes p(v.in_dims(0));
  const int64_t group_size = groups == 0 ? 0 : p.channels / groups * p.size;
  const std::array<Elem, 3> in = {elem_in(v, 0), elem_in(v, 1), elem_in(v, 2)};
  const Elem out = elem_out(v, 0);
  const double epsilon = v.attrs().f("epsilon");
  return make_kernel([=](const KernelIo& io) {
    for (int64_t g = 0; g < p.batch * groups; ++g) {
      const int64_t begin = g * group_size, end = begin + group_size;
      const Moments m = moments(group_size, [&](auto&& f) {
        for (int64_t i = begin; i < end; ++i) f(in[0].load(io.inputs[0], i));
      });
      const double inv_std = 1.0 / std::sqrt(m.variance + epsilon);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t c = i / p.size % p.channels;
        const double normal = (in[0].load(io.inputs[0], i) - m.mean) * inv_std;
        out.store(io.outputs[0], i, normal * in[1].load(io.inputs[1], c) + in[2].load(io.inputs[2], c));
      }
    }
  });
}

KernelResult make_lrn(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const Planes p(v.in_dims(0));
  const int64_t size = v.attrs().i("size");
  const double alpha = v.attrs().f("alpha"), beta = v.attrs().f("beta"), bias = v.attrs().f("bias");
  const Elem in = elem_in(v, 0), out = elem_out(v, 0);
  return make_kernel([=](const KernelIo& io) {
    for (int64_t plane = 0; plane < p.batch * p.channels; ++plane) {
      const int64_t c = plane % p.channels, first = plane - c;
      const int64_t begin = std::max<int64_t>(0, c - (size - 1) / 2);
      const int64_t end = std::min(p.channels, c + size / 2 + 1);
      for (int64_t i = 0; i < p.size; ++i) {
        double squares = 0;
        for (int64_t k = begin; k < end; ++k) {
          const double x = in.load(io.inputs[0], (first + k) * p.size + i);
          squares += x * x;
        }
        const double divisor = std::pow(bias + alpha / static_cast<double>(size) * squares, beta);
        out.store(io.outputs[0], plane * p.size + i, in.load(io.inputs[0], plane * p.size + i) / divisor);
      }
    }
  });
}

// A line of zeros stays zero.
KernelResult make_lp_norm(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const AxisView lines(v.in_dims(0), v.attrs().i("axis"));
  const bool l1 = v.attrs().i("p") == 1;
  const Elem in = elem_in(v, 0), out = elem_out(v, 0);
  return make_kernel([=](const KernelIo& io) {
    lines.each_line([&](int64_t first) {
      double sum = 0;
      for (int64_t i = 0; i < lines.size; ++i) {
        const double x = in.load(io.inputs[0], first + i * lines.inner);
        sum += l1 ? std::fabs(x) : x * x;
      }
      const double norm = l1 ? sum : std::sqrt(sum);
      for (int64_t i = 0; i < lines.size; ++i) {
        const double x = in.load(io.inputs[0], first + i * lines.inner);
        out.store(io.outputs[0], first + i * lines.inner, norm == 0 ? 0 : x / norm);
      }
    });
  });
}

}  // namespace

LIMBER_REF_KERNEL(BatchNorm, make_batch_norm(v))
LIMBER_REF_KERNEL(BatchNormTraining, make_batch_norm_training(v))
LIMBER_REF_KERNEL(BatchNormApply, make_batch_norm_apply(v))
LIMBER_REF_KERNEL(LayerNorm, make_layer_norm(v))
LIMBER_REF_KERNEL(InstanceNorm, make_group_norm(v, v.in(0).shape.dim(1)))
LIMBER_REF_KERNEL(GroupNorm, make_group_norm(v, v.attrs().i("groups")))
LIMBER_REF_KERNEL(LRN, make_lrn(v))
LIMBER_REF_KERNEL(LpNorm, make_lp_norm(v))

}  // namespace limber::ref
