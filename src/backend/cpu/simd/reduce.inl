// Reductions of contiguous runs and element-wise accumulation of rows.

#define LIMBER_REDUCE(name, initial, each, combine)                                  \
  struct Reduce##name {                                                              \
    static constexpr float kInitial = initial;                                       \
    static LIMBER_INLINE Vec map(Vec x, [[maybe_unused]] Vec shift) { return each; } \
    static LIMBER_INLINE Vec join(Vec a, Vec b) { return combine; }                  \
  };
LIMBER_REDUCE(Sum, 0.0f, x, a + b)
LIMBER_REDUCE(Max, -kInfinity, x, a != a ? a : max_of(a, b))
LIMBER_REDUCE(Min, kInfinity, x, a != a ? a : min_of(a, b))
LIMBER_REDUCE(Prod, 1.0f, x, (a * b))
LIMBER_REDUCE(AbsSum, 0.0f, abs_of(x), a + b)
LIMBER_REDUCE(SquareSum, 0.0f, (x * x), a + b)
LIMBER_REDUCE(ExpSum, 0.0f, exp_of_nonpositive(x - shift), a + b)
#undef LIMBER_REDUCE

// At most kReduceBlock elements: short enough for float sums to stay accurate.
constexpr int64_t kReduceBlock = 8192;

template <typename Op>
LIMBER_INLINE float reduce_block(const float* x, int64_t n, float shift) {
  const Vec s = splat(shift);
  Vec a = splat(Op::kInitial);
  int64_t i = 0;
  const auto fold = [](Vec v) { return fold_lanes(v, [](Vec p, Vec q) { return Op::join(p, q); }); };
  if (n < 4 * kLanes) {
    for (; i + kLanes <= n; i += kLanes) a = Op::join(a, Op::map(load(x + i), s));
    if (i < n) a = Op::join(a, fill_after(Op::map(load_n(x + i, n - i), s), n - i, Op::kInitial));
    return fold(a);
  }
  Vec b = a, c = a, d = a;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a = Op::join(a, Op::map(load(x + i), s));
    b = Op::join(b, Op::map(load(x + i + kLanes), s));
    c = Op::join(c, Op::map(load(x + i + 2 * kLanes), s));
    d = Op::join(d, Op::map(load(x + i + 3 * kLanes), s));
  }
  for (; i + kLanes <= n; i += kLanes) a = Op::join(a, Op::map(load(x + i), s));
  if (i < n) b = Op::join(b, fill_after(Op::map(load_n(x + i, n - i), s), n - i, Op::kInitial));
  return fold(Op::join(Op::join(a, b), Op::join(c, d)));
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

// Whether `x` replaces `best`; see ArgArgs.
LIMBER_INLINE IVec replaces(Vec x, Vec best, const ArgArgs& args) {
  const IVec nan = x != x, best_nan = best != best;
  const IVec better = (args.largest ? x > best : x < best) | (nan & ~best_nan);
  return args.last ? better | (x == best) | (nan & best_nan) : better;
}

// One vector of columns. `left`: how many of them exist.
template <bool kFull>
LIMBER_INLINE void arg_column(const float* x, int64_t* y, int64_t left, const ArgArgs& args) {
  const auto get = [left](const float* p) { return kFull ? load(p) : load_n(p, left); };
  Vec best = get(x);
  IVec index{};
  for (int64_t i = 1; i < args.n; ++i) {
    const Vec v = get(x + i * args.stride);
    const IVec take = replaces(v, best, args);
    best = take ? v : best;
    index = take ? static_cast<int32_t>(i) + IVec{} : index;
  }
  for (int64_t j = 0; j < left; ++j) y[j] = index[j];
}

// One contiguous run: a candidate per lane, then the best of the candidates.
void arg_run(const float* x, int64_t* y, const ArgArgs& args) {
  if (args.n < 2 * kLanes) return arg_column<false>(x, y, 1, args);
  Vec best = load(x);
  IVec lane;
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  IVec index = lane;
  for (int64_t i = kLanes; i < args.n; i += kLanes) {
    const int64_t begin = i + kLanes <= args.n ? i : args.n - kLanes;  // the last vector may overlap
    const Vec v = load(x + begin);
    const IVec here = lane + static_cast<int32_t>(begin);
    const IVec take = replaces(v, best, args) & (here > index);
    best = take ? v : best;
    index = take ? here : index;
  }
  int32_t winner = index[0];
  Vec top = splat(best[0]);
  for (int i = 1; i < kLanes; ++i) {
    const Vec v = splat(best[i]);
    const bool better = replaces(v, top, args)[0] != 0, worse = replaces(top, v, args)[0] != 0;
    const bool earlier = index[i] < winner;
    if (better != worse ? better : earlier != args.last) {
      winner = index[i];
      top = v;
    }
  }
  *y = winner;
}

void arg_columns(const float* x, int64_t* y, const ArgArgs& args) {
  if (args.stride == 1) return arg_run(x, y, args);
  int64_t c = 0;
  for (; c + kLanes <= args.width; c += kLanes) arg_column<true>(x + c, y + c, kLanes, args);
  if (c < args.width) arg_column<false>(x + c, y + c, args.width - c, args);
}

constexpr void fill_reduce(SimdTable& t) {
  t.arg_columns = arg_columns;
#define LIMBER_SET(name)                                                         \
  t.reduce[static_cast<size_t>(SimdReduce::k##name)] = reduce_run<Reduce##name>; \
  t.accumulate[static_cast<size_t>(SimdReduce::k##name)] = accumulate_row<Reduce##name>;
  LIMBER_SIMD_REDUCE(LIMBER_SET)
#undef LIMBER_SET
}
