// Convolutions with 3x3 taps and stride 1 by Winograd's F(4x4, 3x3), and their gradients: 36 products replace
// 144. Tiles of 6x6 pixels are transformed, multiplied frequency by frequency as matrices, and transformed
// back; a part of a batch at a time, so that what lies between stays in the second-level cache.
//
// Polynomials are evaluated at 0, +-3/4, +-3/2 and infinity: exact in binary, and the products stay of one
// magnitude, so that results are about as exact as those of the direct sum (with 0, +-1, +-2 they are not).

constexpr int64_t kFrequencies = kWinogradFrequencies;
constexpr int64_t kLine = 16;                // floats of a cache line
constexpr float kNear = 0.75f, kFar = 1.5f;  // the points
constexpr float kNear2 = kNear * kNear, kFar2 = kFar * kFar;
// 1 / the product of a point's distances to the others.
constexpr float kAtZero = 1 / (kNear2 * kFar2), kAtNear = 1 / (2 * kNear2 * (kNear2 - kFar2)),
                kAtFar = 1 / (2 * kFar2 * (kFar2 - kNear2));

// Values at the six points, of which two pairs differ in sign only.
LIMBER_INLINE void store_pairs(Vec near_even, Vec near_odd, Vec far_even, Vec far_odd, Vec (&out)[6]) {
  out[1] = near_even + near_odd;
  out[2] = near_even - near_odd;
  out[3] = far_even + far_odd;
  out[4] = far_even - far_odd;
}

// Six pixels to six frequencies.
LIMBER_INLINE void winograd_pixels(const Vec (&d)[6], Vec (&out)[6]) {
  out[0] = d[0] * (kNear2 * kFar2) - d[2] * (kNear2 + kFar2) + d[4];
  store_pairs(d[4] - d[2] * kFar2, (d[3] - d[1] * kFar2) * kNear, d[4] - d[2] * kNear2,
              (d[3] - d[1] * kNear2) * kFar, out);
  out[5] = d[1] * (kNear2 * kFar2) - d[3] * (kNear2 + kFar2) + d[5];
}
// Three taps to six frequencies.
LIMBER_INLINE void winograd_taps(const Vec (&g)[3], Vec (&out)[6]) {
  out[0] = g[0] * kAtZero;
  store_pairs((g[0] + g[2] * kNear2) * kAtNear, g[1] * (kNear * kAtNear), (g[0] + g[2] * kFar2) * kAtFar,
              g[1] * (kFar * kAtFar), out);
  out[5] = g[2];
}
// Four gradients to six frequencies.
LIMBER_INLINE void winograd_gradients(const Vec (&d)[4], Vec (&out)[6]) {
  out[0] = d[0];
  store_pairs(d[0] + d[2] * kNear2, (d[1] + d[3] * kNear2) * kNear, d[0] + d[2] * kFar2,
              (d[1] + d[3] * kFar2) * kFar, out);
  out[5] = d[3];
}
// Six frequencies to four results.
LIMBER_INLINE void winograd_results(const Vec (&m)[6], Vec (&out)[4]) {
  const Vec even = m[1] + m[2], odd = m[1] - m[2], far_even = m[3] + m[4], far_odd = m[3] - m[4];
  out[0] = m[0] + even + far_even;
  out[1] = odd * kNear + far_odd * kFar;
  out[2] = even * kNear2 + far_even * kFar2;
  out[3] = odd * (kNear * kNear2) + far_odd * (kFar * kFar2) + m[5];
}
// Six frequencies to three gradients of taps: winograd_taps transposed.
LIMBER_INLINE void winograd_tap_gradients(const Vec (&s)[6], Vec (&out)[3]) {
  const Vec even = (s[1] + s[2]) * kAtNear, odd = (s[1] - s[2]) * kAtNear;
  const Vec far_even = (s[3] + s[4]) * kAtFar, far_odd = (s[3] - s[4]) * kAtFar;
  out[0] = s[0] * kAtZero + even + far_even;
  out[1] = odd * kNear + far_odd * kFar;
  out[2] = even * kNear2 + far_even * kFar2 + s[5];
}

// A transform over both axes: `read(i, j)` gives the kIn x kIn inputs, `write(i, j, v)` takes kOut x kOut.
template <int kIn, int kOut, typename Transform, typename Read, typename Write>
LIMBER_INLINE void winograd_plane(Transform transform, Read read, Write write) {
  Vec half[kOut][kIn];
  LIMBER_UNROLL
  for (int j = 0; j < kIn; ++j) {
    Vec in[kIn], out[kOut];
    LIMBER_UNROLL
    for (int i = 0; i < kIn; ++i) in[i] = read(i, j);
    transform(in, out);
    LIMBER_UNROLL
    for (int i = 0; i < kOut; ++i) half[i][j] = out[i];
  }
  LIMBER_UNROLL
  for (int i = 0; i < kOut; ++i) {
    Vec out[kOut];
    transform(half[i], out);
    LIMBER_UNROLL
    for (int j = 0; j < kOut; ++j) write(i, j, out[j]);
  }
}

// Where a tile lies: the image, and its first row and column of results.
struct WinogradTile {
  int64_t image, row, column;

  WinogradTile(const WinogradShape& s, int64_t index)
      : image(index / (s.tiles[0] * s.tiles[1])),
        row(index / s.tiles[1] % s.tiles[0] * 4),
        column(index % s.tiles[1] * 4) {}
};

// Where the channels of vector `v` begin in one image.
LIMBER_INLINE int64_t winograd_vector(const WinogradImages& images, int64_t v) {
  const int64_t channel = v * kLanes;
  return channel / images.block * images.block_stride + channel % images.block;
}

// Calls body(read) with read(i, j) giving pixel (row + i, column + j), 0 outside of the image.
template <int kSize, typename Body>
LIMBER_INLINE void winograd_read(const WinogradImages& images, const float* x, int64_t row, int64_t column,
                                 Body body) {
  const float* corner = x + (row * images.width + column) * images.pixel;
  const auto at = [&](int i, int j) { return load(corner + (i * images.width + j) * images.pixel); };
  if (row >= 0 && column >= 0 && row + kSize <= images.height && column + kSize <= images.width)
    return body(at);
  body([&](int i, int j) {
    const bool inside =
        row + i >= 0 && row + i < images.height && column + j >= 0 && column + j < images.width;
    return inside ? at(i, j) : Vec{};
  });
}

// What is by frequency lies a cache line further apart than it is long: what belongs together is then in
// different cache sets.
LIMBER_INLINE int64_t frequency_stride(const WinogradShape& s, int64_t channels) {
  return s.chunk * channels + kWinogradGap;
}
LIMBER_INLINE int64_t weight_stride(const WinogradShape& s) {
  return s.src.channels * s.dst.channels + kWinogradGap;
}

// Input tiles [begin, end) of x, transformed: [frequency][tile][channel].
void winograd_inputs(const WinogradShape& s, const float* x, int64_t begin, int64_t end, float* out) {
  const int64_t channels = s.src.channels, stride = frequency_stride(s, channels);
  for (int64_t t = begin; t < end; ++t, out += channels) {
    const WinogradTile tile(s, t);
    const float* image = x + tile.image * s.src.image;
    for (int64_t v = 0; v < channels / kLanes; ++v) {
      float* to = out + v * kLanes;
      winograd_read<6>(s.src, image + winograd_vector(s.src, v), tile.row - s.pad[0], tile.column - s.pad[1],
                       [&](auto read) {
                         winograd_plane<6, 6>(winograd_pixels, read, [&](int i, int j, Vec value) {
                           store(to + (i * 6 + j) * stride, value);
                         });
                       });
    }
  }
}

// Tiles [begin, end) of dy, transformed: [frequency][tile][channel].
void winograd_output_gradients(const WinogradShape& s, const float* dy, int64_t begin, int64_t end,
                               float* out) {
  const int64_t channels = s.dst.channels, stride = frequency_stride(s, channels);
  for (int64_t t = begin; t < end; ++t, out += channels) {
    const WinogradTile tile(s, t);
    const float* image = dy + tile.image * s.dst.image;
    for (int64_t v = 0; v < channels / kLanes; ++v) {
      float* to = out + v * kLanes;
      winograd_read<4>(s.dst, image + winograd_vector(s.dst, v), tile.row, tile.column, [&](auto read) {
        winograd_plane<4, 6>(winograd_gradients, read,
                             [&](int i, int j, Vec value) { store(to + (i * 6 + j) * stride, value); });
      });
    }
  }
}

// From [frequency][tile][channel] to tiles [begin, end) of y.
void winograd_outputs(const WinogradShape& s, const float* in, int64_t begin, int64_t end, const float* bias,
                      float* y) {
  const int64_t channels = s.dst.channels, stride = frequency_stride(s, channels);
  for (int64_t t = begin; t < end; ++t, in += channels) {
    const WinogradTile tile(s, t);
    const int64_t rows = s.dst.height - tile.row, columns = s.dst.width - tile.column;
    float* corner = y + tile.image * s.dst.image + (tile.row * s.dst.width + tile.column) * s.dst.pixel;
    for (int64_t v = 0; v < channels / kLanes; ++v) {
      const float* from = in + v * kLanes;
      float* to = corner + winograd_vector(s.dst, v);
      const Vec add = bias != nullptr ? load(bias + v * kLanes) : Vec{};
      winograd_plane<6, 4>(
          winograd_results, [&](int i, int j) { return load(from + (i * 6 + j) * stride); },
          [&](int i, int j, Vec value) {
            if (i >= rows || j >= columns) return;
            float* at = to + (i * s.dst.width + j) * s.dst.pixel;
            value += add;
            if (s.sum) value += load(at);
            if (s.relu) value = max_of(Vec{}, value);
            store(at, value);
          });
    }
  }
}

// While one chunk is multiplied, which needs no memory beyond the caches, the next one's pixels are brought
// nearer: the share of frequency f of tiles [begin, end), the 4x4 pixels that each has for itself.
template <bool kWrite>
LIMBER_INLINE void winograd_prefetch(const WinogradShape& s, const WinogradImages& images, const float* x,
                                     int64_t begin, int64_t end, int64_t f) {
  const int64_t count = end - begin, last = begin + (f + 1) * count / kFrequencies;
  for (int64_t t = begin + f * count / kFrequencies; t < last; ++t) {
    const WinogradTile tile(s, t);
    const int64_t rows = images.height - tile.row < 4 ? images.height - tile.row : 4;
    const int64_t columns = images.width - tile.column < 4 ? images.width - tile.column : 4;
    const float* corner =
        x + tile.image * images.image + (tile.row * images.width + tile.column) * images.pixel;
    for (int64_t c = 0; c < images.channels; c += kLine) {
      const float* at = corner + c / images.block * images.block_stride + c % images.block;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j)
          __builtin_prefetch(at + (i * images.width + j) * images.pixel, kWrite ? 1 : 0, 2);
      }
    }
  }
}

int64_t winograd_scratch(const WinogradShape& s) {
  return kFrequencies * (frequency_stride(s, s.src.channels) + frequency_stride(s, s.dst.channels));
}

void winograd_forward(const WinogradShape& s, const float* x, const float* weights, const float* bias,
                      float* y, int64_t begin, int64_t end, float* scratch) {
  const int64_t depth = s.src.channels, width = s.dst.channels;
  const int64_t in_stride = frequency_stride(s, depth), out_stride = frequency_stride(s, width);
  float* products = scratch + kFrequencies * in_stride;
  for (int64_t t = begin; t < end; t += s.chunk) {
    const int64_t count = end - t < s.chunk ? end - t : s.chunk;
    winograd_inputs(s, x, t, t + count, scratch);
    const int64_t next = t + count, after = end - next < s.chunk ? end : next + s.chunk;
    for (int64_t f = 0; f < kFrequencies; ++f) {
      winograd_prefetch<true>(s, s.dst, y, t, next, f);
      winograd_prefetch<false>(s, s.src, x, next, after, f);
      product(count, width / kLanes, depth, scratch + f * in_stride, depth, weights + f * weight_stride(s),
              false, width, products + f * out_stride, width);
    }
    winograd_outputs(s, products, t, t + count, bias, y);
  }
}

// --- weights --------------------------------------------------------------------------------------------

// Weights of `from` input channels of the product by all its output channels: [frequency][in][out]. A tap of
// input c and output k is w[c * in + k * out + tap], or the last tap first when `turned`.
void winograd_weights(const WinogradShape& s, const float* w, int64_t begin, int64_t end, float* out) {
  const int64_t width = s.dst.channels, stride = weight_stride(s);
  for (int64_t c = begin; c < end; ++c) {
    for (int64_t k = 0; k < width; k += kLanes) {
      alignas(64) float taps[9][kLanes];
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const float* tap = w + c * s.weight_in + (k + lane) * s.weight_out;
        for (int i = 0; i < 9; ++i) taps[i][lane] = tap[s.turned ? 8 - i : i];
      }
      float* to = out + c * width + k;
      winograd_plane<3, 6>(
          winograd_taps, [&](int i, int j) { return load(taps[i * 3 + j]); },
          [&](int i, int j, Vec value) { store(to + (i * 6 + j) * stride, value); });
    }
  }
}

// c[kRows, kVecs * kLanes] += the sum over n tiles of a's column times b's row.
template <int kRows, int kVecs>
LIMBER_INLINE void outer_tile(int64_t n, const float* a, int64_t a_stride, const float* b, int64_t b_stride,
                              float* c, int64_t c_stride) {
  Vec acc[kRows][kVecs];
  LIMBER_UNROLL
  for (int i = 0; i < kRows; ++i) {
    LIMBER_UNROLL
    for (int j = 0; j < kVecs; ++j) acc[i][j] = load(c + i * c_stride + j * kLanes);
  }
  for (int64_t t = 0; t < n; ++t) {
    Vec row[kVecs];
    LIMBER_UNROLL
    for (int j = 0; j < kVecs; ++j) row[j] = load(b + t * b_stride + j * kLanes);
    LIMBER_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const Vec x = splat(a[t * a_stride + i]);
      LIMBER_UNROLL
      for (int j = 0; j < kVecs; ++j) acc[i][j] = x * row[j] + acc[i][j];
    }
  }
  LIMBER_UNROLL
  for (int i = 0; i < kRows; ++i) {
    LIMBER_UNROLL
    for (int j = 0; j < kVecs; ++j) store(c + i * c_stride + j * kLanes, acc[i][j]);
  }
}

template <int kRows, int kVecs>
void outer_product(int64_t n, int64_t depth, int64_t width, const float* a, const float* b, float* c) {
  for (int64_t k = 0; k < width; k += kVecs * kLanes) {
    for (int64_t i = 0; i < depth; i += kRows)
      outer_tile<kRows, kVecs>(n, a + i, depth, b + k, width, c + i * width + k, width);
  }
}

// Adds what tiles [begin, end) have to `sums`: [frequency][in][out].
void winograd_gradient(const WinogradShape& s, const float* x, const float* dy, int64_t begin, int64_t end,
                       float* sums, float* scratch) {
  const int64_t depth = s.src.channels, width = s.dst.channels;
  const int64_t in_stride = frequency_stride(s, depth), out_stride = frequency_stride(s, width);
  float* gradients = scratch + kFrequencies * in_stride;
#if defined(__AVX512F__)
  const auto outer = width % (2 * kLanes) == 0 ? outer_product<8, 2> : outer_product<16, 1>;
#else
  const auto outer = outer_product<4, 2>;
#endif
  for (int64_t t = begin; t < end; t += s.chunk) {
    const int64_t count = end - t < s.chunk ? end - t : s.chunk;
    winograd_inputs(s, x, t, t + count, scratch);
    winograd_output_gradients(s, dy, t, t + count, gradients);
    const int64_t next = t + count, after = end - next < s.chunk ? end : next + s.chunk;
    for (int64_t f = 0; f < kFrequencies; ++f) {
      winograd_prefetch<false>(s, s.src, x, next, after, f);
      winograd_prefetch<false>(s, s.dst, dy, next, after, f);
      outer(count, depth, width, scratch + f * in_stride, gradients + f * out_stride,
            sums + f * weight_stride(s));
    }
  }
}

// The gradient of the weights of input channels [begin, end) from `parts` of sums that lie one after another.
void winograd_weight_gradients(const WinogradShape& s, const float* sums, int64_t parts, int64_t begin,
                               int64_t end, float* dw) {
  const int64_t width = s.dst.channels, stride = weight_stride(s);
  for (int64_t c = begin; c < end; ++c) {
    for (int64_t k = 0; k < width; k += kLanes) {
      const float* from = sums + c * width + k;
      alignas(64) float taps[9][kLanes];
      winograd_plane<6, 3>(
          winograd_tap_gradients,
          [&](int i, int j) {
            Vec total{};
            for (int64_t p = 0; p < parts; ++p) total += load(from + (p * kFrequencies + i * 6 + j) * stride);
            return total;
          },
          [&](int i, int j, Vec value) { store(taps[i * 3 + j], value); });
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        float* tap = dw + c * s.weight_in + (k + lane) * s.weight_out;
        for (int i = 0; i < 9; ++i) tap[i] = taps[i][lane];
      }
    }
  }
}

constexpr void fill_winograd(SimdTable& t) {
  t.winograd_scratch = winograd_scratch;
  t.winograd_weights = winograd_weights;
  t.winograd_forward = winograd_forward;
  t.winograd_gradient = winograd_gradient;
  t.winograd_weight_gradients = winograd_weight_gradients;
}
