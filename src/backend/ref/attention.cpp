// Attention: softmax(q k^T * scale + mask) v, one row of scores at a time.
#include <algorithm>
#include <cmath>

#include "backend/ref/element.h"
#include "backend/ref/factory.h"

namespace limber::ref {
namespace {

struct Shapes {
  int64_t m = 0, t = 0, d = 0, e = 0;
  Dims batch, q, k, v, mask;  // strides of each over the batch axes
  int64_t mask_m = 0, mask_t = 0;
};

// Scores become probabilities. A row that is -inf throughout gives NaN, as its parts would.
void softmax_row(double* row, int64_t count) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < count; ++i) top = maximum(top, row[i]);
  for (int64_t i = 0; i < count; ++i) sum += row[i] = std::exp(row[i] - top);
  for (int64_t i = 0; i < count; ++i) row[i] /= sum;
}

// Strides over the batch axes of y, for an operand whose last two axes are a matrix.
Dims lead_strides(const TensorType& type, const Shape& y) {
  std::vector<Dim> full(y.begin(), y.end() - 2);
  full.push_back(type.shape[type.rank() - 2]);
  full.push_back(type.shape[type.rank() - 1]);
  Dims strides = broadcast_strides(type.shape, Shape(std::move(full)));
  strides.rank -= 2;
  return strides;
}

KernelResult make_attention(const NodeView& v) {
  LIMBER_TRY(check_floats(v));
  const Shape& y = v.out(0).shape;
  const int rank = y.rank();
  Shapes s;
  s.m = y.dim(rank - 2);
  s.e = y.dim(rank - 1);
  s.d = v.in(0).shape.dim(v.in(0).rank() - 1);
  s.t = v.in(1).shape.dim(v.in(1).rank() - 2);
  s.batch = v.out_dims(0);
  s.batch.rank = rank - 2;
  s.q = lead_strides(v.in(0), y);
  s.k = lead_strides(v.in(1), y);
  s.v = lead_strides(v.in(2), y);
  const bool masked = v.has_in(3);
  if (masked) {
    std::vector<Dim> scores(y.begin(), y.end() - 1);
    scores.push_back(s.t);
    s.mask = broadcast_strides(v.in(3).shape, Shape(std::move(scores)));
    s.mask_m = s.mask[rank - 2];
    s.mask_t = s.mask[rank - 1];
  }
  const auto q = access<double>(v.in(0).dtype), k = access<double>(v.in(1).dtype),
             value = access<double>(v.in(2).dtype);
  const auto mask = access<double>(masked ? v.in(3).dtype : DType::kF32);
  const auto out = access<double>(v.out(0).dtype);
  const double scale = v.attrs().f("scale");
  const auto run = [=](const KernelIo& io) {
    auto* row = static_cast<double*>(io.scratch);
    int64_t position = 0;
    walk<4>(s.batch, {s.q, s.k, s.v, s.mask}, [&](const Dims&, const std::array<int64_t, 4>& at) {
      for (int64_t m = 0; m < s.m; ++m) {
        for (int64_t t = 0; t < s.t; ++t) {
          double dot = 0;
          for (int64_t d = 0; d < s.d; ++d) {
            dot += q.load(io.inputs[0], at[0] + m * s.d + d) * k.load(io.inputs[1], at[1] + t * s.d + d);
          }
          row[t] = dot * scale;
          if (masked) row[t] += mask.load(io.inputs[3], at[3] + m * s.mask_m + t * s.mask_t);
        }
        softmax_row(row, s.t);
        for (int64_t e = 0; e < s.e; ++e) {
          double sum = 0;
          for (int64_t t = 0; t < s.t; ++t) sum += row[t] * value.load(io.inputs[2], at[2] + t * s.e + e);
          out.store(io.outputs[0], position++, sum);
        }
      }
    });
  };
  return make_kernel(run, static_cast<size_t>(s.t) * sizeof(double));
}

}  // namespace

LIMBER_REF_KERNEL(Attention, make_attention(v))

}  // namespace limber::ref
