// Element-wise loops. Operators are types with a static `of`; a table entry is an instantiation.

#define LIMBER_UNARY(name, expression)                                                        \
  struct Unary##name {                                                                        \
    static LIMBER_INLINE Vec of(Vec x, [[maybe_unused]] UnaryParams p) { return expression; } \
  };
LIMBER_UNARY(Abs, abs_of(x))
LIMBER_UNARY(Neg, -x)
LIMBER_UNARY(Sign, ((x == 0.0f) | (x != x)) ? x : with_sign(splat(1.0f), x))
LIMBER_UNARY(Reciprocal, 1.0f / x)
LIMBER_UNARY(Floor, floor_of(x))
LIMBER_UNARY(Ceil, ceil_of(x))
LIMBER_UNARY(Round, rint_of(x))
LIMBER_UNARY(Sqrt, sqrt_of(x))
LIMBER_UNARY(Exp, exp_of(x))
LIMBER_UNARY(Log, log_of(x))
LIMBER_UNARY(Erf, erf_of(x))
LIMBER_UNARY(Tanh, tanh_of(x))
LIMBER_UNARY(Relu, max_of(Vec{}, x))
LIMBER_UNARY(Sigmoid, sigmoid_of(x))
LIMBER_UNARY(Silu, silu_of(x))
LIMBER_UNARY(HardSwish, (x * min_of(splat(1.0f), max_of(Vec{}, (x * (1.0f / 6.0f) + 0.5f)))))
LIMBER_UNARY(Softsign, x / (abs_of(x) + 1.0f))
LIMBER_UNARY(Softplus, max_of(Vec{}, x) + log1p_of_unit(exp_of_nonpositive(-abs_of(x))))
LIMBER_UNARY(Gelu, 0.5f * x * (erf_of(x * 0.70710678118654752f) + 1.0f))
LIMBER_UNARY(GeluTanh,
             0.5f * x * (tanh_of(x * (0.79788456080286536f + 0.035677408136300125f * x * x)) + 1.0f))
LIMBER_UNARY(LeakyRelu, x < 0.0f ? x * p.a : x)
LIMBER_UNARY(Elu, x < 0.0f ? p.a * expm1_of(x) : x)
LIMBER_UNARY(Celu, x < 0.0f ? p.a * expm1_of(x / p.a) : x)
LIMBER_UNARY(Selu, (p.b * (x < 0.0f ? p.a * expm1_of(x) : x)))
LIMBER_UNARY(ThresholdedRelu, x <= p.a ? Vec{} : x)
LIMBER_UNARY(HardSigmoid, max_of(Vec{}, min_of(splat(1.0f), (x * p.a + p.b))))
LIMBER_UNARY(Shrink, x < -p.a ? x + p.b : (x > p.a ? x - p.b : Vec{}))
LIMBER_UNARY(Clip, min_of(splat(p.b), max_of(splat(p.a), x)))
LIMBER_UNARY(Square, (x * x))
LIMBER_UNARY(Cube, (x * x * x))
LIMBER_UNARY(Affine, (x * p.a + p.b))
#undef LIMBER_UNARY

struct UnaryMish {  // x * tanh(log(1 + e^x)) = x * n / (n + 2) with n = e^x (e^x + 2)
  static LIMBER_INLINE Vec of(Vec x, UnaryParams) {
    const Vec e = exp_of_nonpositive(min_of(splat(20.0f), x));
    const Vec n = e * (e + 2.0f);
    return x * quotient(n, n + 2.0f);
  }
};

template <typename Op>
void unary_loop(const float* x, float* y, int64_t n, UnaryParams p) {
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const Vec a = load(x + i), b = load(x + i + kLanes);
    store(y + i, Op::of(a, p));
    store(y + i + kLanes, Op::of(b, p));
  }
  if (i + kLanes <= n) {
    store(y + i, Op::of(load(x + i), p));
    i += kLanes;
  }
  if (i < n) store_n(y + i, Op::of(load_n(x + i, n - i), p), n - i);
}

#define LIMBER_BINARY(name, expression)                              \
  struct Binary##name {                                              \
    static LIMBER_INLINE Vec of(Vec a, Vec b) { return expression; } \
  };
LIMBER_BINARY(Add, a + b)
LIMBER_BINARY(Sub, a - b)
LIMBER_BINARY(Mul, (a * b))
LIMBER_BINARY(Div, a / b)
LIMBER_BINARY(Min, a != a ? a : min_of(a, b))
LIMBER_BINARY(Max, a != a ? a : max_of(a, b))
LIMBER_BINARY(PRelu, a < 0.0f ? a * b : a)
#undef LIMBER_BINARY

template <typename Op, bool kVecA, bool kVecB>
void binary_row(const float* a, const float* b, float* y, int64_t n) {
  Vec va{}, vb{};
  if constexpr (!kVecA) va = splat(*a);
  if constexpr (!kVecB) vb = splat(*b);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    if constexpr (kVecA) va = load(a + i);
    if constexpr (kVecB) vb = load(b + i);
    store(y + i, Op::of(va, vb));
  }
  if (i < n) {
    if constexpr (kVecA) va = load_n(a + i, n - i);
    if constexpr (kVecB) vb = load_n(b + i, n - i);
    store_n(y + i, Op::of(va, vb), n - i);
  }
}

template <typename Op, bool kVecA, bool kVecB>
void binary_rows(const float* a, const float* b, float* y, const BinaryLoop& loop) {
  for (int64_t r = 0; r < loop.rows; ++r) {
    binary_row<Op, kVecA, kVecB>(a + r * loop.a_row, b + r * loop.b_row, y + r * loop.cols, loop.cols);
  }
}

template <typename Op>
void binary_loop(const float* a, const float* b, float* y, const BinaryLoop& loop) {
  if (loop.a_col != 0 && loop.b_col != 0) return binary_rows<Op, true, true>(a, b, y, loop);
  if (loop.a_col != 0) return binary_rows<Op, true, false>(a, b, y, loop);
  if (loop.b_col != 0) return binary_rows<Op, false, true>(a, b, y, loop);
  binary_rows<Op, false, false>(a, b, y, loop);
}

constexpr void fill_elementwise(SimdTable& t) {
#define LIMBER_SET(name) t.unary[static_cast<size_t>(SimdUnary::k##name)] = unary_loop<Unary##name>;
  LIMBER_SIMD_UNARY(LIMBER_SET)
#undef LIMBER_SET
#define LIMBER_SET(name) t.binary[static_cast<size_t>(SimdBinary::k##name)] = binary_loop<Binary##name>;
  LIMBER_SIMD_BINARY(LIMBER_SET)
#undef LIMBER_SET
}
