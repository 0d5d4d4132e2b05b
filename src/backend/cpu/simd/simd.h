// The inner loops of the CPU backend's own kernels, compiled once per instruction set. Everything here is
// single-threaded, allocates nothing and takes unaligned pointers; threading is done by the callers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace limber {

// The lists of element-wise functions and reductions that exist in vectors. Affine is a * x + b.
// clang-format off
#define LIMBER_SIMD_UNARY(X) \
  X(Abs) X(Neg) X(Sign) X(Reciprocal) X(Floor) X(Ceil) X(Round) X(Sqrt) X(Exp) X(Log) X(Erf) X(Tanh) X(Relu) \
  X(Sigmoid) X(Silu) X(HardSwish) X(Mish) X(Softplus) X(Softsign) X(Gelu) X(GeluTanh) X(LeakyRelu) X(Elu) \
  X(Celu) X(Selu) X(ThresholdedRelu) X(HardSigmoid) X(Shrink) X(Clip) X(Square) X(Cube) X(Affine)
#define LIMBER_SIMD_BINARY(X) X(Add) X(Sub) X(Mul) X(Div) X(Min) X(Max) X(PRelu)
// ExpSum is the sum of exp(x - shift).
#define LIMBER_SIMD_REDUCE(X) X(Sum) X(Max) X(Min) X(Prod) X(AbsSum) X(SquareSum) X(ExpSum)
// dx from dy and x, or from dy and the activation's result (OfY). Relu, LeakyRelu and Clip work for both.
#define LIMBER_SIMD_GRADIENT(X) \
  X(Relu) X(LeakyRelu) X(Clip) X(SigmoidOfY) X(TanhOfY) X(HardSigmoid) X(HardSigmoidOfY) X(EluOfY) \
  X(SoftplusOfY) X(HardSwish) X(Silu) X(Gelu) X(GeluTanh) X(Mish)
// clang-format on

#define LIMBER_ENUMERATOR(name) k##name,
enum class SimdUnary : uint8_t { LIMBER_SIMD_UNARY(LIMBER_ENUMERATOR) kCount };
enum class SimdBinary : uint8_t { LIMBER_SIMD_BINARY(LIMBER_ENUMERATOR) kCount };
enum class SimdReduce : uint8_t { LIMBER_SIMD_REDUCE(LIMBER_ENUMERATOR) kCount };
enum class SimdGradient : uint8_t { LIMBER_SIMD_GRADIENT(LIMBER_ENUMERATOR) kCount };
#undef LIMBER_ENUMERATOR

// What the operator's attributes become: alpha or lambd or min in `a`, beta or bias or gamma or max in `b`.
struct UnaryParams {
  float a = 0, b = 0;
};

// Two nested loops over operands a and b; y is dense. A column stride is 0 (one value per row) or 1.
struct BinaryLoop {
  int64_t rows = 0, cols = 0;
  int64_t a_row = 0, b_row = 0;  // elements from one row to the next
  int64_t a_col = 0, b_col = 0;
};

// For each of `width` columns, the index of the extreme of n elements that lie `stride` apart.
struct ArgArgs {
  int64_t n, stride, width;
  bool largest, last;  // last: of equal ones the last, else the first; NaN beats every number
};

struct LayerNormArgs {
  const float* x;
  float* y;
  int64_t rows, cols;
  const float *scale, *bias;  // [cols]; may be null
  float epsilon;
  float *mean, *inv_std;  // [rows]; may be null
};

// Some channels of one image. In columns: `rows` pixels that lie `stride` apart, each with `width` channels
// side by side. As a run: `rows` pixels of one channel, dense.
struct ChannelPanel {
  int64_t rows, stride, width;
  bool run;
};

// What the gradient of a normalised panel is made from: y = relu?((x * scale + shift)). Per channel.
struct PanelGradient {
  const float *x, *dy;
  const float* mean;
  const float *scale, *shift;
  bool relu;
};

// The windows of a pooling over two spatial axes.
struct PoolWindows {
  int64_t in[2], out[2], kernel[2], stride[2], dilation[2], pad[2];
  int64_t whole_count;  // what an average divides by; 0: the taps inside
};

struct LayerNormGradient {
  const float *x, *dy;
  int64_t rows, cols;
  const float *mean, *inv_std;  // [rows]
  const float* scale;           // [cols]; may be null
  float *dx, *dscale, *dbias;   // may be null; the last two are added to
};

struct SgdStep {
  float rate, factor, momentum, dampening, decay;
  bool nesterov, decoupled;
};

struct AdamStep {
  float rate, factor, beta1, beta2, epsilon, decay;
  float correction1, correction2;  // 1 / (1 - beta^step)
  bool decoupled;
};

struct LrnArgs {
  int64_t channels, stride;  // stride: elements from one channel to the next
  int64_t size;
  float alpha, beta, bias;  // alpha already divided by size
};

// One attention head: q[M,D] k[T,D] v[T,E] -> y[M,E]; `depth` is D, `keys` is T, `width` is E.
struct AttentionHead {
  int64_t keys, depth, width;
  int64_t block_rows;  // the most query rows one call of attention_rows is given; at most 64
  float scale;
};

struct AttentionMask {
  const float* data = nullptr;  // null: no mask
  int64_t row = 0, col = 0;     // strides; col is 0 or 1
};

// The images of a batch whose channels lie in blocks of `block` side by side: every pixel has one of each.
struct WinogradImages {
  int64_t height, width, channels;
  int64_t image, pixel;         // elements from one image and from one pixel to the next
  int64_t block, block_stride;  // channels side by side; elements from one such block to the next
};

inline constexpr int64_t kWinogradFrequencies = 36;
inline constexpr int64_t kWinogradGap = 16;  // floats between what belongs to one frequency and to the next
// A convolution with 3x3 taps and stride 1, in tiles of 4x4 results. Channels are whole vectors of 16.
struct WinogradShape {
  WinogradImages src, dst;
  int64_t pad[2];                 // pixels before the first row and column
  int64_t tiles[2];               // down and across
  int64_t chunk;                  // tiles that are worked on at a time
  int64_t weight_in, weight_out;  // elements of the weights from one channel of src and dst to the next
  bool turned;                    // the taps are read from the last to the first
  bool sum, relu;                 // y += the result; then max(0, y)
};

struct SimdTable {
  const char* name;
  int lanes;  // floats of a vector

  // y[i] = op(x[i]); y may be x.
  void (*unary[static_cast<size_t>(SimdUnary::kCount)])(const float* x, float* y, int64_t n, UnaryParams p);
  // y may be a or b where that operand is dense.
  void (*binary[static_cast<size_t>(SimdBinary::kCount)])(const float* a, const float* b, float* y,
                                                          const BinaryLoop& loop);

  // The reduction of x[0..n), of the operator's neutral element when n is 0.
  float (*reduce[static_cast<size_t>(SimdReduce::kCount)])(const float* x, int64_t n, float shift);
  // acc[i] = acc[i] op x[i]; `shift` is read by kExpSum only.
  void (*accumulate[static_cast<size_t>(SimdReduce::kCount)])(float* acc, const float* x, const float* shift,
                                                              int64_t n);
  // REQUIRES: 0 < n <= INT32_MAX
  void (*arg_columns)(const float* x, int64_t* y, const ArgArgs& args);
  // Mean and (biased) variance. REQUIRES: n > 0
  void (*moments)(const float* x, int64_t n, float* mean, float* variance);

  // Over the columns of each of `rows` dense rows.
  void (*softmax)(const float* x, float* y, int64_t rows, int64_t cols, bool log);
  // Over n rows that lie `stride` apart, for each of `width` columns.
  void (*softmax_columns)(const float* x, float* y, int64_t n, int64_t stride, int64_t width, bool log);
  void (*layer_norm)(const LayerNormArgs& args);
  // y = x * scale + shift with one scale and shift per column.
  void (*affine_columns)(const float* x, float* y, int64_t rows, int64_t cols, const float* scale,
                         const float* shift);
  // `width` columns of one image, all channels.
  void (*lrn)(const float* x, float* y, int64_t width, const LrnArgs& args);

  // dst[c * dst_stride + r] = src[r * src_stride + c] for 4-byte elements.
  void (*transpose32)(const uint32_t* src, int64_t src_stride, uint32_t* dst, int64_t dst_stride,
                      int64_t rows, int64_t cols);
  // The three below: y overlaps none of the inputs.
  // y[i] = x[index[i]] for 4-byte elements
  void (*gather32)(const uint32_t* x, const int32_t* index, uint32_t* y, int64_t n);
  // y[i] = x[index0[i]] + (x[index1[i]] - x[index0[i]]) * weight[i]
  void (*lerp_gather)(const float* x, const int32_t* index0, const int32_t* index1, const float* weight,
                      float* y, int64_t n);
  // y[i] = a[i] + (b[i] - a[i]) * weight
  void (*lerp_rows)(const float* a, const float* b, float weight, float* y, int64_t n);

  // Floats of scratch memory one worker needs. attention_pack prepares a head in it; attention_rows then
  // computes any rows of that head.
  int64_t (*attention_scratch)(const AttentionHead& head);
  void (*attention_pack)(const AttentionHead& head, const float* k, const float* v, float* scratch);
  void (*attention_rows)(const AttentionHead& head, const float* q, int64_t rows, const float* v,
                         const AttentionMask& mask, float* y, float* scratch);

  // --- training. Sums are per channel; in-place results are allowed where memory is of equal shape.
  void (*panel_sum)(const float* x, const ChannelPanel& panel, float* sum);
  void (*panel_squares)(const float* x, const ChannelPanel& panel, const float* mean, float* sum);
  // y = relu?(x * scale + shift)
  void (*panel_affine)(const float* x, float* y, const ChannelPanel& panel, const float* scale,
                       const float* shift, bool relu);
  // Sums of dy and of dy * (x - mean), over what the activation let through.
  void (*panel_gradient_sums)(const PanelGradient& g, const ChannelPanel& panel, float* sum_dy,
                              float* sum_dyx);
  // dx = a * dy + b * x + c, dy being 0 where the activation was.
  void (*panel_gradient)(const PanelGradient& g, const ChannelPanel& panel, const float* a, const float* b,
                         const float* c, float* dx);
  void (*gradient[static_cast<size_t>(SimdGradient::kCount)])(const float* dy, const float* x, float* dx,
                                                              int64_t n, UnaryParams p);
  void (*softmax_gradient)(const float* y, const float* dy, float* dx, int64_t rows, int64_t cols);
  void (*layer_norm_gradient)(const LayerNormGradient& g);
  // Of one image: pixels lie `stride` apart, `width` channels side by side. Added to dx.
  void (*max_pool_gradient)(const PoolWindows& windows, const float* x, const float* dy, float* dx,
                            int64_t stride, int64_t width);
  void (*average_pool_gradient)(const PoolWindows& windows, const float* dy, float* dx, int64_t stride,
                                int64_t width);
  // `effect`, where it is not null, gets the sums of UpdateEffect over these elements.
  void (*sgd)(const SgdStep& step, float* w, const float* dw, float* velocity, int64_t n, float* effect);
  void (*adam)(const AdamStep& step, float* w, const float* dw, float* m, float* v, int64_t n, float* effect);

  // Floats of scratch memory one worker needs.
  int64_t (*winograd_scratch)(const WinogradShape& shape);
  // Transformed weights of channels [begin, end) of src: u[frequency][src channels][dst channels].
  void (*winograd_weights)(const WinogradShape& shape, const float* w, int64_t begin, int64_t end, float* u);
  // Tiles [begin, end) of all images, tile by tile and image by image. `bias`, by channel of dst, may be
  // null.
  void (*winograd_forward)(const WinogradShape& shape, const float* x, const float* u, const float* bias,
                           float* y, int64_t begin, int64_t end, float* scratch);
  // The same tiles' part of the gradient of u, added to `sums`.
  void (*winograd_gradient)(const WinogradShape& shape, const float* x, const float* dy, int64_t begin,
                            int64_t end, float* sums, float* scratch);
  // The gradient of the weights of channels [begin, end) of src from the total of `parts` sums, which lie one
  // after the other.
  void (*winograd_weight_gradients)(const WinogradShape& shape, const float* sums, int64_t parts,
                                    int64_t begin, int64_t end, float* dw);
};

// The tables this machine can run, best first, ended by nullptr.
const SimdTable* const* simd_tables();
// The best of them, or the one set by force_simd.
const SimdTable& simd();
// For tests: kernels made from now on use `table`; nullptr: the best again.
void force_simd(const SimdTable* table);

}  // namespace limber
