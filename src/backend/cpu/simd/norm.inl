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

// Rows that go through the passes of an operator together: the passes of one row depend on each other, those
// of different rows overlap in the processor.
constexpr int64_t kRowBlock = 8;  // with 1024 floats each 32 KB, the size of a first-level cache

// Calls body(first, count) for blocks of rows that together stay in the first-level cache.
template <typename Body>
LIMBER_INLINE void for_row_blocks(int64_t rows, int64_t cols, Body body) {
  const int64_t most = cols <= 1024 ? kRowBlock : 1;
  for (int64_t r = 0; r < rows; r += most) body(r, rows - r < most ? rows - r : most);
}

void softmax_rows(const float* x, float* y, int64_t rows, int64_t cols, bool log) {
  for_row_blocks(rows, cols, [=](int64_t first, int64_t count) {
    float top[kRowBlock], sum[kRowBlock];
    const float* src = x + first * cols;
    float* dst = y + first * cols;
    for (int64_t r = 0; r < count; ++r) top[r] = reduce_run<ReduceMax>(src + r * cols, cols, 0.0f);
    if (log) {
      for (int64_t r = 0; r < count; ++r) sum[r] = reduce_run<ReduceExpSum>(src + r * cols, cols, top[r]);
      for (int64_t r = 0; r < count; ++r) {
        unary_loop<UnarySubtractTwice>(src + r * cols, dst + r * cols, cols, {top[r], log_of_scalar(sum[r])});
      }
    } else {
      for (int64_t r = 0; r < count; ++r) sum[r] = exp_and_sum(src + r * cols, dst + r * cols, cols, top[r]);
      for (int64_t r = 0; r < count; ++r) {
        unary_loop<UnaryAffine>(dst + r * cols, dst + r * cols, cols, {1.0f / sum[r], 0.0f});
      }
    }
  });
}

// A vector of y, or the first `left` lanes of it.
LIMBER_INLINE Vec load_some(const float* p, int64_t left) {
  return left >= kLanes ? load(p) : load_n(p, left);
}
LIMBER_INLINE void store_some(float* p, Vec v, int64_t left) {
  left >= kLanes ? store(p, v) : store_n(p, v, left);
}

// At most kColumnTile columns: rows are read in order, so that memory is walked in long stretches (1 KB), and
// both arrays stay in the first-level cache.
constexpr int64_t kColumnTile = 256;
void softmax_column_tile(const float* x, float* y, int64_t n, int64_t stride, int64_t width, bool log) {
  alignas(64) float top[kColumnTile], sum[kColumnTile];
  const auto columns = [width](auto body) {
    for (int64_t j = 0; j < width; j += kLanes) body(j, width - j);
  };
  columns([&](int64_t j, int64_t) {
    store(top + j, splat(-kInfinity));
    store(sum + j, Vec{});
  });
  for (int64_t i = 0; i < n; ++i) {
    columns([&](int64_t j, int64_t left) {
      store(top + j, ReduceMax::join(load(top + j), load_some(x + i * stride + j, left)));
    });
  }
  for (int64_t i = 0; i < n; ++i) {
    columns([&](int64_t j, int64_t left) {
      const Vec e = exp_of_nonpositive(load_some(x + i * stride + j, left) - load(top + j));
      store(sum + j, load(sum + j) + e);
      if (!log) store_some(y + i * stride + j, e, left);
    });
  }
  columns([&](int64_t j, int64_t) { store(sum + j, log ? log_of(load(sum + j)) : 1.0f / load(sum + j)); });
  for (int64_t i = 0; i < n; ++i) {
    columns([&](int64_t j, int64_t left) {
      const int64_t at = i * stride + j;
      const Vec r = log ? (load_some(x + at, left) - load(top + j)) - load(sum + j)
                        : load_some(y + at, left) * load(sum + j);
      store_some(y + at, r, left);
    });
  }
}

void softmax_columns(const float* x, float* y, int64_t n, int64_t stride, int64_t width, bool log) {
  for (int64_t c = 0; c < width; c += kColumnTile) {
    softmax_column_tile(x + c, y + c, n, stride, width - c < kColumnTile ? width - c : kColumnTile, log);
  }
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

// The same over any number.
LIMBER_INLINE float distance_run(const float* x, int64_t n, float mean) {
  if (n <= kReduceBlock) return squared_distance(x, n, mean);
  double sum = 0;
  for (int64_t i = 0; i < n; i += kReduceBlock) {
    sum += squared_distance(x + i, n - i < kReduceBlock ? n - i : kReduceBlock, mean);
  }
  return static_cast<float>(sum);
}

void moments(const float* x, int64_t n, float* mean, float* variance) {
  *mean = reduce_run<ReduceSum>(x, n, 0.0f) / static_cast<float>(n);
  *variance = distance_run(x, n, *mean) / static_cast<float>(n);
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
  const auto row = args.scale != nullptr
                       ? (args.bias != nullptr ? normalize_row<true, true> : normalize_row<true, false>)
                       : (args.bias != nullptr ? normalize_row<false, true> : normalize_row<false, false>);
  const auto n = static_cast<float>(args.cols);
  for_row_blocks(args.rows, args.cols, [&](int64_t first, int64_t count) {
    float mean[kRowBlock], inv_std[kRowBlock];
    const float* x = args.x + first * args.cols;
    for (int64_t r = 0; r < count; ++r)
      mean[r] = reduce_run<ReduceSum>(x + r * args.cols, args.cols, 0.0f) / n;  // of equal numbers: theirs
    for (int64_t r = 0; r < count; ++r) {
      const float variance = distance_run(x + r * args.cols, args.cols, mean[r]) / n;
      inv_std[r] = rsqrt_of_scalar(variance + args.epsilon);
    }
    for (int64_t r = 0; r < count; ++r) {
      row(args, x + r * args.cols, args.y + (first + r) * args.cols, mean[r], inv_std[r]);
      if (args.mean != nullptr) args.mean[first + r] = mean[r];
      if (args.inv_std != nullptr) args.inv_std[first + r] = inv_std[r];
    }
  });
}

void affine_columns(const float* x, float* y, int64_t rows, int64_t cols, const float* scale,
                    const float* shift) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    int64_t i = 0;
    for (; i + kLanes <= cols; i += kLanes) store(y + i, load(x + i) * load(scale + i) + load(shift + i));
    if (const int64_t left = cols - i; left > 0) {
      store_n(y + i, load_n(x + i, left) * load_n(scale + i, left) + load_n(shift + i, left), left);
    }
  }
}

void lrn(const float* x, float* y, int64_t width, const LrnArgs& args) {
  const int64_t before = (args.size - 1) / 2, after = args.size - 1 - before;
  for (int64_t c = 0; c < args.channels; ++c) {
    const int64_t first = c - before < 0 ? 0 : c - before;
    const int64_t last = c + after >= args.channels ? args.channels - 1 : c + after;
    for (int64_t j = 0; j < width; j += kLanes) {
      Vec sum{};
      for (int64_t k = first; k <= last; ++k) {
        const Vec v = load_some(x + k * args.stride + j, width - j);
        sum += v * v;
      }
      const Vec base = sum * args.alpha + args.bias;
      const int64_t at = c * args.stride + j;
      store_some(y + at, load_some(x + at, width - j) * power_of(base, -args.beta), width - j);
    }
  }
}

constexpr void fill_norm(SimdTable& t) {
  t.softmax = softmax_rows;
  t.softmax_columns = softmax_columns;
  t.moments = moments;
  t.layer_norm = layer_norm;
  t.affine_columns = affine_columns;
  t.lrn = lrn;
}
