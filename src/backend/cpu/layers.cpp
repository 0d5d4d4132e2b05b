#include "backend/cpu/layers.h"

#include <algorithm>

#include "backend/cpu/winograd.h"

namespace limber {
namespace {

using onednn::Format;

// Winograd trades accuracy for speed: accepted while one layer's error stays this small, so that a
// whole network stays within 1e-4.
constexpr double kWinogradTolerance = 1.5e-5;

// Bytes: about what the inner caches of one core hold. Networks with more parameters find their weights in
// memory at every run, so timings must not find them in a cache.
constexpr double kCacheBytes = 2 << 20;

double parameter_bytes(const Graph& g) {
  double bytes = 0;
  for (const Value& value : g.values()) {
    if (value.role == Role::kParameter) bytes += static_cast<double>(value.type.bytes());
  }
  return bytes;
}

Format blocked() { return onednn::preferred_block() == 16 ? Format::kBlocked16 : Format::kBlocked8; }

std::vector<int64_t> dims(const Graph& g, ValueId v) { return g.type(v).shape.dims(); }
bool present(const Node& node, size_t i) { return i < node.inputs.size() && node.inputs[i] != kNoValue; }
bool all_f32(const Graph& g, const Node& node) {
  for (ValueId v : node.inputs) {
    if (v != kNoValue && g.type(v).dtype != DType::kF32) return false;
  }
  return true;
}
bool any_empty(const Graph& g, const Node& node) {
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (ValueId v : *values) {
      if (v != kNoValue && g.type(v).shape.elements() == 0) return true;
    }
  }
  return false;
}

std::optional<onednn::Convolution> describe_conv(const Graph& g, const Node& node) {
  onednn::Convolution c;
  ValueId src = node.inputs[0], weights = node.inputs[1], dst = node.outputs[0];
  if (node.op == OpKind::kConvBackwardData) {
    c.pass = onednn::Pass::kBackwardData;
    std::swap(src, dst);
  } else if (node.op == OpKind::kConvBackwardWeights) {
    c.pass = onednn::Pass::kBackwardWeights;
    std::swap(weights, dst);
  }
  c.src = dims(g, src);
  c.weights = dims(g, weights);
  c.dst = dims(g, dst);
  const size_t spatial = c.src.size() - 2;
  if (spatial < 1 || spatial > 3) return std::nullopt;
  const auto& pads = node.attrs.ints("pads");
  c.pad_begin.assign(pads.begin(), pads.begin() + static_cast<ptrdiff_t>(spatial));
  c.pad_end.assign(pads.begin() + static_cast<ptrdiff_t>(spatial), pads.end());
  for (int64_t p : pads) {
    if (p < 0) return std::nullopt;
  }
  c.strides = node.attrs.ints("strides");
  c.dilations = node.attrs.ints("dilations");
  c.groups = node.attrs.i("groups", 1);
  c.bias = c.pass == onednn::Pass::kBackwardWeights ? node.outputs.size() > 1 && node.outputs[1] != kNoValue
                                                    : present(node, 2);
  c.transposed = node.op == OpKind::kConvTranspose;
  if (c.transposed) {
    for (size_t i = 0; i < spatial; ++i) c.pad_end[i] -= node.attrs.ints("output_padding")[i];
    if (*std::min_element(c.pad_end.begin(), c.pad_end.end()) < 0) return std::nullopt;
  } else {
    c.post = {present(node, 3), fused_activation(node.attrs)};
  }
  return c;
}

// Bias of a matrix product that oneDNN can add: one number per column.
bool column_bias(const std::vector<int64_t>& bias, int64_t columns) {
  if (bias.empty() || bias.back() != columns) return false;
  return std::all_of(bias.begin(), bias.end() - 1, [](int64_t d) { return d == 1; });
}

std::optional<onednn::MatMul> describe_matmul(const Graph& g, const Node& node, bool weights_static) {
  onednn::MatMul m;
  m.a = dims(g, node.inputs[0]);
  m.b = dims(g, node.inputs[1]);
  m.trans_a = node.attrs.i("trans_a", 0) != 0;
  m.trans_b = node.attrs.i("trans_b", 0) != 0;
  if (m.a.size() < 2 || m.b.size() < 2) return std::nullopt;
  m.alpha = node.attrs.f("alpha", 1);
  m.post = {present(node, 3), fused_activation(node.attrs)};
  m.bias = present(node, 2);
  if (m.trans_a) std::swap(m.a[m.a.size() - 1], m.a[m.a.size() - 2]);
  if (m.trans_b) std::swap(m.b[m.b.size() - 1], m.b[m.b.size() - 2]);
  if (m.bias && !column_bias(dims(g, node.inputs[2]), m.b.back())) return std::nullopt;
  m.y = dims(g, node.outputs[0]);
  if (m.alpha != 1 && m.bias) return std::nullopt;  // oneDNN would scale the bias too
  if (m.b.size() == 2 && !m.trans_a) {              // rows of all batches are rows of one matrix
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < m.a.size(); ++i) rows *= m.a[i];
    m.a = {rows, m.a.back()};
    m.y = {rows, m.b.back()};
    m.pack_b = weights_static;
    return m;
  }
  const size_t rank = std::max(m.a.size(), m.b.size());
  if (rank > 6) return std::nullopt;
  m.a.insert(m.a.begin(), rank - m.a.size(), 1);
  m.b.insert(m.b.begin(), rank - m.b.size(), 1);
  return m;
}

// The matrix product as a 1x1 convolution over channels-last pixels.
onednn::Convolution as_convolution(const onednn::MatMul& m) {
  onednn::Convolution c;
  c.src = {1, m.a[1], m.a[0], 1};
  c.dst = {1, m.b[1], m.a[0], 1};
  c.weights =
      m.trans_b ? std::vector<int64_t>{m.b[1], m.b[0], 1, 1} : std::vector<int64_t>{m.b[0], m.b[1], 1, 1};
  c.swapped_weights = !m.trans_b;
  c.strides = c.dilations = {1, 1};
  c.pad_begin = c.pad_end = {0, 0};
  c.bias = m.bias;
  c.post = m.post;
  c.src_format = c.dst_format = Format::kChannelsLast;
  return c;
}

onednn::Convolution conv_of(const Layer& layer, const Timing& t) {
  if (layer.matmul) return as_convolution(*layer.matmul);
  onednn::Convolution c = *layer.conv;
  c.src_format = t.src;
  c.dst_format = t.dst;
  c.winograd = t.variant == kWinograd;
  return c;
}

onednn::MatMul matmul_of(const Layer& layer, const Timing& t) {
  onednn::MatMul m = *layer.matmul;
  m.inner_product = t.variant == kInnerProduct;
  return m;
}

bool is_conv(const Layer& layer, const Timing& t) { return layer.conv || t.variant == kAsConvolution; }

bool is_own(const Layer& layer, const Timing& t) { return layer.conv && t.variant == kOwnWinograd; }

std::vector<std::string> list(const Layer& layer, const Timing& t, onednn::Library& library) {
  if (is_own(layer, t)) return {"simd:winograd"};
  return is_conv(layer, t) ? library.list(conv_of(layer, t)) : library.list(matmul_of(layer, t));
}

// Is our Winograd worth it unmeasured? Weights are transformed in every run, which takes as long as some 25
// tiles save; where weights do not change, oneDNN packs them ahead.
bool many_tiles(const Layer& layer) {
  constexpr int64_t kMany = 128;
  const std::vector<int64_t>& dst = layer.conv->dst;
  return layer.weights_change && dst.size() == 4 && dst[0] * ((dst[2] + 3) / 4) * ((dst[3] + 3) / 4) >= kMany;
}

// Every way worth asking oneDNN about, and our own; indices and times are not yet filled in.
std::vector<Timing> ways(const Layer& layer, bool tune) {
  std::vector<Timing> out;
  if (layer.matmul) {
    out.push_back({.variant = kMatMul});
    const bool single = layer.matmul->a.size() == 2 && layer.matmul->pack_b && !layer.matmul->trans_a;
    if (single && layer.matmul->alpha == 1) {
      out.push_back({.variant = kInnerProduct});
      if (tune) out.push_back({.variant = kAsConvolution});
    }
    return out;
  }
  const onednn::Convolution& c = *layer.conv;
  const Format block = blocked();
  std::vector<std::pair<Format, Format>> formats;
  // The first convolution of a network reads planes as they come: three colours, or four with padding.
  if (c.src[1] <= 4) formats = {{Format::kPlain, block}, {Format::kPlain, Format::kChannelsLast}};
  formats.push_back({Format::kChannelsLast, Format::kChannelsLast});
  formats.push_back({block, block});
  formats.push_back({Format::kPlain, Format::kPlain});
  const bool three = c.weights.size() == 4 && c.weights[2] == 3 && c.weights[3] == 3;
  const auto ones = std::vector<int64_t>{1, 1};
  const bool winograd = tune && three && !c.transposed && c.pass == onednn::Pass::kForward && c.groups == 1 &&
                        c.strides == ones && c.dilations == ones;
  for (const auto& [src, dst] : formats) {
    out.push_back({.src = src, .dst = dst, .variant = kDirect});
    if (winograd && src == dst) out.push_back({.src = src, .dst = dst, .variant = kWinograd});
    const Timing own{.src = src, .dst = dst, .variant = kOwnWinograd};
    if ((tune || many_tiles(layer)) && has_winograd(conv_of(layer, own))) out.push_back(own);
  }
  return out;
}

// What a layer would take if its first implementation is any good: used to choose between formats when
// nothing was measured.
double estimate(const Layer& layer, const Timing& t, int threads) {
  // Per thread 50 GFLOP/s and 10 GB/s, and two microseconds to start: a server's core, roughly. Only how ways
  // relate matters. oneDNN's gemm implementations are taken to reach 60 % of its direct ones; in plain order
  // an image with more than the usual three or four channels costs about half the speed; brgemm wins ties.
  // Winograd saves three quarters of the products and takes half of that for its transforms.
  double efficiency = 1;
  if (is_own(layer, t)) efficiency = 1.6;
  if (t.impl.find("brg") != std::string::npos) efficiency = 1.02;
  if (t.impl.find("gemm") == 0) efficiency = 0.6;
  if (layer.conv && t.src == Format::kPlain && layer.conv->src[1] > 4) efficiency *= 0.5;
  const double compute = layer.flops / (5e10 * threads * efficiency);
  return compute + layer.bytes / (1e10 * threads) + 2e-6;
}

Result<std::vector<Timing>> estimated(const Layer& layer, onednn::Library& library, int threads) {
  std::vector<Timing> out;
  for (Timing t : ways(layer, /*tune=*/false)) {
    const auto names = list(layer, t, library);
    if (names.empty()) continue;
    t.impl = names.front();
    t.seconds = estimate(layer, t, threads);
    out.push_back(t);
  }
  if (out.empty()) return unsupported("oneDNN has no implementation");
  return out;
}

// Winograd only where it is exact enough: against oneDNN's first direct implementation.
Result<bool> accurate(const Layer& layer, const onednn::Compiled& winograd, Timing direct,
                      onednn::Library& library) {
  direct.variant = kDirect;
  direct.index = 0;
  auto exact = make_layer(layer, direct, library);
  if (!exact.ok()) return false;
  const bool gradient = pass_of(layer) == onednn::Pass::kBackwardWeights;
  LIMBER_ASSIGN(const double error, difference(library, winograd, *exact, layer.weights, gradient));
  return error <= kWinogradTolerance;
}

// Every implementation of one way that is usable, timed.
Result<std::vector<Timing>> measure(const Layer& layer, Timing way, onednn::Library& library) {
  std::vector<Timing> out;
  const auto names = list(layer, way, library);
  for (int i = 0; i < static_cast<int>(names.size()); ++i) {
    way.index = i;
    way.impl = names[static_cast<size_t>(i)];
    auto compiled = make_layer(layer, way, library);
    if (!compiled.ok()) continue;
    const bool winograd = layer.conv && way.variant != kDirect;
    if (winograd) {
      LIMBER_ASSIGN(const bool usable, accurate(layer, *compiled, way, library));
      if (!usable) continue;
    }
    LIMBER_ASSIGN(way.seconds, time_kernel(*compiled, layer.has_residual, layer.cold_weights));
    way.tier = winograd ? 2 : way.variant == 0 && i == 0 ? 0 : 1;
    out.push_back(way);
  }
  return out;
}

// Per pair of formats: oneDNN's first choice and, in each higher tier, the fastest if it is faster.
Result<std::vector<Timing>> measured(const Layer& layer, onednn::Library& library) {
  std::vector<Timing> all, out;
  for (const Timing& way : ways(layer, /*tune=*/true)) {
    LIMBER_ASSIGN(const auto timed, measure(layer, way, library));
    all.insert(all.end(), timed.begin(), timed.end());
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Timing& a, const Timing& b) { return a.seconds < b.seconds; });
  std::stable_sort(all.begin(), all.end(), [](const Timing& a, const Timing& b) { return a.tier < b.tier; });
  for (const Timing& t : all) {
    const bool worse = std::any_of(out.begin(), out.end(), [&](const Timing& o) {
      return o.src == t.src && o.dst == t.dst && o.seconds <= t.seconds;
    });
    if (!worse) out.push_back(t);
  }
  if (out.empty()) return unsupported("oneDNN has no implementation");
  return out;
}

}  // namespace

std::optional<Layer> describe_layer(const Graph& g, const Node& node, bool weights_static) {
  if (!all_f32(g, node) || any_empty(g, node)) return std::nullopt;
  Layer layer;
  if (node.op == OpKind::kConv || node.op == OpKind::kConvTranspose || node.op == OpKind::kConvBackwardData ||
      node.op == OpKind::kConvBackwardWeights) {
    layer.conv = describe_conv(g, node);
    if (!layer.conv || !onednn::fusable(layer.conv->post.act)) return std::nullopt;
    layer.has_residual = layer.conv->post.sum;
  } else if (node.op == OpKind::kMatMul) {
    layer.matmul = describe_matmul(g, node, weights_static);
    if (!layer.matmul || !onednn::fusable(layer.matmul->post.act)) return std::nullopt;
    layer.has_residual = layer.matmul->post.sum;
  } else {
    return std::nullopt;
  }
  const bool gradient = pass_of(layer) == onednn::Pass::kBackwardWeights;
  layer.weights = g.type(gradient ? node.outputs[0] : node.inputs[1]);
  layer.weights_change = gradient || !weights_static;
  layer.cold_weights = !gradient && parameter_bytes(g) > kCacheBytes;
  layer.flops = op_def(node.op).flops(g, node);
  for (ValueId v : node.inputs) layer.bytes += v == kNoValue ? 0 : static_cast<double>(g.type(v).bytes());
  layer.bytes += static_cast<double>(g.type(node.outputs[0]).bytes());
  return layer;
}

Result<std::vector<Timing>> layer_timings(const Layer& layer, onednn::Library& library, Tuner& tuner,
                                          bool tune, int threads) {
  const std::string name = (layer.conv ? onednn::key(*layer.conv) : onednn::key(*layer.matmul)) +
                           (layer.cold_weights ? " cold" : " warm");
  if (auto known = tuner.find(name)) return *known;
  if (!tune) return estimated(layer, library, threads);
  LIMBER_ASSIGN(auto timings, measured(layer, library));
  tuner.keep(name, timings);
  return timings;
}

Result<onednn::Compiled> make_layer(const Layer& layer, const Timing& t, onednn::Library& library) {
  if (is_own(layer, t)) {
    if (auto made = winograd_layer(conv_of(layer, t)); made && t.index == 0) return *std::move(made);
    return unsupported("no Winograd kernel of our own for {}", onednn::key(*layer.conv));
  }
  return is_conv(layer, t) ? library.create(conv_of(layer, t), t.index)
                           : library.create(matmul_of(layer, t), t.index);
}

}  // namespace limber
