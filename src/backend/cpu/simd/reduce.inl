// Reductions of contiguous runs and element-wise accumulation of rows.

#define LIMBER_REDUCE(name, initial, each, combine)                                     \
  struct Reduce##name {                                                                 \
    static constexpr float kInitial = initial;                                          \
    static LIMBER_INLINE Vec map(Vec x, [[maybe_unused]] Vec shift) { return each; }    \
    static LIMBER_INLINE Vec join(Vec a, Vec b) { return combine; }                     \
  };
LIMBER_REDUCE(Sum, 0.0f, x, a + b)
LIMBER_REDUCE(Max, -kInfinity, x, a != a ? a : max_of(a, b))
LIMBER_REDUCE(Min, kInfinity, x, a != a ? a : min_of(a, b))
LIMBER_REDUCE(Prod, 1.0f, x, a* b)
LIMBER_REDUCE(AbsSum, 0.0f, abs_of(x), a + b)
LIMBER_REDUCE(SquareSum, 0.0f, x * x, a + b)
LIMBER_REDUCE(ExpSum, 0.0f, exp_of_nonpositive(x - shift), a + b)
#undef LIMBER_REDUCE

// At most kReduceBlock elements: short enough for float sums to stay accurate.
constexpr int64_t kReduceBlock = 8192;

template <typename Op>
LIMBER_INLINE float reduce_block(const float* x, int64_t n, float shift) {
  const Vec s = splat(shift);
  Vec a = splat(Op::kInitial), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a = Op::join(a, Op::map(load(x + i), s));
    b = Op::join(b, Op::map(load(x + i + kLanes), s));
    c = Op::join(c, Op::map(load(x + i + 2 * kLanes), s));
    d = Op::join(d, Op::map(load(x + i + 3 * kLanes), s));
  }
  for (; i + kLanes <= n; i += kLanes) a = Op::join(a, Op::map(load(x + i), s));
  if (i < n) b = Op::join(b, fill_after(Op::map(load_n(x + i, n - i), s), n - i, Op::kInitial));
  return fold_lanes(Op::join(Op::join(a, b), Op::join(c, d)), [](Vec p, Vec q) { return Op::join(p, q); });
}

// Partial results of blocks are joined in double, so that a sum over a whole image stays exact enough.
template <typename Op>
float reduce_run(const float* x, int64_t n, float shift) {
  if (n <= kReduceBlock) return reduce_block<Op>(x, n, shift);
  constexpr bool kIsSum = Op::kInitial == 0.0f;
  double sum = 0;
  Vec other = splat(Op::kInitial);
  for (int64_t i = 0; i < n; i += kReduceBlock) {
    const float part = reduce_block<Op>(x + i, n - i < kReduceBlock ? n - i : kReduceBlock, shift);
    if constexpr (kIsSum) {
      sum += part;
    } else {
      other = Op::join(other, splat(part));
    }
  }
  return kIsSum ? static_cast<float>(sum) : other[0];
}

template <typename Op>
void accumulate_row(float* acc, const float* x, [[maybe_unused]] const float* shift, int64_t n) {
  constexpr bool kShifted = __is_same(Op, ReduceExpSum);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Vec s{};
    if constexpr (kShifted) s = load(shift + i);
    store(acc + i, Op::join(load(acc + i), Op::map(load(x + i), s)));
  }
  if (i < n) {
    Vec s{};
    if constexpr (kShifted) s = load_n(shift + i, n - i);
    store_n(acc + i, Op::join(load_n(acc + i, n - i), Op::map(load_n(x + i, n - i), s)), n - i);
  }
}

constexpr void fill_reduce(SimdTable& t) {
#define LIMBER_SET(name)                                                         \
  t.reduce[static_cast<size_t>(SimdReduce::k##name)] = reduce_run<Reduce##name>; \
  t.accumulate[static_cast<size_t>(SimdReduce::k##name)] = accumulate_row<Reduce##name>;
  LIMBER_SET(Sum) LIMBER_SET(Max) LIMBER_SET(Min) LIMBER_SET(Prod) LIMBER_SET(AbsSum) LIMBER_SET(SquareSum)
  LIMBER_SET(ExpSum)
#undef LIMBER_SET
}
