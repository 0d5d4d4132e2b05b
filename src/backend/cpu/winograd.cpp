#include "backend/cpu/winograd.h"

#include <algorithm>

#include "backend/cpu/simd/simd.h"
#include "base/parallel.h"

namespace limber {
namespace {

using onednn::Convolution;
using onednn::Format;
using onednn::Pass;

constexpr int64_t kWhole = 16;          // channels of a block
constexpr int64_t kMostChannels = 256;  // beyond, transformed weights are larger than any cache near a core

WinogradImages images_of(const std::vector<int64_t>& dims, Format format) {
  const int64_t channels = dims[1], pixels = dims[2] * dims[3];
  const int64_t block = format == Format::kChannelsLast ? channels : format == Format::kBlocked8 ? 8 : 16;
  return {dims[2], dims[3], channels, channels * pixels, block, block, pixels * block};
}

// Tiles that are worked on at a time: what is made of them stays in the second-level cache. The products take
// 12 tiles at once at most.
int64_t chunk_of(int64_t channels) {
  constexpr int64_t kFloats = 96 * 1024;  // of a cache of a MiB, which also holds weights
  return std::clamp<int64_t>(kFloats / (kWinogradFrequencies * channels) / 12 * 12, 12, 48);
}

WinogradShape shape_of(const Convolution& c) {
  WinogradShape s{};
  const bool back = c.pass == Pass::kBackwardData;
  s.src = back ? images_of(c.dst, c.dst_format) : images_of(c.src, c.src_format);
  s.dst = back ? images_of(c.src, c.src_format) : images_of(c.dst, c.dst_format);
  const int64_t in = 9, out = 9 * c.src[1];
  s.weight_in = back ? out : in;
  s.weight_out = back ? in : out;
  s.turned = back;
  for (size_t axis : {0, 1}) s.pad[axis] = back ? 2 - c.pad_begin[axis] : c.pad_begin[axis];
  s.tiles[0] = (s.dst.height + 3) / 4;
  s.tiles[1] = (s.dst.width + 3) / 4;
  s.chunk = chunk_of(s.src.channels + s.dst.channels);
  s.sum = c.post.sum;
  s.relu = c.post.act.op == OpKind::kRelu;
  return s;
}

class WinogradWork {
 public:
  explicit WinogradWork(const Convolution& c)
      : shape_(shape_of(c)),
        table_(&simd()),
        tiles_(c.src[0] * shape_.tiles[0] * shape_.tiles[1]),
        workers_(std::min<int64_t>(max_threads(), (tiles_ + shape_.chunk - 1) / shape_.chunk)),
        weights_(kWinogradFrequencies * (shape_.src.channels * shape_.dst.channels + kWinogradGap)),
        each_(table_->winograd_scratch(shape_)) {}

  // Transformed weights, then what each worker needs.
  size_t forward_scratch() const { return static_cast<size_t>(weights_ + workers_ * each_) * sizeof(float); }
  void forward(const KernelIo& io) const {
    auto* weights = static_cast<float*>(io.scratch);
    const auto* bias = io.inputs.size() > 2 ? io.in<float>(2) : nullptr;
    parallel_for(shape_.src.channels, channel_grain(), [&](int64_t begin, int64_t end) {
      table_->winograd_weights(shape_, io.in<float>(1), begin, end, weights);
    });
    for_workers([&](int64_t worker, int64_t begin, int64_t end) {
      float* own = weights + weights_ + worker * each_;
      table_->winograd_forward(shape_, io.in<float>(0), weights, bias, io.out<float>(0), begin, end, own);
    });
  }

  // Every worker's sums, then what each needs besides.
  size_t gradient_scratch() const {
    return static_cast<size_t>(workers_ * (weights_ + each_)) * sizeof(float);
  }
  void gradient(const KernelIo& io) const {
    auto* sums = static_cast<float*>(io.scratch);
    for_workers([&](int64_t worker, int64_t begin, int64_t end) {
      float* mine = sums + worker * weights_;
      float* own = sums + workers_ * weights_ + worker * each_;
      std::fill_n(mine, weights_, 0.0f);
      table_->winograd_gradient(shape_, io.in<float>(0), io.in<float>(1), begin, end, mine, own);
    });
    parallel_for(shape_.src.channels, channel_grain(), [&](int64_t begin, int64_t end) {
      table_->winograd_weight_gradients(shape_, sums, workers_, begin, end, io.out<float>(0));
    });
  }

 private:
  // Some microseconds of work for each thread.
  int64_t channel_grain() const { return std::max<int64_t>(1, 1024 / shape_.dst.channels); }

  template <typename Body>
  void for_workers(const Body& body) const {
    const int64_t share = (tiles_ + workers_ - 1) / workers_;
    parallel_for(workers_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t w = begin; w < end; ++w) body(w, w * share, std::min(tiles_, (w + 1) * share));
    });
  }

  WinogradShape shape_;
  const SimdTable* table_;
  int64_t tiles_, workers_;
  int64_t weights_,
      each_;  // floats: of transformed weights, of scratch memory of a worker; whole cache lines
};

size_t activation_bytes(const std::vector<int64_t>& dims) {
  size_t bytes = sizeof(float);
  for (int64_t d : dims) bytes *= static_cast<size_t>(d);
  return bytes;
}

}  // namespace

bool has_winograd(const Convolution& c) {
  if (c.transposed || c.swapped_weights || c.groups != 1 || c.src.size() != 4) return false;
  if (c.weights[2] != 3 || c.weights[3] != 3) return false;
  for (size_t axis : {0, 1}) {
    if (c.strides[axis] != 1 || c.dilations[axis] != 1) return false;
    if (c.pad_begin[axis] > 2 || c.pad_end[axis] > 2) return false;
  }
  for (int64_t channels : {c.src[1], c.dst[1]}) {
    if (channels % kWhole != 0 || channels > kMostChannels) return false;
  }
  for (Format format : {c.src_format, c.dst_format}) {
    if (format == Format::kPlain || (format == Format::kBlocked8 && simd().lanes > 8)) return false;
  }
  const OpKind act = c.post.act.op;
  if (act != OpKind::kIdentity && act != OpKind::kRelu) return false;
  return c.pass == Pass::kForward || !c.bias;
}

std::optional<onednn::Compiled> winograd_layer(const Convolution& c) {
  if (!has_winograd(c)) return std::nullopt;
  onednn::Compiled out;
  out.impl = "simd:winograd";
  const size_t x = activation_bytes(c.src), y = activation_bytes(c.dst), w = activation_bytes(c.weights);
  const WinogradWork work(c);
  if (c.pass == Pass::kBackwardWeights) {
    out.input_bytes = {x, y};
    out.output_bytes = {w};
    out.kernel = make_kernel([work](const KernelIo& io) { work.gradient(io); }, work.gradient_scratch());
    return out;
  }
  out.input_bytes = {c.pass == Pass::kForward ? x : y, w};
  if (c.bias) out.input_bytes.push_back(w / 9 / static_cast<size_t>(c.src[1]));
  out.output_bytes = {c.pass == Pass::kForward ? y : x};
  out.kernel = make_kernel([work](const KernelIo& io) { work.forward(io); }, work.forward_scratch());
  return out;
}

}  // namespace limber
