// Convolution, its transpose and its gradients, with up to three spatial axes. Sums are in double: one
// plane of the output is accumulated in scratch, tap by tap, so that the inner loop runs along a row.
#include <algorithm>

#include "backend/ref/element.h"
#include "backend/ref/factory.h"
#include "backend/ref/unary.h"

namespace limber::ref {
namespace {

constexpr int kSpatial = 3;
using Spatial = std::array<int64_t, kSpatial>;

// Position p of the side that is convolved over (y of Conv, x of ConvTranspose) and tap k meet the
// other side at p * stride - pad + k * dilation.
struct Geometry {
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  Spatial in{}, out{}, kernel{}, stride{}, dilation{}, pad{};
};

int64_t volume(const Spatial& s) { return s[0] * s[1] * s[2]; }

// The last axes of `values` from index `first` on, with `fill` for the missing leading ones.
template <typename Values>
Spatial spatial(const Values& values, int first, int rank, int64_t fill) {
  Spatial result;
  result.fill(fill);
  for (int i = 0; i < rank; ++i) {
    result[static_cast<size_t>(kSpatial - rank + i)] = values[static_cast<size_t>(first + i)];
  }
  return result;
}

Result<Geometry> geometry_of(const NodeView& v, const Dims& x, const Dims& w, const Dims& y,
                             bool transposed) {
  const int rank = x.rank - 2;
  if (rank < 1 || rank > kSpatial) {
    return unsupported("{} '{}': {} spatial axes; the reference backend has 1 to {}", op_name(v.node.op),
                       v.node.name, rank, kSpatial);
  }
  Geometry g;
  g.batch = x[0];
  g.in_channels = x[1];
  g.groups = v.attrs().i("groups", 1);
  g.out_channels = transposed ? w[1] * g.groups : w[0];
  g.in = spatial(x.at, 2, rank, 1);
  g.out = spatial(y.at, 2, rank, 1);
  g.kernel = spatial(w.at, 2, rank, 1);
  g.stride = spatial(v.attrs().ints("strides"), 0, rank, 1);
  g.dilation = spatial(v.attrs().ints("dilations"), 0, rank, 1);
  g.pad = spatial(v.attrs().ints("pads"), 0, rank, 0);
  return g;
}

struct Range {
  int64_t begin, end;
};

// The p in [0, count) for which p * stride + shift lies in [0, limit).
Range meeting(int64_t count, int64_t stride, int64_t shift, int64_t limit) {
  const int64_t begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const int64_t end = limit <= shift ? 0 : (limit - shift - 1) / stride + 1;
  return {begin, std::min(end, count)};
}

// Calls f(p, q, count, tap) for every tap and every row: elements p, p + 1 ... of the plane that is
// convolved over meet q, q + stride ... of the other.
template <typename F>
void each_row(const Geometry& g, const Spatial& plane, const Spatial& other, F&& f) {
  int64_t tap = 0;
  const auto shift = [&](size_t axis, int64_t k) { return k * g.dilation[axis] - g.pad[axis]; };
  const auto range = [&](size_t axis, int64_t k) {
    return meeting(plane[axis], g.stride[axis], shift(axis, k), other[axis]);
  };
  for (int64_t kd = 0; kd < g.kernel[0]; ++kd) {
    for (int64_t kh = 0; kh < g.kernel[1]; ++kh) {
      for (int64_t kw = 0; kw < g.kernel[2]; ++kw, ++tap) {
        const Range ds = range(0, kd), hs = range(1, kh), ws = range(2, kw);
        if (ws.begin >= ws.end) continue;
        for (int64_t d = ds.begin; d < ds.end; ++d) {
          for (int64_t h = hs.begin; h < hs.end; ++h) {
            const int64_t od = d * g.stride[0] + shift(0, kd), oh = h * g.stride[1] + shift(1, kh);
            f((d * plane[1] + h) * plane[2] + ws.begin,
              (od * other[1] + oh) * other[2] + ws.begin * g.stride[2] + shift(2, kw), ws.end - ws.begin,
              tap);
          }
        }
      }
    }
  }
}

// What happens to a sum before it is stored: bias[o] first, then the residual and the activation.
struct Epilogue {
  bool bias = false, residual = false;
  Unary act;
};

template <typename Codec>
void finish_plane(const Epilogue& e, const KernelIo& io, const double* acc, int64_t count, int64_t first) {
  using Raw = typename Codec::Raw;
  Raw* y = io.out<Raw>(0) + first;
  const Raw* residual = e.residual ? io.in<Raw>(3) + first : nullptr;
  for (int64_t i = 0; i < count; ++i) {
    const double sum =
        residual == nullptr ? acc[i] : acc[i] + static_cast<double>(Codec::decode(residual[i]));
    y[i] = Codec::encode(e.act(sum));
  }
}

template <typename Codec>
void start_plane(const Epilogue& e, const KernelIo& io, double* acc, int64_t count, int64_t channel) {
  using Raw = typename Codec::Raw;
  std::fill_n(acc, count, e.bias ? static_cast<double>(Codec::decode(io.in<Raw>(2)[channel])) : 0.0);
}

template <typename Codec>
void run_conv(const Geometry& g, const Epilogue& e, const KernelIo& io) {
  using Raw = typename Codec::Raw;
  const int64_t group_in = g.in_channels / g.groups, group_out = g.out_channels / g.groups;
  const int64_t in_plane = volume(g.in), out_plane = volume(g.out), taps = volume(g.kernel);
  auto* acc = static_cast<double*>(io.scratch);
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t o = 0; o < g.out_channels; ++o) {
      start_plane<Codec>(e, io, acc, out_plane, o);
      for (int64_t c = 0; c < group_in; ++c) {
        const Raw* x = io.in<Raw>(0) + (n * g.in_channels + o / group_out * group_in + c) * in_plane;
        const Raw* w = io.in<Raw>(1) + (o * group_in + c) * taps;
        each_row(g, g.out, g.in, [&](int64_t p, int64_t q, int64_t count, int64_t tap) {
          const double weight = Codec::decode(w[tap]);
          for (int64_t i = 0; i < count; ++i) {
            acc[p + i] += weight * static_cast<double>(Codec::decode(x[q + i * g.stride[2]]));
          }
        });
      }
      finish_plane<Codec>(e, io, acc, out_plane, (n * g.out_channels + o) * out_plane);
    }
  }
}

template <typename Codec>
void run_conv_transpose(const Geometry& g, const Epilogue& e, const KernelIo& io) {
  using Raw = typename Codec::Raw;
  const int64_t group_in = g.in_channels / g.groups, group_out = g.out_channels / g.groups;
  const int64_t in_plane = volume(g.in), out_plane = volume(g.out), taps = volume(g.kernel);
  auto* acc = static_cast<double*>(io.scratch);
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t o = 0; o < g.out_channels; ++o) {
      start_plane<Codec>(e, io, acc, out_plane, o);
      for (int64_t c = o / group_out * group_in; c < (o / group_out + 1) * group_in; ++c) {
        const Raw* x = io.in<Raw>(0) + (n * g.in_channels + c) * in_plane;
        const Raw* w = io.in<Raw>(1) + (c * group_out + o % group_out) * taps;
        each_row(g, g.in, g.out, [&](int64_t p, int64_t q, int64_t count, int64_t tap) {
          const double weight = Codec::decode(w[tap]);
          for (int64_t i = 0; i < count; ++i) {
            acc[q + i * g.stride[2]] += weight * static_cast<double>(Codec::decode(x[p + i]));
          }
        });
      }
      finish_plane<Codec>(e, io, acc, out_plane, (n * g.out_channels + o) * out_plane);
    }
  }
}

// dw[o,c,tap] is the product of x and dy summed over wherever the tap made them meet.
template <typename Codec>
void run_conv_weights(const Geometry& g, bool bias, const KernelIo& io) {
  using Raw = typename Codec::Raw;
  const int64_t group_in = g.in_channels / g.groups, group_out = g.out_channels / g.groups;
  const int64_t in_plane = volume(g.in), out_plane = volume(g.out), taps = volume(g.kernel);
  auto* acc = static_cast<double*>(io.scratch);
  const auto dy_of = [&](int64_t n, int64_t o) {
    return io.in<Raw>(1) + (n * g.out_channels + o) * out_plane;
  };
  for (int64_t o = 0; o < g.out_channels; ++o) {
    for (int64_t c = 0; c < group_in; ++c) {
      std::fill_n(acc, taps, 0.0);
      for (int64_t n = 0; n < g.batch; ++n) {
        const Raw* x = io.in<Raw>(0) + (n * g.in_channels + o / group_out * group_in + c) * in_plane;
        const Raw* dy = dy_of(n, o);
        each_row(g, g.out, g.in, [&](int64_t p, int64_t q, int64_t count, int64_t tap) {
          for (int64_t i = 0; i < count; ++i) {
            acc[tap] += static_cast<double>(Codec::decode(dy[p + i])) *
                        static_cast<double>(Codec::decode(x[q + i * g.stride[2]]));
          }
        });
      }
      for (int64_t tap = 0; tap < taps; ++tap)
        io.out<Raw>(0)[(o * group_in + c) * taps + tap] = Codec::encode(acc[tap]);
    }
    if (!bias) continue;
    double sum = 0;
    for (int64_t n = 0; n < g.batch; ++n) {
      for (int64_t i = 0; i < out_plane; ++i) sum += static_cast<double>(Codec::decode(dy_of(n, o)[i]));
    }
    io.out<Raw>(1)[o] = Codec::encode(sum);
  }
}

KernelResult make_conv_weights(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  LIMBER_ASSIGN(const Geometry g, geometry_of(v, v.in_dims(0), v.out_dims(0), v.in_dims(1), false));
  const bool bias = v.has_out(1);
  return with_float_codec(v.in(0).dtype, [&](auto codec) -> KernelResult {
    using Codec = decltype(codec);
    return make_kernel([=](const KernelIo& io) { run_conv_weights<Codec>(g, bias, io); },
                       static_cast<size_t>(volume(g.kernel)) * sizeof(double));
  });
}

KernelResult make_conv(const NodeView& v, bool transposed) {
  LIMBER_TRY(check_floats(v));
  const DType dtype = v.in(0).dtype;
  for (int i = 1; i < 4; ++i) {
    if (v.has_in(i) && v.in(i).dtype != dtype) return no_kernel(v, v.in(i).dtype);
  }
  LIMBER_ASSIGN(const Geometry g, geometry_of(v, v.in_dims(0), v.in_dims(1), v.out_dims(0), transposed));
  const Epilogue e{v.has_in(2), v.has_in(3),
                   unary_of(transposed ? Activation{} : fused_activation(v.attrs()))};
  const size_t scratch = static_cast<size_t>(volume(g.out)) * sizeof(double);
  return with_float_codec(dtype, [&](auto codec) -> KernelResult {
    using Codec = decltype(codec);
    if (transposed)
      return make_kernel([=](const KernelIo& io) { run_conv_transpose<Codec>(g, e, io); }, scratch);
    return make_kernel([=](const KernelIo& io) { run_conv<Codec>(g, e, io); }, scratch);
  });
}

}  // namespace

LIMBER_REF_KERNEL(Conv, make_conv(v, false))
LIMBER_REF_KERNEL(ConvTranspose, make_conv(v, true))
LIMBER_REF_KERNEL(ConvBackwardData, make_conv(v, true))
LIMBER_REF_KERNEL(ConvBackwardWeights, make_conv_weights(v))

}  // namespace limber::ref
