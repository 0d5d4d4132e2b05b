// Attention of one head. Scores of a block of query rows are kept in scratch memory; both products go
// through one register-blocked micro-kernel.
//
// Scratch: packed keys (panels of columns, each [depth][panel width]), packed values when their rows are
// not whole vectors, scores [block_rows][score_stride], sums of the blocks' products [block_rows][width].

// Sums are in registers, at most 24 of 32 (12 of 16): the rest holds a row of b and one number of a.
#if defined(__AVX512F__)
constexpr int kMaxPanel = 4;                     // vectors of columns a micro-kernel holds
constexpr int kPanelRows[] = {0, 12, 12, 8, 6};  // rows it holds, by vectors
#else
constexpr int kMaxPanel = 3;
constexpr int kPanelRows[] = {0, 8, 6, 4};
#endif

// c[kRows, kVecs * kLanes] = a[kRows, depth] * b[depth, kVecs * kLanes]
template <int kRows, int kVecs>
void product_tile(int64_t depth, const float* a, int64_t a_stride, const float* b, int64_t b_stride, float* c,
                  int64_t c_stride) {
  Vec acc[kRows][kVecs] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Vec column[kVecs];
    LIMBER_UNROLL
    for (int j = 0; j < kVecs; ++j) column[j] = load(b + k * b_stride + j * kLanes);
    LIMBER_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const Vec x = splat(a[i * a_stride + k]);
      LIMBER_UNROLL
      for (int j = 0; j < kVecs; ++j) acc[i][j] = x * column[j] + acc[i][j];
    }
  }
  LIMBER_UNROLL
  for (int i = 0; i < kRows; ++i) {
    LIMBER_UNROLL
    for (int j = 0; j < kVecs; ++j) store(c + i * c_stride + j * kLanes, acc[i][j]);
  }
}

using ProductTile = void (*)(int64_t, const float*, int64_t, const float*, int64_t, float*, int64_t);

constexpr int kMostRows = 12;  // of kPanelRows
struct TileSet {
  ProductTile tile[kMaxPanel + 1][kMostRows + 1] = {};
};
template <int kVecs, int kRows>
constexpr void fill_tiles(TileSet& set) {
  set.tile[kVecs][kRows] = product_tile<kRows, kVecs>;
  if constexpr (kRows > 1) fill_tiles<kVecs, kRows - 1>(set);
}
template <int kVecs>
constexpr void fill_panels(TileSet& set) {
  fill_tiles<kVecs, kPanelRows[kVecs]>(set);
  if constexpr (kVecs > 1) fill_panels<kVecs - 1>(set);
}
constexpr TileSet make_tiles() {
  TileSet set{};
  fill_panels<kMaxPanel>(set);
  return set;
}
constexpr TileSet kTiles = make_tiles();

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t vectors_of(int64_t n) { return ceil_div(n, kLanes); }

// Splits `total` into ceil(total / most) parts that differ by at most one; calls body(begin, size).
template <typename Body>
LIMBER_INLINE void for_even_parts(int64_t total, int64_t most, Body body) {
  if (total <= 0) return;
  const int64_t parts = ceil_div(total, most), small = total / parts, extra = total % parts;
  for (int64_t p = 0, begin = 0; p < parts; ++p) {
    const int64_t size = small + (p < extra ? 1 : 0);
    body(begin, size);
    begin += size;
  }
}

// c[rows, vectors * kLanes] = a * b. `packed`: b is in panels, else row-major with b_stride.
void product(int64_t rows, int64_t vectors, int64_t depth, const float* a, int64_t a_stride, const float* b,
             bool packed, int64_t b_stride, float* c, int64_t c_stride) {
  for_even_parts(vectors, kMaxPanel, [&](int64_t first, int64_t count) {
    const float* panel = b + first * kLanes * (packed ? depth : 1);
    const int64_t panel_stride = packed ? count * kLanes : b_stride;
    for_even_parts(rows, kPanelRows[count], [&](int64_t r, int64_t n) {
      kTiles.tile[count][n](depth, a + r * a_stride, a_stride, panel, panel_stride,
                            c + r * c_stride + first * kLanes, c_stride);
    });
  });
}

struct AttentionScratch {
  float *keys, *values, *scores, *product;
  int64_t score_stride, product_stride, size;
  bool pack_values;

  AttentionScratch(const AttentionHead& head, float* base) {
    pack_values = head.width % kLanes != 0;
    score_stride = (vectors_of(head.keys) + 1) * kLanes;  // odd spacing keeps rows out of one cache set
    product_stride = vectors_of(head.width) * kLanes;
    const int64_t key_size = vectors_of(head.keys) * kLanes * head.depth;
    const int64_t value_size = pack_values ? head.keys * product_stride : 0;
    keys = base;
    values = keys + key_size;
    scores = values + value_size;
    product = scores + head.block_rows * score_stride;
    size = key_size + value_size + head.block_rows * (score_stride + product_stride);
  }
};

int64_t attention_scratch(const AttentionHead& head) {
  alignas(64) float none[1];
  return AttentionScratch(head, none).size;
}

void attention_pack(const AttentionHead& head, const float* k, const float* v, float* scratch) {
  const AttentionScratch s(head, scratch);
  for_even_parts(vectors_of(head.keys), kMaxPanel, [&](int64_t first, int64_t count) {
    const int64_t begin = first * kLanes, width = count * kLanes;
    const int64_t here = head.keys - begin < width ? head.keys - begin : width;
    float* panel = s.keys + begin * head.depth;
    transpose32(reinterpret_cast<const uint32_t*>(k + begin * head.depth), head.depth,
                reinterpret_cast<uint32_t*>(panel), width, here, head.depth);
    for (int64_t d = 0; d < head.depth && here < width; ++d) {
      for (int64_t j = here; j < width; ++j) panel[d * width + j] = 0.0f;
    }
  });
  if (!s.pack_values) return;
  for (int64_t t = 0; t < head.keys; ++t) {
    float* row = s.values + t * s.product_stride;
    __builtin_memcpy(row, v + t * head.width, static_cast<size_t>(head.width) * sizeof(float));
    for (int64_t j = head.width; j < s.product_stride; ++j) row[j] = 0.0f;
  }
}

// scores * scale + mask in place, the padding after n set to -inf; gives the largest.
template <bool kMask, bool kColumns>
LIMBER_INLINE float scale_scores(float* scores, int64_t n, float scale, const float* mask) {
  Vec row_mask{};
  if constexpr (kMask && !kColumns) row_mask = splat(*mask);
  const auto scaled = [&](int64_t i, Vec columns) {
    Vec x = load(scores + i) * scale;
    if constexpr (kMask) x = x + (kColumns ? columns : row_mask);
    return x;
  };
  Vec top = splat(-kInfinity), top2 = top, m{}, m2{};
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    if constexpr (kMask && kColumns) {
      m = load(mask + i);
      m2 = load(mask + i + kLanes);
    }
    const Vec x = scaled(i, m), x2 = scaled(i + kLanes, m2);
    store(scores + i, x);
    store(scores + i + kLanes, x2);
    top = max_of(top, x);
    top2 = max_of(top2, x2);
  }
  for (; i < n; i += kLanes) {
    const int64_t left = n - i < kLanes ? n - i : kLanes;
    if constexpr (kMask && kColumns) m = load_n(mask + i, left);
    const Vec x = fill_after(scaled(i, m), left, -kInfinity);
    store(scores + i, x);
    top = max_of(top, x);
  }
  return max_lanes(max_of(top, top2));
}

// scores -> exp(scores - top) over whole vectors (the padding holds -inf); gives the sum.
LIMBER_INLINE float exp_scores(float* scores, int64_t vectors, float top) {
  Vec sum{}, sum2{};
  int64_t i = 0;
  for (; i + 2 <= vectors; i += 2) {
    const Vec e = exp_of_nonpositive(load(scores + i * kLanes) - top);
    const Vec e2 = exp_of_nonpositive(load(scores + (i + 1) * kLanes) - top);
    store(scores + i * kLanes, e);
    store(scores + (i + 1) * kLanes, e2);
    sum += e;
    sum2 += e2;
  }
  if (i < vectors) {
    const Vec e = exp_of_nonpositive(load(scores + i * kLanes) - top);
    store(scores + i * kLanes, e);
    sum += e;
  }
  return sum_lanes(sum + sum2);
}

float scale_row(float* scores, const AttentionHead& head, const AttentionMask& mask, int64_t row) {
  const float* m = mask.data + row * mask.row;
  if (mask.data == nullptr) return scale_scores<false, false>(scores, head.keys, head.scale, m);
  if (mask.col == 0) return scale_scores<true, false>(scores, head.keys, head.scale, m);
  return scale_scores<true, true>(scores, head.keys, head.scale, m);
}

// Query rows whose scores are in scratch memory at a time; sizes arrays on the stack.
constexpr int64_t kMostBlockRows = 64;

// REQUIRES: rows <= block_rows <= kMostBlockRows
void attention_rows(const AttentionHead& head, const float* q, int64_t rows, const float* v,
                    const AttentionMask& mask, float* y, float* scratch) {
  const AttentionScratch s(head, scratch);
  product(rows, vectors_of(head.keys), head.depth, q, head.depth, s.keys, true, 0, s.scores, s.score_stride);
  // Two passes over all rows rather than two per row: the rows then overlap in the processor.
  float top[kMostBlockRows], factor[kMostBlockRows];
  for (int64_t r = 0; r < rows; ++r) top[r] = scale_row(s.scores + r * s.score_stride, head, mask, r);
  for (int64_t r = 0; r < rows; ++r) {
    factor[r] = 1.0f / exp_scores(s.scores + r * s.score_stride, vectors_of(head.keys), top[r]);
  }
  product(rows, vectors_of(head.width), head.keys, s.scores, s.score_stride, s.pack_values ? s.values : v,
          false, s.pack_values ? s.product_stride : head.width, s.product, s.product_stride);
  for (int64_t r = 0; r < rows; ++r) {
    unary_loop<UnaryAffine>(s.product + r * s.product_stride, y + r * head.width, head.width,
                            {factor[r], 0.0f});
  }
}

constexpr void fill_attention(SimdTable& t) {
  t.attention_scratch = attention_scratch;
  t.attention_pack = attention_pack;
  t.attention_rows = attention_rows;
}
