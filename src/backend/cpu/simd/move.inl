// Data movement and interpolation.

#if defined(__AVX512F__)
// A 16x16 block of 4-byte elements, all in registers.
LIMBER_INLINE void transpose_tile(const uint32_t* src, int64_t src_stride, uint32_t* dst,
                                  int64_t dst_stride) {
  __m512i r[16], t[16];
  LIMBER_UNROLL
  for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(src + i * src_stride);
  LIMBER_UNROLL
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  LIMBER_UNROLL
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  LIMBER_UNROLL
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
  }
  LIMBER_UNROLL
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
    r[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
    r[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
    r[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
  }
  LIMBER_UNROLL
  for (int i = 0; i < 16; ++i) _mm512_storeu_si512(dst + i * dst_stride, r[i]);
}
#elif defined(__AVX2__)
LIMBER_INLINE void transpose_tile(const uint32_t* src, int64_t src_stride, uint32_t* dst,
                                  int64_t dst_stride) {
  __m256i r[8], t[8];
  LIMBER_UNROLL
  for (int i = 0; i < 8; ++i) {
    r[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(src + i * src_stride));
  }
  LIMBER_UNROLL
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  LIMBER_UNROLL
  for (int i = 0; i < 2; ++i) {
    r[4 * i] = _mm256_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm256_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm256_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm256_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  LIMBER_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m256i low = _mm256_permute2x128_si256(r[i], r[4 + i], 0x20);
    const __m256i high = _mm256_permute2x128_si256(r[i], r[4 + i], 0x31);
    _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(dst + i * dst_stride), low);
    _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(dst + (4 + i) * dst_stride), high);
  }
}
#else
LIMBER_INLINE void transpose_tile(const uint32_t* src, int64_t src_stride, uint32_t* dst,
                                  int64_t dst_stride) {
  for (int c = 0; c < kLanes; ++c) {
    for (int r = 0; r < kLanes; ++r) dst[c * dst_stride + r] = src[r * src_stride + c];
  }
}
#endif

void transpose32(const uint32_t* src, int64_t src_stride, uint32_t* dst, int64_t dst_stride, int64_t rows,
                 int64_t cols) {
  const int64_t full_rows = rows - rows % kLanes, full_cols = cols - cols % kLanes;
  for (int64_t c = 0; c < full_cols; c += kLanes) {
    for (int64_t r = 0; r < full_rows; r += kLanes) {
      transpose_tile(src + r * src_stride + c, src_stride, dst + c * dst_stride + r, dst_stride);
    }
  }
  for (int64_t c = full_cols; c < cols; ++c) {
    for (int64_t r = 0; r < full_rows; ++r) dst[c * dst_stride + r] = src[r * src_stride + c];
  }
  for (int64_t r = full_rows; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) dst[c * dst_stride + r] = src[r * src_stride + c];
  }
}

// Calls body(i) for vectors that cover [0, n), the last one overlapping its neighbour. REQUIRES: n >= kLanes
template <typename Body>
LIMBER_INLINE void overlapping_vectors(int64_t n, Body body) {
  for (int64_t i = 0; i + kLanes <= n; i += kLanes) body(i);
  if (n % kLanes != 0) body(n - kLanes);
}

void gather32(const uint32_t* x, const int32_t* index, uint32_t* y, int64_t n) {
  if (n < kLanes) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[index[i]];
    return;
  }
  overlapping_vectors(n, [=](int64_t i) {
    const Vec v = gather(reinterpret_cast<const float*>(x), index + i);
    __builtin_memcpy(y + i, &v, sizeof(v));
  });
}

void lerp_gather(const float* x, const int32_t* index0, const int32_t* index1, const float* weight, float* y,
                 int64_t n) {
  if (n < kLanes) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[index0[i]] + (x[index1[i]] - x[index0[i]]) * weight[i];
    return;
  }
  overlapping_vectors(n, [=](int64_t i) {
    const Vec a = gather(x, index0 + i), b = gather(x, index1 + i);
    store(y + i, a + (b - a) * load(weight + i));
  });
}

void lerp_rows(const float* a, const float* b, float weight, float* y, int64_t n) {
  if (n < kLanes) {
    for (int64_t i = 0; i < n; ++i) y[i] = a[i] + (b[i] - a[i]) * weight;
    return;
  }
  overlapping_vectors(n, [=](int64_t i) {
    const Vec v = load(a + i);
    store(y + i, v + (load(b + i) - v) * weight);
  });
}

constexpr void fill_move(SimdTable& t) {
  t.transpose32 = transpose32;
  t.gather32 = gather32;
  t.lerp_gather = lerp_gather;
  t.lerp_rows = lerp_rows;
}
