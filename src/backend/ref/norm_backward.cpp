// Gradients of normalisation. Sums are in double; what several sums need is computed anew for each.
#include "backend/ref/element.h"
#include "backend/ref/factory.h"

namespace limber::ref {
namespace {

KernelResult make_batch_norm_backward(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const Dims x = v.in_dims(0);
  const int64_t batch = x[0], channels = x[1], size = x.product(2, x.rank);
  const auto elem = access<double>(v.in(0).dtype);
  const bool frozen = v.attrs().i("frozen", 0) != 0, relu = v.attrs().s("act", "") == "relu";
  const bool wants_x = v.has_out(0), wants_scale = v.has_out(1), wants_bias = v.has_out(2);
  return make_kernel([=](const KernelIo& io) {
    for (int64_t c = 0; c < channels; ++c) {
      const auto param = [&](size_t i) { return elem.load(io.inputs[i], c); };
      const double scale = param(2), bias = param(3), mean = param(4), inv_std = param(5);
      const auto normal = [&](int64_t i) { return (elem.load(io.inputs[0], i) - mean) * inv_std; };
      const auto gradient = [&](int64_t i) {
        return relu && !(normal(i) * scale + bias > 0) ? 0.0 : elem.load(io.inputs[1], i);
      };
      const auto each_index = [&](auto&& f) {
        for (int64_t n = 0; n < batch; ++n) {
          for (int64_t i = 0; i < size; ++i) f((n * channels + c) * size + i);
        }
      };
      double dscale = 0, dbias = 0;
      each_index([&](int64_t i) {
        dscale += gradient(i) * normal(i);
        dbias += gradient(i);
      });
      if (wants_scale) elem.store(io.outputs[1], c, dscale);
      if (wants_bias) elem.store(io.outputs[2], c, dbias);
      if (!wants_x) continue;
      const auto count = static_cast<double>(batch * size);
      each_index([&](int64_t i) {
        const double through_statistics = frozen ? 0.0 : (dbias + normal(i) * dscale) / count;
        elem.store(io.outputs[0], i, (gradient(i) - through_statistics) * scale * inv_std);
      });
    }
  });
}

// x as rows of `size` elements, each normalised on its own.
struct LayerNormGradient {
  int64_t rows, size;
  Access<double> elem;
  Dims row, scale_strides;
  bool has_scale;

  // Elements i of row r.
  double normal(const KernelIo& io, int64_t r, int64_t i) const {
    return (elem.load(io.inputs[0], r * size + i) - elem.load(io.inputs[2], r)) * elem.load(io.inputs[3], r);
  }
  double dy(const KernelIo& io, int64_t r, int64_t i) const { return elem.load(io.inputs[1], r * size + i); }

  void parameters(const KernelIo& io, bool scale, bool bias) const {
    for (int64_t i = 0; i < size; ++i) {
      double dscale = 0, dbias = 0;
      for (int64_t r = 0; r < rows; ++r) {
        dscale += dy(io, r, i) * normal(io, r, i);
        dbias += dy(io, r, i);
      }
      if (scale) elem.store(io.outputs[1], i, dscale);
      if (bias) elem.store(io.outputs[2], i, dbias);
    }
  }

  void input(const KernelIo& io, int64_t r) const {
    // f(i, gradient of the normalised element i)
    const auto each = [&](auto&& f) {
      int64_t i = 0;
      walk<1>(row, {scale_strides}, [&](const Dims&, const std::array<int64_t, 1>& at) {
        f(i, dy(io, r, i) * (has_scale ? elem.load(io.inputs[4], at[0]) : 1.0));
        ++i;
      });
    };
    double sum = 0, sum_normal = 0;
    each([&](int64_t i, double g) {
      sum += g;
      sum_normal += g * normal(io, r, i);
    });
    const double inv_std = elem.load(io.inputs[3], r), count = static_cast<double>(size);
    each([&](int64_t i, double g) {
      elem.store(io.outputs[0], r * size + i, inv_std * (g - (sum + normal(io, r, i) * sum_normal) / count));
    });
  }
};

KernelResult make_layer_norm_backward(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const Dims x = v.in_dims(0);
  const auto axis = static_cast<int>(v.attrs().i("axis"));
  const Shape row(std::vector<Dim>(v.in(0).shape.begin() + axis, v.in(0).shape.end()));
  const bool has_scale = v.has_in(4);
  const LayerNormGradient g{x.product(0, axis),
                            x.product(axis, x.rank),
                            access<double>(v.in(0).dtype),
                            dims_of(row),
                            has_scale ? broadcast_strides(v.in(4).shape, row) : Dims{},
                            has_scale};
  const bool wants_x = v.has_out(0), wants_scale = v.has_out(1), wants_bias = v.has_out(2);
  return make_kernel([=](const KernelIo& io) {
    for (int64_t r = 0; wants_x && r < g.rows; ++r) g.input(io, r);
    if (wants_scale || wants_bias) g.parameters(io, wants_scale, wants_bias);
  });
}

}  // namespace

LIMBER_REF_KERNEL(BatchNormBackward, make_batch_norm_backward(v))
LIMBER_REF_KERNEL(LayerNormBackward, make_layer_norm_backward(v))

}  // namespace limber::ref
