// What only training needs: batch statistics, the backward passes of activations and normalisations, and the
// optimisers' steps.

// --- channels of images ---------------------------------------------------------------------------------
// A panel in columns has one channel per lane; a run has one channel, and pixels in the lanes.

constexpr int64_t kPanelBlock = 1024;  // rows that are summed before the sums are summed: keeps them exact

// Calls body(offset, left) for vectors of a dense run of n; `left` lanes of it count.
template <typename Body>
LIMBER_INLINE void each_vector(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, int64_t{kLanes});
  if (i < n) body(i, n - i);
}

// Two sums made in one pass.
struct TwoSums {
  Vec a, b;
  LIMBER_INLINE TwoSums& operator+=(const TwoSums& other) {
    a += other.a;
    b += other.b;
    return *this;
  }
};
LIMBER_INLINE TwoSums operator+(TwoSums a, const TwoSums& b) { return a += b; }
LIMBER_INLINE TwoSums fill_after(const TwoSums& v, int64_t n, float fill) {
  return {fill_after(v.a, n, fill), fill_after(v.b, n, fill)};
}

// The sum of body(offset, left) over a dense run of n.
template <typename Body>
LIMBER_INLINE auto sum_run(int64_t n, Body body) {
  using Sum = decltype(body(int64_t{0}, int64_t{0}));
  Sum total{};
  for (int64_t start = 0; start < n; start += kPanelBlock * kLanes) {
    const int64_t end = start + kPanelBlock * kLanes < n ? start + kPanelBlock * kLanes : n;
    Sum a{}, b{};
    int64_t i = start;
    for (; i + 2 * kLanes <= end; i += 2 * kLanes) {
      a += body(i, int64_t{kLanes});
      b += body(i + kLanes, int64_t{kLanes});
    }
    for (; i < end; i += kLanes) {
      const int64_t left = end - i < kLanes ? end - i : int64_t{kLanes};
      a += fill_after(body(i, left), left, 0.0f);
    }
    total += a + b;
  }
  return total;
}

// The sum of body(offset) over rows that lie `stride` apart.
template <typename Body>
LIMBER_INLINE auto sum_rows(int64_t rows, int64_t stride, Body body) {
  using Sum = decltype(body(int64_t{0}));
  Sum total{};
  for (int64_t start = 0; start < rows; start += kPanelBlock) {
    const int64_t end = start + kPanelBlock < rows ? start + kPanelBlock : rows;
    Sum a{}, b{}, c{}, d{};
    int64_t r = start;
    for (; r + 4 <= end; r += 4) {
      a += body(r * stride);
      b += body((r + 1) * stride);
      c += body((r + 2) * stride);
      d += body((r + 3) * stride);
    }
    for (; r < end; ++r) a += body(r * stride);
    total += (a + b) + (c + d);
  }
  return total;
}

void panel_sum(const float* x, const ChannelPanel& p, float* sum) {
  if (p.run) {
    *sum = sum_lanes(sum_run(p.rows, [&](int64_t i, int64_t left) { return load_some(x + i, left); }));
    return;
  }
  each_vector(p.width, [&](int64_t j, int64_t left) {
    store_some(sum + j,
               sum_rows(p.rows, p.stride, [&](int64_t at) { return load_some(x + j + at, left); }), left);
  });
}

void panel_squares(const float* x, const ChannelPanel& p, const float* mean, float* sum) {
  if (p.run) {
    *sum = sum_lanes(sum_run(p.rows, [&](int64_t i, int64_t left) {
      const Vec d = load_some(x + i, left) - *mean;
      return d * d;
    }));
    return;
  }
  each_vector(p.width, [&](int64_t j, int64_t left) {
    const Vec m = load_some(mean + j, left);
    store_some(sum + j, sum_rows(p.rows, p.stride, [&](int64_t at) {
                 const Vec d = load_some(x + j + at, left) - m;
                 return d * d;
               }), left);
  });
}

// Calls body(offset, left, j): j is where the channel's numbers are (always 0 in a run).
template <typename Params, typename Body>
LIMBER_INLINE void each_in_panel(const ChannelPanel& p, Params params, Body body) {
  if (p.run) {
    const auto numbers = params(int64_t{0}, int64_t{0});
    each_vector(p.rows, [&](int64_t i, int64_t left) { body(i, left, numbers); });
    return;
  }
  each_vector(p.width, [&](int64_t j, int64_t left) {
    const auto numbers = params(j, left);
    for (int64_t r = 0; r < p.rows; ++r) body(r * p.stride + j, left, numbers);
  });
}

// One number per channel: in all lanes for a run (left is 0), one per lane otherwise.
LIMBER_INLINE Vec channel_numbers(const float* numbers, int64_t j, int64_t left) {
  return left == 0 ? splat(*numbers) : load_some(numbers + j, left);
}

template <bool kRelu>
void panel_affine_as(const float* x, float* y, const ChannelPanel& p, const float* scale, const float* shift) {
  struct Numbers {
    Vec scale, shift;
  };
  each_in_panel(
      p,
      [&](int64_t j, int64_t left) {
        return Numbers{channel_numbers(scale, j, left), channel_numbers(shift, j, left)};
      },
      [&](int64_t at, int64_t left, const Numbers& n) {
        Vec v = load_some(x + at, left) * n.scale + n.shift;
        if constexpr (kRelu) v = max_of(Vec{}, v);
        store_some(y + at, v, left);
      });
}

void panel_affine(const float* x, float* y, const ChannelPanel& p, const float* scale, const float* shift,
                  bool relu) {
  relu ? panel_affine_as<true>(x, y, p, scale, shift) : panel_affine_as<false>(x, y, p, scale, shift);
}

// dy where the activation let x through.
template <bool kRelu>
LIMBER_INLINE Vec passed(Vec dy, Vec x, Vec scale, Vec shift) {
  if constexpr (kRelu) return x * scale + shift > 0.0f ? dy : Vec{};
  return dy;
}

template <bool kRelu>
void panel_gradient_sums_as(const PanelGradient& g, const ChannelPanel& p, float* sum_dy, float* sum_dyx) {
  const auto terms = [&](int64_t j, int64_t width) {
    const Vec mean = channel_numbers(g.mean, j, width);
    const Vec scale = kRelu ? channel_numbers(g.scale, j, width) : Vec{};
    const Vec shift = kRelu ? channel_numbers(g.shift, j, width) : Vec{};
    return [=](int64_t at, int64_t left) {
      const Vec x = load_some(g.x + at, left);
      const Vec dy = passed<kRelu>(load_some(g.dy + at, left), x, scale, shift);
      return TwoSums{dy, dy * (x - mean)};
    };
  };
  if (p.run) {
    const TwoSums sums = sum_run(p.rows, terms(0, 0));
    *sum_dy = sum_lanes(sums.a);
    *sum_dyx = sum_lanes(sums.b);
    return;
  }
  each_vector(p.width, [&](int64_t j, int64_t left) {
    const auto body = terms(j, left);
    const TwoSums sums = sum_rows(p.rows, p.stride, [&](int64_t at) { return body(at + j, left); });
    store_some(sum_dy + j, sums.a, left);
    store_some(sum_dyx + j, sums.b, left);
  });
}

void panel_gradient_sums(const PanelGradient& g, const ChannelPanel& p, float* sum_dy, float* sum_dyx) {
  g.relu ? panel_gradient_sums_as<true>(g, p, sum_dy, sum_dyx)
         : panel_gradient_sums_as<false>(g, p, sum_dy, sum_dyx);
}

template <bool kRelu>
void panel_gradient_as(const PanelGradient& g, const ChannelPanel& p, const float* a, const float* b,
                       const float* c, float* dx) {
  struct Numbers {
    Vec a, b, c, scale, shift;
  };
  each_in_panel(
      p,
      [&](int64_t j, int64_t left) {
        return Numbers{channel_numbers(a, j, left), channel_numbers(b, j, left), channel_numbers(c, j, left),
                       kRelu ? channel_numbers(g.scale, j, left) : Vec{},
                       kRelu ? channel_numbers(g.shift, j, left) : Vec{}};
      },
      [&](int64_t at, int64_t left, const Numbers& n) {
        const Vec x = load_some(g.x + at, left);
        const Vec dy = passed<kRelu>(load_some(g.dy + at, left), x, n.scale, n.shift);
        store_some(dx + at, n.a * dy + (n.b * x + n.c), left);
      });
}

void panel_gradient(const PanelGradient& g, const ChannelPanel& p, const float* a, const float* b,
                    const float* c, float* dx) {
  g.relu ? panel_gradient_as<true>(g, p, a, b, c, dx) : panel_gradient_as<false>(g, p, a, b, c, dx);
}

// --- activations ----------------------------------------------------------------------------------------

#define LIMBER_GRADIENT(name, expression)                                                            \
  struct Gradient##name {                                                                            \
    static LIMBER_INLINE Vec of(Vec dy, Vec x, [[maybe_unused]] UnaryParams p) { return expression; } \
  };
LIMBER_GRADIENT(Relu, x > 0.0f ? dy : Vec{})
LIMBER_GRADIENT(LeakyRelu, x > 0.0f ? dy : dy * p.a)
LIMBER_GRADIENT(Clip, ((x > p.a) & (x < p.b)) ? dy : Vec{})
LIMBER_GRADIENT(SigmoidOfY, dy * x * (1.0f - x))
LIMBER_GRADIENT(TanhOfY, dy * (1.0f - x * x))
LIMBER_GRADIENT(HardSigmoid, (((x * p.a + p.b) > 0.0f) & ((x * p.a + p.b) < 1.0f)) ? dy * p.a : Vec{})
LIMBER_GRADIENT(HardSigmoidOfY, ((x > 0.0f) & (x < 1.0f)) ? dy * p.a : Vec{})
LIMBER_GRADIENT(EluOfY, x > 0.0f ? dy : dy * (x + p.a))
LIMBER_GRADIENT(SoftplusOfY, dy * -expm1_of(-x))
LIMBER_GRADIENT(HardSwish, x <= -3.0f ? Vec{} : (x >= 3.0f ? dy : dy * (x * (1.0f / 3.0f) + 0.5f)))
#undef LIMBER_GRADIENT

struct GradientSilu {
  static LIMBER_INLINE Vec of(Vec dy, Vec x, UnaryParams) {
    const Vec s = sigmoid_of(x);
    return dy * s * (1.0f + x * (1.0f - s));
  }
};
struct GradientGeluTanh {  // y = x / 2 * (1 + tanh(u)) = x * sigmoid(2u) with u = k * (x + c * x^3)
  static LIMBER_INLINE Vec of(Vec dy, Vec x, UnaryParams) {
    const Vec square = x * x;
    const Vec s = sigmoid_of(x * (1.59576912160573071f + 0.07135481627260025f * square));
    const Vec slope = 1.59576912160573071f + 0.21406444881780074f * square;  // of 2u
    return dy * s * (1.0f + x * (1.0f - s) * slope);
  }
};

struct GradientMish {  // of UnaryMish: n / (n + 2) + x * 4e (e + 1) / (n + 2)^2 with n = e (e + 2)
  static LIMBER_INLINE Vec of(Vec dy, Vec x, UnaryParams) {
    const Vec bounded = min_of(splat(20.0f), x);  // beyond it the slope is 1
    const Vec e = exp_of_nonpositive(bounded);
    const Vec n = e * (e + 2.0f), below = n + 2.0f;
    return dy * (quotient(n, below) + bounded * quotient(4.0f * e * (e + 1.0f), below * below));
  }
};

struct GradientGelu {  // the normal distribution and its density
  static LIMBER_INLINE Vec of(Vec dy, Vec x, UnaryParams) {
    const Vec cdf = 0.5f * (erf_of(x * 0.70710678118654752f) + 1.0f);
    const Vec pdf = exp_of_nonpositive(x * x * -0.5f) * 0.39894228040143268f;
    return dy * (cdf + x * pdf);
  }
};

template <typename Op>
void gradient_loop(const float* dy, const float* x, float* dx, int64_t n, UnaryParams p) {
  each_vector(n, [&](int64_t i, int64_t left) {
    store_some(dx + i, Op::of(load_some(dy + i, left), load_some(x + i, left), p), left);
  });
}

// --- normalisation, softmax --------------------------------------------------------------------------------

void softmax_gradient(const float* y, const float* dy, float* dx, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, y += cols, dy += cols, dx += cols) {
    const float dot = sum_lanes(sum_run(
        cols, [&](int64_t i, int64_t left) { return load_some(y + i, left) * load_some(dy + i, left); }));
    each_vector(cols, [&](int64_t i, int64_t left) {
      store_some(dx + i, (load_some(dy + i, left) - dot) * load_some(y + i, left), left);
    });
  }
}

void layer_norm_gradient(const LayerNormGradient& g) {
  for (int64_t r = 0; r < g.rows; ++r) {
    const float *x = g.x + r * g.cols, *dy = g.dy + r * g.cols;
    const float mean = g.mean[r], inv_std = g.inv_std[r];
    const auto scaled = [&](int64_t i, int64_t left) {
      const Vec v = load_some(dy + i, left);
      return g.scale != nullptr ? v * load_some(g.scale + i, left) : v;
    };
    const auto unit = [&](int64_t i, int64_t left) { return (load_some(x + i, left) - mean) * inv_std; };
    if (g.dscale != nullptr || g.dbias != nullptr) {
      each_vector(g.cols, [&](int64_t i, int64_t left) {
        const Vec v = load_some(dy + i, left);
        if (g.dscale) store_some(g.dscale + i, load_some(g.dscale + i, left) + v * unit(i, left), left);
        if (g.dbias) store_some(g.dbias + i, load_some(g.dbias + i, left) + v, left);
      });
    }
    if (g.dx == nullptr) continue;
    const float n = 1.0f / static_cast<float>(g.cols);
    const float sum = sum_lanes(sum_run(g.cols, scaled)) * n;
    const float dot = sum_lanes(sum_run(g.cols, [&](int64_t i, int64_t left) {
                        return scaled(i, left) * unit(i, left);
                      })) * n;
    float* dx = g.dx + r * g.cols;
    each_vector(g.cols, [&](int64_t i, int64_t left) {
      store_some(dx + i, (scaled(i, left) - sum - unit(i, left) * dot) * inv_std, left);
    });
  }
}

// --- optimisers -------------------------------------------------------------------------------------------

// The sums of UpdateEffect; compiled away where they are not asked for.
template <bool kWanted>
struct EffectSums {
  Vec gain{}, gradients{}, weights{};

  LIMBER_INLINE void add(Vec gradient, Vec before, Vec after) {
    if constexpr (kWanted) {
      gain += gradient * (before - after);
      gradients += gradient * gradient;
      weights += before * before;
    }
  }
  LIMBER_INLINE void store(float* to) const {
    if constexpr (kWanted) {
      to[0] = sum_lanes(gain);
      to[1] = sum_lanes(gradients);
      to[2] = sum_lanes(weights);
    }
  }
};

template <bool kVelocity, bool kEffect>
void sgd_as(const SgdStep& s, float* w, const float* dw, float* velocity, int64_t n, float* effect) {
  const float keep = s.decoupled ? 1.0f - s.rate * s.decay : 1.0f, decay = s.decoupled ? 0.0f : s.decay;
  EffectSums<kEffect> sums;
  each_vector(n, [&](int64_t i, int64_t left) {
    const Vec old = load_some(w + i, left), gradient = load_some(dw + i, left) * s.factor;
    const Vec g = gradient + old * decay;
    Vec step = g;
    if constexpr (kVelocity) {
      const Vec v = load_some(velocity + i, left) * s.momentum + g * (1.0f - s.dampening);
      store_some(velocity + i, v, left);
      step = s.nesterov ? g + v * s.momentum : v;
    }
    const Vec now = old * keep - step * s.rate;
    sums.add(gradient, old, now);
    store_some(w + i, now, left);
  });
  sums.store(effect);
}

void sgd(const SgdStep& s, float* w, const float* dw, float* velocity, int64_t n, float* effect) {
  const bool fast = velocity != nullptr, measured = effect != nullptr;
  const auto run = fast ? (measured ? sgd_as<true, true> : sgd_as<true, false>)
                        : (measured ? sgd_as<false, true> : sgd_as<false, false>);
  run(s, w, dw, velocity, n, effect);
}

template <bool kEffect>
void adam_as(const AdamStep& s, float* w, const float* dw, float* m, float* v, int64_t n, float* effect) {
  const float keep = s.decoupled ? 1.0f - s.rate * s.decay : 1.0f, decay = s.decoupled ? 0.0f : s.decay;
  EffectSums<kEffect> sums;
  each_vector(n, [&](int64_t i, int64_t left) {
    const Vec old = load_some(w + i, left), gradient = load_some(dw + i, left) * s.factor;
    const Vec g = gradient + old * decay;
    const Vec mean = load_some(m + i, left) * s.beta1 + g * (1.0f - s.beta1);
    const Vec square = load_some(v + i, left) * s.beta2 + g * g * (1.0f - s.beta2);
    store_some(m + i, mean, left);
    store_some(v + i, square, left);
    const Vec step = mean * s.correction1 / (sqrt_of(square * s.correction2) + s.epsilon);
    const Vec now = old * keep - step * s.rate;
    sums.add(gradient, old, now);
    store_some(w + i, now, left);
  });
  sums.store(effect);
}

void adam(const AdamStep& s, float* w, const float* dw, float* m, float* v, int64_t n, float* effect) {
  (effect != nullptr ? adam_as<true> : adam_as<false>)(s, w, dw, m, v, n, effect);
}

// --- pooling ----------------------------------------------------------------------------------------------

// Calls body(offset of the tap in x) for every tap of a window that lies inside.
template <typename Body>
LIMBER_INLINE void each_tap(const PoolWindows& w, int64_t oh, int64_t ow, Body body) {
  for (int64_t kh = 0; kh < w.kernel[0]; ++kh) {
    const int64_t h = oh * w.stride[0] - w.pad[0] + kh * w.dilation[0];
    if (h < 0 || h >= w.in[0]) continue;
    for (int64_t kw = 0; kw < w.kernel[1]; ++kw) {
      const int64_t c = ow * w.stride[1] - w.pad[1] + kw * w.dilation[1];
      if (c >= 0 && c < w.in[1]) body(h * w.in[1] + c);
    }
  }
}

// Pixels lie `stride` apart, `width` channels side by side. dx is zero before.
void max_pool_gradient(const PoolWindows& w, const float* x, const float* dy, float* dx, int64_t stride,
                       int64_t width) {
  for (int64_t o = 0; o < w.out[0] * w.out[1]; ++o) {
    const int64_t oh = o / w.out[1], ow = o % w.out[1];
    each_vector(width, [&](int64_t j, int64_t left) {
      Vec best = splat(-kInfinity);
      IVec at{};
      at -= 1;
      each_tap(w, oh, ow, [&](int64_t pixel) {
        const Vec v = load_some(x + pixel * stride + j, left);
        const IVec here = IVec{} + static_cast<int32_t>(pixel);
        const auto better = (v > best) | (v != v) | (at < 0);
        best = better ? v : best;
        at = better ? here : at;
      });
      const Vec d = load_some(dy + o * stride + j, left);
      each_tap(w, oh, ow, [&](int64_t pixel) {
        float* target = dx + pixel * stride + j;
        const Vec share = at == IVec{} + static_cast<int32_t>(pixel) ? d : Vec{};
        store_some(target, load_some(target, left) + share, left);
      });
    });
  }
}

void average_pool_gradient(const PoolWindows& w, const float* dy, float* dx, int64_t stride, int64_t width) {
  for (int64_t o = 0; o < w.out[0] * w.out[1]; ++o) {
    const int64_t oh = o / w.out[1], ow = o % w.out[1];
    int64_t count = 0;
    each_tap(w, oh, ow, [&](int64_t) { ++count; });
    if (w.whole_count > 0) count = w.whole_count;
    const float share = count > 0 ? 1.0f / static_cast<float>(count) : 0.0f;
    each_vector(width, [&](int64_t j, int64_t left) {
      const Vec d = load_some(dy + o * stride + j, left) * share;
      each_tap(w, oh, ow, [&](int64_t pixel) {
        float* target = dx + pixel * stride + j;
        store_some(target, load_some(target, left) + d, left);
      });
    });
  }
}

constexpr void fill_training(SimdTable& t) {
  t.panel_sum = panel_sum;
  t.panel_squares = panel_squares;
  t.panel_affine = panel_affine;
  t.panel_gradient_sums = panel_gradient_sums;
  t.panel_gradient = panel_gradient;
#define LIMBER_ENTRY(name) t.gradient[static_cast<size_t>(SimdGradient::k##name)] = gradient_loop<Gradient##name>;
  LIMBER_SIMD_GRADIENT(LIMBER_ENTRY)
#undef LIMBER_ENTRY
  t.softmax_gradient = softmax_gradient;
  t.max_pool_gradient = max_pool_gradient;
  t.average_pool_gradient = average_pool_gradient;
  t.layer_norm_gradient = layer_norm_gradient;
  t.sgd = sgd;
  t.adam = adam;
}
