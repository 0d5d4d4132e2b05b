// One vector of floats and what the kernels do with it. GCC vector extensions give arithmetic, comparison
// and selection on every target; what they lack is here, per instruction set.

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float Vec __attribute__((vector_size(kLanes * 4)));
typedef int32_t IVec __attribute__((vector_size(kLanes * 4)));
typedef uint32_t UVec __attribute__((vector_size(kLanes * 4)));

#define LIMBER_INLINE inline __attribute__((always_inline))

constexpr float kInfinity = __builtin_inff();

LIMBER_INLINE Vec splat(float x) { return x - Vec{}; }
LIMBER_INLINE Vec load(const float* p) {
  Vec v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
LIMBER_INLINE void store(float* p, Vec v) { __builtin_memcpy(p, &v, sizeof(v)); }
LIMBER_INLINE UVec as_bits(Vec v) { return reinterpret_cast<UVec>(v); }
LIMBER_INLINE Vec from_bits(UVec v) { return reinterpret_cast<Vec>(v); }
LIMBER_INLINE UVec splat_bits(uint32_t x) { return x + UVec{}; }
LIMBER_INLINE Vec abs_of(Vec v) { return from_bits(as_bits(v) & 0x7fffffffu); }
// The magnitude of `v` with the sign of `sign`.
LIMBER_INLINE Vec with_sign(Vec v, Vec sign) {
  return from_bits((as_bits(v) & 0x7fffffffu) | (as_bits(sign) & 0x80000000u));
}

// min and max give `b` when either is NaN: with the variable second, NaN goes through.
#if defined(__AVX512F__)
LIMBER_INLINE Vec min_of(Vec a, Vec b) { return _mm512_min_ps(a, b); }
LIMBER_INLINE Vec max_of(Vec a, Vec b) { return _mm512_max_ps(a, b); }
LIMBER_INLINE Vec sqrt_of(Vec v) { return _mm512_sqrt_ps(v); }
LIMBER_INLINE Vec floor_of(Vec v) { return _mm512_roundscale_ps(v, 9); }
LIMBER_INLINE Vec ceil_of(Vec v) { return _mm512_roundscale_ps(v, 10); }
LIMBER_INLINE Vec rint_of(Vec v) { return _mm512_roundscale_ps(v, 8); }
// a / b to 2 ulp, at a third of a division's price. REQUIRES: 2^-100 < |b| < 2^100
LIMBER_INLINE Vec quotient(Vec a, Vec b) {
  const Vec r = _mm512_rcp14_ps(b);
  return a * (r * (2.0f - b * r));
}
// v * 2^n for integral n
LIMBER_INLINE Vec scale_by_power(Vec v, Vec n) { return _mm512_scalef_ps(v, n); }
LIMBER_INLINE __mmask16 first_lanes(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
LIMBER_INLINE Vec load_n(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
LIMBER_INLINE void store_n(float* p, Vec v, int64_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), v); }
LIMBER_INLINE Vec gather(const float* p, const int32_t* index) {
  return _mm512_i32gather_ps(_mm512_loadu_si512(index), p, 4);
}
#else
#if defined(__AVX2__)
LIMBER_INLINE Vec min_of(Vec a, Vec b) { return _mm256_min_ps(a, b); }
LIMBER_INLINE Vec max_of(Vec a, Vec b) { return _mm256_max_ps(a, b); }
LIMBER_INLINE Vec sqrt_of(Vec v) { return _mm256_sqrt_ps(v); }
LIMBER_INLINE Vec floor_of(Vec v) { return _mm256_round_ps(v, 9); }
LIMBER_INLINE Vec ceil_of(Vec v) { return _mm256_round_ps(v, 10); }
LIMBER_INLINE Vec rint_of(Vec v) { return _mm256_round_ps(v, 8); }
LIMBER_INLINE __m256i first_lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
LIMBER_INLINE Vec load_n(const float* p, int64_t n) { return _mm256_maskload_ps(p, first_lanes(n)); }
LIMBER_INLINE void store_n(float* p, Vec v, int64_t n) { _mm256_maskstore_ps(p, first_lanes(n), v); }
LIMBER_INLINE Vec gather(const float* p, const int32_t* index) {
  return _mm256_i32gather_ps(p, _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(index)), 4);
}
#else
LIMBER_INLINE Vec min_of(Vec a, Vec b) { return a < b ? a : b; }
LIMBER_INLINE Vec max_of(Vec a, Vec b) { return a > b ? a : b; }
template <typename F>
LIMBER_INLINE Vec per_lane(Vec v, F f) {
  Vec y;
  for (int i = 0; i < kLanes; ++i) y[i] = f(v[i]);
  return y;
}
LIMBER_INLINE Vec sqrt_of(Vec v) {
  return per_lane(v, [](float x) { return __builtin_sqrtf(x); });
}
LIMBER_INLINE Vec floor_of(Vec v) {
  return per_lane(v, [](float x) { return __builtin_floorf(x); });
}
LIMBER_INLINE Vec ceil_of(Vec v) {
  return per_lane(v, [](float x) { return __builtin_ceilf(x); });
}
LIMBER_INLINE Vec rint_of(Vec v) {
  return per_lane(v, [](float x) { return __builtin_rintf(x); });
}
LIMBER_INLINE Vec load_n(const float* p, int64_t n) {
  Vec v{};
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
LIMBER_INLINE void store_n(float* p, Vec v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = v[i];
}
LIMBER_INLINE Vec gather(const float* p, const int32_t* index) {
  Vec v;
  for (int i = 0; i < kLanes; ++i) v[i] = p[index[i]];
  return v;
}
#endif
LIMBER_INLINE Vec quotient(Vec a, Vec b) { return a / b; }
// In two steps, so that denormal results and overflow come out right. REQUIRES: |n| < 252
LIMBER_INLINE Vec scale_by_power(Vec v, Vec n) {
  const IVec whole = __builtin_convertvector(n, IVec);
  const IVec half = whole >> 1;
  const IVec rest = whole - half;
  return v * reinterpret_cast<Vec>((half + 127) << 23) * reinterpret_cast<Vec>((rest + 127) << 23);
}
#endif

template <int kShift, typename Lanes>
struct Rotate;
template <int... I>
struct LaneList {};
template <int N, int... I>
struct MakeLanes : MakeLanes<N - 1, N - 1, I...> {};
template <int... I>
struct MakeLanes<0, I...> {
  using type = LaneList<I...>;
};
template <int kShift, int... I>
struct Rotate<kShift, LaneList<I...>> {
  static LIMBER_INLINE Vec of(Vec v) { return __builtin_shufflevector(v, v, ((I + kShift) % kLanes)...); }
};

// Folds all lanes with an associative operation on vectors.
template <typename Op>
LIMBER_INLINE float fold_lanes(Vec v, Op op) {
  using All = typename MakeLanes<kLanes>::type;
  if constexpr (kLanes >= 16) v = op(v, Rotate<8, All>::of(v));
  if constexpr (kLanes >= 8) v = op(v, Rotate<4, All>::of(v));
  v = op(v, Rotate<2, All>::of(v));
  v = op(v, Rotate<1, All>::of(v));
  return v[0];
}
LIMBER_INLINE float sum_lanes(Vec v) {
  return fold_lanes(v, [](Vec a, Vec b) { return a + b; });
}
LIMBER_INLINE float max_lanes(Vec v) {
  return fold_lanes(v, [](Vec a, Vec b) { return max_of(a, b); });
}
// `v` in the first n lanes, `fill` in the others.
LIMBER_INLINE Vec fill_after(Vec v, int64_t n, float fill) {
  IVec lane;
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  return lane < static_cast<int32_t>(n) ? v : splat(fill);
}
