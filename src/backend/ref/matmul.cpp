// Matrix products: numpy matmul with fused bias, residual and activation, and Gemm.
#include <algorithm>

#include "backend/ref/element.h"
#include "backend/ref/factory.h"
#include "backend/ref/unary.h"

namespace limber::ref {
namespace {

// y[batch.., m, n] = act(alpha * sum_k a * b + beta * bias + residual). Strides are in elements; a
// vector operand has a matrix axis of size 1.
struct Product {
  int64_t m = 1, n = 1, k = 1;
  int64_t a_m = 0, a_k = 0, b_k = 0, b_n = 0;
  Dims batch, a_batch, b_batch;
  bool has_bias = false, has_residual = false;
  Dims bias_batch;
  int64_t bias_m = 0, bias_n = 0;
  double alpha = 1, beta = 1;
  Unary act;
};

// Floats are summed in double, integers wrap around.
template <typename Codec>
using Sum = std::conditional_t<std::is_floating_point_v<decltype(Codec::decode({}))>, double, uint64_t>;

template <typename Codec>
void multiply_row(const Product& p, const typename Codec::Raw* a, const typename Codec::Raw* b,
                  Sum<Codec>* acc) {
  std::fill_n(acc, p.n, Sum<Codec>(0));
  for (int64_t k = 0; k < p.k; ++k) {
    const auto left = static_cast<Sum<Codec>>(Codec::decode(a[k * p.a_k]));
    for (int64_t n = 0; n < p.n; ++n) {
      acc[n] += left * static_cast<Sum<Codec>>(Codec::decode(b[k * p.b_k + n * p.b_n]));
    }
  }
}

template <typename Codec>
void finish_row(const Product& p, const typename Codec::Raw* bias, const typename Codec::Raw* residual,
                const Sum<Codec>* acc, typename Codec::Raw* y) {
  using S = Sum<Codec>;
  constexpr bool kFloat = std::is_same_v<S, double>;
  const S alpha = kFloat ? static_cast<S>(p.alpha) : static_cast<S>(convert<int64_t>(p.alpha));
  const S beta = kFloat ? static_cast<S>(p.beta) : static_cast<S>(convert<int64_t>(p.beta));
  for (int64_t n = 0; n < p.n; ++n) {
    S sum = alpha * acc[n];
    if (bias != nullptr) sum += beta * static_cast<S>(Codec::decode(bias[n * p.bias_n]));
    if (residual != nullptr) sum += static_cast<S>(Codec::decode(residual[n]));
    if constexpr (kFloat) sum = p.act(sum);
    y[n] = Codec::encode(sum);
  }
}

template <typename Codec>
void run_product(const Product& p, const KernelIo& io) {
  using Raw = typename Codec::Raw;
  auto* acc = static_cast<Sum<Codec>*>(io.scratch);
  int64_t row = 0;
  walk<3>(p.batch, {p.a_batch, p.b_batch, p.bias_batch}, [&](const Dims&, const std::array<int64_t, 3>& at) {
    for (int64_t m = 0; m < p.m; ++m, ++row) {
      multiply_row<Codec>(p, io.in<Raw>(0) + at[0] + m * p.a_m, io.in<Raw>(1) + at[1], acc);
      const Raw* bias = p.has_bias ? io.in<Raw>(2) + at[2] + m * p.bias_m : nullptr;
      const Raw* residual = p.has_residual ? io.in<Raw>(3) + row * p.n : nullptr;
      finish_row<Codec>(p, bias, residual, acc, io.out<Raw>(0) + row * p.n);
    }
  });
}

KernelResult make_product_kernel(const NodeView& v, const Product& p) {
  const DType dtype = v.in(0).dtype;
  for (int i = 1; i < 4; ++i) {
    if (v.has_in(i) && v.in(i).dtype != dtype) return no_kernel(v, v.in(i).dtype);
  }
  const size_t scratch = static_cast<size_t>(p.n) * sizeof(double);
  if (!is_float(dtype) && (dtype == DType::kBool || fused_activation(v.attrs()).op != OpKind::kIdentity)) {
    return no_kernel(v, dtype);
  }
  return with_codec(dtype, [&](auto codec) -> KernelResult {
    using Codec = decltype(codec);
    return make_kernel([p](const KernelIo& io) { run_product<Codec>(p, io); }, scratch);
  });
}

// The last two dimensions of an operand, as (rows, columns) with their strides.
struct Matrix {
  int64_t rows = 1, columns = 1, row_stride = 0, column_stride = 0;
};

Matrix matrix_of(const Dims& dims, bool transposed) {
  Matrix m{dims[dims.rank - 2], dims[dims.rank - 1], dims[dims.rank - 1], 1};
  if (transposed) {
    std::swap(m.rows, m.columns);
    std::swap(m.row_stride, m.column_stride);
  }
  return m;
}

// The batch axes of an operand, read with the batch shape of y.
Dims batch_strides(const TensorType& type, const Shape& batch) {
  if (type.rank() <= 2) {
    Dims none;
    none.rank = batch.rank();
    return none;
  }
  Shape own(std::vector<Dim>(type.shape.begin(), type.shape.end() - 2));
  Dims strides = broadcast_strides(own, batch);
  const int64_t matrix = type.shape.dim(type.rank() - 2) * type.shape.dim(type.rank() - 1);
  for (int axis = 0; axis < strides.rank; ++axis) strides[axis] *= matrix;
  return strides;
}

KernelResult make_matmul(const NodeView& v) {
  const TensorType &a = v.in(0), &b = v.in(1), &y = v.out(0);
  Product p;
  if (a.rank() == 1) {
    p.k = a.shape.dim(0);
    p.a_k = 1;
  } else {
    const Matrix m = matrix_of(v.in_dims(0), v.attrs().i("trans_a", 0) != 0);
    p.m = m.rows;
    p.k = m.columns;
    p.a_m = m.row_stride;
    p.a_k = m.column_stride;
  }
  if (b.rank() == 1) {
    p.b_k = 1;
  } else {
    const Matrix m = matrix_of(v.in_dims(1), v.attrs().i("trans_b", 0) != 0);
    p.n = m.columns;
    p.b_k = m.row_stride;
    p.b_n = m.column_stride;
  }
  const int matrix_axes = (a.rank() > 1 ? 1 : 0) + (b.rank() > 1 ? 1 : 0);
  const Shape batch(std::vector<Dim>(y.shape.begin(), y.shape.end() - matrix_axes));
  p.batch = dims_of(batch);
  p.a_batch = batch_strides(a, batch);
  p.b_batch = batch_strides(b, batch);
  p.has_bias = v.has_in(2);
  p.has_residual = v.has_in(3);
  if (p.has_bias) {
    p.bias_batch = broadcast_strides(v.in(2).shape, y.shape);
    p.bias_m = a.rank() > 1 ? p.bias_batch[batch.rank()] : 0;
    p.bias_n = b.rank() > 1 ? p.bias_batch[y.rank() - 1] : 0;
  }
  p.alpha = v.attrs().f("alpha", 1);
  p.act = unary_of(fused_activation(v.attrs()));
  return make_product_kernel(v, p);
}

KernelResult make_gemm(const NodeView& v) {
  const Matrix a = matrix_of(v.in_dims(0), v.attrs().i("trans_a", 0) != 0);
  const Matrix b = matrix_of(v.in_dims(1), v.attrs().i("trans_b", 0) != 0);
  Product p;
  p.m = a.rows;
  p.k = a.columns;
  p.n = b.columns;
  p.a_m = a.row_stride;
  p.a_k = a.column_stride;
  p.b_k = b.row_stride;
  p.b_n = b.column_stride;
  p.has_bias = v.has_in(2);
  if (p.has_bias) {
    const Dims strides = broadcast_strides(v.in(2).shape, v.out(0).shape);
    p.bias_m = strides[0];
    p.bias_n = strides[1];
  }
  p.alpha = v.attrs().f("alpha", 1);
  p.beta = v.attrs().f("beta", 1);
  p.act = unary_of(Activation{});
  return make_product_kernel(v, p);
}

}  // namespace

LIMBER_REF_KERNEL(MatMul, make_matmul(v))
LIMBER_REF_KERNEL(Gemm, make_gemm(v))

}  // namespace limber::ref
