// Softmax and the normalisations.

LIMBER_INLINE float log_of_scalar(float x) { return log_of(splat(x))[0]; }
LIMBER_INLINE float rsqrt_of_scalar(float x) { return 1.0f / __builtin_sqrtf(x); }

// y = exp(x - top) and the sum of it.
LIMBER_INLINE float exp_and_sum(const float* x, float* y, int64_t n, float top) {
  Vec sum{}, sum2{};
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const Vec e = exp_of_nonpositive(load(x + i) - top);
    const Vec e2 = exp_of_nonpositive(load(x + i + kLanes) - top);
    store(y + i, e);
    store(y + i + kLanes, e2);
    sum += e;
    sum2 += e2;
  }
  for (; i < n; i += kLanes) {
    const int64_t left = n - i < kLanes ? n - i : kLanes;
    const Vec e = fill_after(exp_of_nonpositive(load_n(x + i, left) - top), left, 0.0f);
    store_n(y + i, e, left);
    sum += e;
  }
  return sum_lanes(sum + sum2);
}

struct UnarySubtractTwice {  // the order keeps small results exact when a is large
  static LIMBER_INLINE Vec of(Vec x, UnaryParams p) { return (x - p.a) - p.b; }
};

void softmax_rows(const float* x, float* y, int64_t rows, int64_t cols, bool log) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const float top = reduce_run<ReduceMax>(x, cols, 0.0f);
    if (log) {
      const float log_sum = log_of_scalar(reduce_run<ReduceExpSum>(x, cols, top));
      unary_loop<UnarySubtractTwice>(x, y, cols, {top, log_sum});
    } else {
      const float sum = exp_and_sum(x, y, cols, top);
      unary_loop<UnaryAffine>(y, y, cols, {1.0f / sum, 0.0f});
    }
  }
}

// One vector of columns; `Full` false: only the first `left` of its lanes exist.
template <bool kFull>
LIMBER_INLINE void softmax_column(const float* x, float* y, int64_t n, int64_t stride, int64_t left, bool log) {
  const auto get = [left](const float* p) { return kFull ? load(p) : load_n(p, left); };
  const auto put = [left](float* p, Vec v) { kFull ? store(p, v) : store_n(p, v, left); };
  Vec top = splat(-kInfinity);
  for (int64_t i = 0; i < n; ++i) top = ReduceMax::join(top, get(x + i * stride));
  Vec sum{};
  if (log) {
    for (int64_t i = 0; i < n; ++i) sum += exp_of_nonpositive(get(x + i * stride) - top);
    const Vec log_sum = log_of(sum);
    for (int64_t i = 0; i < n; ++i) put(y + i * stride, (get(x + i * stride) - top) - log_sum);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const Vec e = exp_of_nonpositive(get(x + i * stride) - top);
    put(y + i * stride, e);
    sum += e;
  }
  const Vec factor = 1.0f / sum;
  for (int64_t i = 0; i < n; ++i) put(y + i * stride, get(y + i * stride) * factor);
}

void softmax_columns(const float* x, float* y, int64_t n, int64_t stride, int64_t width, bool log) {
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) softmax_column<true>(x + c, y + c, n, stride, kLanes, log);
  if (c < width) softmax_column<false>(x + c, y + c, n, stride, width - c, log);
}

// Sum of (x - mean)^2 over at most kReduceBlock elements.
LIMBER_INLINE float squared_distance(const float* x, int64_t n, float mean) {
  Vec a{}, b{};
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const Vec d = load(x + i) - mean, e = load(x + i + kLanes) - mean;
    a += d * d;
    b += e * e;
  }
  for (; i < n; i += kLanes) {
    const int64_t left = n - i < kLanes ? n - i : kLanes;
    const Vec d = fill_after(load_n(x + i, left) - mean, left, 0.0f);
    a += d * d;
  }
  return sum_lanes(a + b);
}

void moments(const float* x, int64_t n, float* mean, float* variance) {
  const float m = reduce_run<ReduceSum>(x, n, 0.0f) / static_cast<float>(n);
  double sum = 0;
  for (int64_t i = 0; i < n; i += kReduceBlock) {
    sum += squared_distance(x + i, n - i < kReduceBlock ? n - i : kReduceBlock, m);
  }
  *mean = m;
  *variance = static_cast<float>(sum / static_cast<double>(n));
}

template <bool kScale, bool kBias>
void normalize_row(const LayerNormArgs& args, const float* x, float* y, float mean, float inv_std) {
  const auto each = [&](Vec v, Vec scale, Vec bias) {
    Vec r = (v - mean) * inv_std;
    if constexpr (kScale) r = r * scale;
    if constexpr (kBias) r = r + bias;
    return r;
  };
  int64_t i = 0;
  Vec scale{}, bias{};
  for (; i + kLanes <= args.cols; i += kLanes) {
    if constexpr (kScale) scale = load(args.scale + i);
    if constexpr (kBias) bias = load(args.bias + i);
    store(y + i, each(load(x + i), scale, bias));
  }
  if (const int64_t left = args.cols - i; left > 0) {
    if constexpr (kScale) scale = load_n(args.scale + i, left);
    if constexpr (kBias) bias = load_n(args.bias + i, left);
    store_n(y + i, each(load_n(x + i, left), scale, bias), left);
  }
}

void layer_norm(const LayerNormArgs& args) {
  const auto row = args.scale != nullptr ? (args.bias != nullptr ? normalize_row<true, true> : normalize_row<true, false>)
                                         : (args.bias != nullptr ? normalize_row<false, true> : normalize_row<false, false>);
  for (int64_t r = 0; r < args.rows; ++r) {
    const float* x = args.x + r * args.cols;
    float mean, variance;
    moments(x, args.cols, &mean, &variance);
    const float inv_std = rsqrt_of_scalar(variance + args.epsilon);
    row(args, x, args.y + r * args.cols, mean, inv_std);
    if (args.mean != nullptr) args.mean[r] = mean;
    if (args.inv_std != nullptr) args.inv_std[r] = inv_std;
  }
}

void affine_columns(const float* x, float* y, int64_t rows, int64_t cols, const float* scale, const float* shift) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    int64_t i = 0;
    for (; i + kLanes <= cols; i += kLanes) store(y + i, load(x + i) * load(scale + i) + load(shift + i));
    if (const int64_t left = cols - i; left > 0) {
      store_n(y + i, load_n(x + i, left) * load_n(scale + i, left) + load_n(shift + i, left), left);
    }
  }
}

template <bool kFull>
LIMBER_INLINE void lrn_column(const float* x, float* y, int64_t left, const LrnArgs& args) {
  const auto get = [left](const float* p) { return kFull ? load(p) : load_n(p, left); };
  const int64_t before = (args.size - 1) / 2, after = args.size - 1 - before;
  for (int64_t c = 0; c < args.channels; ++c) {
    const int64_t first = c - before < 0 ? 0 : c - before;
    const int64_t last = c + after >= args.channels ? args.channels - 1 : c + after;
    Vec sum{};
    for (int64_t k = first; k <= last; ++k) {
      const Vec v = get(x + k * args.stride);
      sum += v * v;
    }
    const Vec base = sum * args.alpha + args.bias;
    const Vec r = get(x + c * args.stride) * power_of(base, -args.beta);
    kFull ? store(y + c * args.stride, r) : store_n(y + c * args.stride, r, left);
  }
}

void lrn(const float* x, float* y, int64_t width, const LrnArgs& args) {
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) lrn_column<true>(x + c, y + c, kLanes, args);
  if (c < width) lrn_column<false>(x + c, y + c, width - c, args);
}

constexpr void fill_norm(SimdTable& t) {
  t.softmax = softmax_rows;
  t.softmax_columns = softmax_columns;
  t.moments = moments;
  t.layer_norm = layer_norm;
  t.affine_columns = affine_columns;
  t.lrn = lrn;
}
