// Everything that knows oneDNN's API; onednn_api.h holds what its versions say differently.
#include "backend/cpu/onednn.h"

#include <algorithm>
#include <mutex>

#include "backend/cpu/onednn_api.h"
#include "backend/cpu/onednn_descs.h"
#include "backend/cpu/onednn_primitive.h"
#include "backend/cpu/onednn_tables.h"

namespace limber::onednn {
namespace {

bool is_reference(std::string_view impl) {
  return impl.find("ref") != std::string_view::npos && impl.find("gemm") == std::string_view::npos;
}

// Moves `pd` to its index-th implementation that is not a reference one.
template <typename Pd>
bool advance_to(Pd& pd, int index) {
  for (int seen = -1;;) {
    if (!is_reference(pd.impl_info_str()) && ++seen == index) return true;
    if (!pd.next_impl()) return false;
  }
}

template <typename Pd>
std::vector<std::string> implementation_names(Pd& pd) {
  std::vector<std::string> names;
  do {
    const std::string name = pd.impl_info_str();
    if (!is_reference(name)) names.push_back(name);
  } while (pd.next_impl());
  return names;
}

}  // namespace

int preferred_block() { return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core ? 16 : 8; }

std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch);
}

namespace {

// What a kernel keeps alive.
using Layouts = std::vector<std::shared_ptr<const PackedLayout>>;

// While one lives, oneDNN's primitive cache is off. Version 2.6 answers next_impl() from it and then counts
// wrongly: the implementation after one that is in the cache is an earlier one. The cache is one for the
// whole process: it has its capacity back as soon as we are done; what a host program had in it, it makes
// again.
class PrimitiveCacheOff {
 public:
#if DNNL_VERSION_MAJOR < 3
  PrimitiveCacheOff() {
    const std::lock_guard lock(mutex_);
    if (alive_++ > 0) return;
    static_cast<void>(dnnl_get_primitive_cache_capacity(&capacity_));
    static_cast<void>(dnnl_set_primitive_cache_capacity(0));
  }
  ~PrimitiveCacheOff() {
    const std::lock_guard lock(mutex_);
    if (--alive_ == 0) static_cast<void>(dnnl_set_primitive_cache_capacity(capacity_));
  }
#else
  PrimitiveCacheOff() {}
#endif
  PrimitiveCacheOff(const PrimitiveCacheOff&) = delete;
  PrimitiveCacheOff& operator=(const PrimitiveCacheOff&) = delete;

 private:
  inline static std::mutex mutex_;
  inline static int alive_ = 0;
  inline static int capacity_ = 0;  // as the host program wants it
};

}  // namespace

struct Library::Rep {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  LayoutTable layouts;
  KernelCache kernels;

  // The layout of `out`'s weights.
  void set_weights(Compiled& out, const memory::desc& desc, const memory::desc& plain, Layouts& used) {
    if (desc == plain) return;
    used.push_back(layouts.intern(desc, plain));
    out.weights_layout = used.back()->id;
  }

  memory::desc desc(const TensorType& type, Layout layout) const {
    if (layout.id >= kFirstPacked) return layouts.find(layout.id)->desc;
    return activation_desc(type.shape.dims(), static_cast<Format>(layout.id));
  }

  // Makes `spec` unless it was made before.
  template <typename Make>
  Result<Compiled> remembered(const std::string& name, Make&& make) {
    if (auto known = kernels.find(name)) return *std::move(known);
    Compiled compiled;
    bool found = false;
    {
      const PrimitiveCacheOff off;
      LIMBER_TRY(guarded(name, [&] { found = make(compiled); }));
    }
    if (!found) return unsupported("oneDNN has no such implementation of {}", name);
    kernels.keep(name, compiled);
    return compiled;
  }

  template <typename Primitive, typename Pd>
  void finish(Compiled& out, const Pd& pd, std::vector<Argument> args, Layouts used = {}) {
    out.impl = pd.impl_info_str();
    for (const Argument& a : args) {
      if (a.from == Argument::kScratch) continue;
      std::vector<size_t>& bytes = a.from == Argument::kInput ? out.input_bytes : out.output_bytes;
      bytes.resize(std::max(bytes.size(), static_cast<size_t>(a.index) + 1));
      bytes[static_cast<size_t>(a.index)] = a.desc.get_size();
    }
    out.kernel = std::make_shared<PrimitiveKernel>(
        Primitive(pd), engine, with_scratch(std::move(args), pd.scratchpad_desc()), std::move(used));
  }
};

Library::Library() : rep_(std::make_unique<Rep>()) {}
Library::~Library() = default;

namespace {

// The dims oneDNN wants for weights: a group axis in front when there are groups, and output channels
// first, also for a transposed convolution.
struct WeightDims {
  Dims dims;
  memory::desc plain;  // how the IR's tensor lies under these dims
};

WeightDims weight_dims(const Convolution& s) {
  const auto& w = s.weights;
  Dims lying = w;  // as in memory
  if (s.groups > 1) {
    lying.insert(lying.begin(), s.groups);
    lying[1] = w[0] / s.groups;
  }
  Dims strides = row_major(lying);
  if (s.transposed || s.swapped_weights) {  // memory has [C, O]; oneDNN's dims are [O, C]
    const size_t first = s.groups > 1 ? 1 : 0;
    std::swap(lying[first], lying[first + 1]);
    std::swap(strides[first], strides[first + 1]);
  }
  return {lying, memory::desc(lying, kF32, strides)};
}

Dims minus_one(Dims dims) {
  for (int64_t& d : dims) d -= 1;  // oneDNN counts dilation from 0
  return dims;
}

template <typename Op>
Described<Op> conv_pd(const Convolution& s, const WeightDims& w, const dnnl::engine& engine) {
  const memory::desc src = activation_desc(s.src, s.src_format), dst = activation_desc(s.dst, s.dst_format);
  const memory::desc weights(w.dims, kF32, Tag::any);
  const memory::desc bias = s.bias ? memory::desc({s.dst[1]}, kF32, Tag::a) : memory::desc();
  constexpr bool kTransposed = std::is_same_v<Op, dnnl::deconvolution_forward>;
  const algorithm direct = kTransposed ? algorithm::deconvolution_direct : algorithm::convolution_direct;
  const algorithm alg = s.winograd ? algorithm::convolution_winograd : direct;
  return Described<Op>(attributes(s.post), engine, dnnl::prop_kind::forward_inference, alg, src, weights,
                       bias, dst, s.strides, minus_one(s.dilations), s.pad_begin, s.pad_end);
}

// The parts that all passes of a convolution are described with.
struct ConvParts {
  memory::desc src, dst, weights, bias;
  Dims strides, dilations, pad_begin, pad_end;

  ConvParts(const Convolution& s, const WeightDims& w)
      : src(activation_desc(s.src, s.src_format)),
        dst(activation_desc(s.dst, s.dst_format)),
        weights(w.dims, kF32, Tag::any),
        bias(s.bias ? memory::desc({s.dst[1]}, kF32, Tag::a) : memory::desc()),
        strides(s.strides),
        dilations(minus_one(s.dilations)),
        pad_begin(s.pad_begin),
        pad_end(s.pad_end) {}

  // oneDNN wants to see the forward convolution of a backward one.
  dnnl::convolution_forward::primitive_desc forward(const dnnl::engine& engine) const {
    const memory::desc any_src(dims_of(src), kF32, Tag::any), any_dst(dims_of(dst), kF32, Tag::any);
    const Described<dnnl::convolution_forward> made(
        dnnl::primitive_attr(), engine, dnnl::prop_kind::forward_training, algorithm::convolution_direct,
        any_src, weights, bias, any_dst, strides, dilations, pad_begin, pad_end);
    return made.pd;
  }
};

Described<dnnl::convolution_backward_data> conv_data_pd(const Convolution& s, const WeightDims& w,
                                                        const dnnl::engine& engine) {
  const ConvParts p(s, w);
  return Described<dnnl::convolution_backward_data>(p.forward(engine), attributes({}), engine,
                                                    algorithm::convolution_direct, p.src, p.weights, p.dst,
                                                    p.strides, p.dilations, p.pad_begin, p.pad_end);
}

Described<dnnl::convolution_backward_weights> conv_weights_pd(const Convolution& s, const WeightDims& w,
                                                              const dnnl::engine& engine) {
  const ConvParts p(s, w);
  return Described<dnnl::convolution_backward_weights>(
      p.forward(engine), attributes({}), engine, algorithm::convolution_direct, p.src, p.weights, p.bias,
      p.dst, p.strides, p.dilations, p.pad_begin, p.pad_end);
}

std::vector<Argument> data_args(const dnnl::convolution_backward_data::primitive_desc& pd) {
  return {{DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), Argument::kInput, 0},
          {DNNL_ARG_WEIGHTS, pd.weights_desc(), Argument::kInput, 1},
          {DNNL_ARG_DIFF_SRC, pd.diff_src_desc(), Argument::kOutput, 0}};
}

std::vector<Argument> weights_args(const dnnl::convolution_backward_weights::primitive_desc& pd, bool bias) {
  std::vector<Argument> args = {{DNNL_ARG_SRC, pd.src_desc(), Argument::kInput, 0},
                                {DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), Argument::kInput, 1},
                                {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc(), Argument::kOutput, 0}};
  if (bias) args.push_back({DNNL_ARG_DIFF_BIAS, pd.diff_bias_desc(), Argument::kOutput, 1});
  return args;
}

template <typename Pd>
std::vector<Argument> conv_args(const Pd& pd, bool bias) {
  std::vector<Argument> args = {{DNNL_ARG_SRC, pd.src_desc(), Argument::kInput, 0},
                                {DNNL_ARG_WEIGHTS, pd.weights_desc(), Argument::kInput, 1},
                                {DNNL_ARG_DST, pd.dst_desc(), Argument::kOutput, 0}};
  if (bias) args.push_back({DNNL_ARG_BIAS, pd.bias_desc(), Argument::kInput, 2});
  return args;
}

Described<dnnl::matmul> matmul_pd(const MatMul& s, const dnnl::engine& engine) {
  Dims bias_dims(s.y.size(), 1);
  bias_dims.back() = s.y.back();
  const memory::desc b = s.pack_b ? memory::desc(s.b, kF32, Tag::any) : matrix_desc(s.b, s.trans_b);
  const memory::desc bias = s.bias ? memory::desc(bias_dims, kF32, row_major(bias_dims)) : memory::desc();
  const memory::desc a = matrix_desc(s.a, s.trans_a), y = matrix_desc(s.y, false);
  const dnnl::primitive_attr attr = attributes(s.post, s.alpha);
  return s.bias ? Described<dnnl::matmul>(attr, engine, a, b, bias, y)
                : Described<dnnl::matmul>(attr, engine, a, b, y);
}

Described<dnnl::inner_product_forward> inner_pd(const MatMul& s, const dnnl::engine& engine) {
  const memory::desc weights({s.b[1], s.b[0]}, kF32, Tag::any);
  const memory::desc bias = s.bias ? memory::desc({s.b[1]}, kF32, Tag::a) : memory::desc();
  return Described<dnnl::inner_product_forward>(attributes(s.post, s.alpha), engine,
                                                dnnl::prop_kind::forward_inference, matrix_desc(s.a, false),
                                                weights, bias, matrix_desc(s.y, false));
}

template <typename MakePd>
std::vector<std::string> list_of(MakePd&& make) {
  std::vector<std::string> names;
  const PrimitiveCacheOff off;
  const Status status = guarded("list", [&] {
    auto made = make();
    if (made.pd) names = implementation_names(made.pd);
  });
  return status.ok() ? names : std::vector<std::string>();
}

}  // namespace

std::vector<std::string> Library::list(const Convolution& s) {
  if (s.pass == Pass::kBackwardData)
    return list_of([&] { return conv_data_pd(s, weight_dims(s), rep_->engine); });
  if (s.pass == Pass::kBackwardWeights)
    return list_of([&] { return conv_weights_pd(s, weight_dims(s), rep_->engine); });
  if (s.transposed)
    return list_of([&] { return conv_pd<dnnl::deconvolution_forward>(s, weight_dims(s), rep_->engine); });
  return list_of([&] { return conv_pd<dnnl::convolution_forward>(s, weight_dims(s), rep_->engine); });
}

Result<Compiled> Library::create(const Convolution& s, int index) {
  return rep_->remembered(fmt::format("{} #{}", key(s), index), [&](Compiled& out) {
    const WeightDims weights = weight_dims(s);
    Layouts used;
    const auto make = [&]<typename Op>(Op*) {
      auto made = conv_pd<Op>(s, weights, rep_->engine);
      auto& pd = made.pd;
      if (!pd || !advance_to(pd, index)) return false;
      rep_->set_weights(out, pd.weights_desc(), weights.plain, used);
      rep_->finish<Op>(out, pd, conv_args(pd, s.bias), used);
      return true;
    };
    if (s.pass == Pass::kBackwardData) {
      auto made = conv_data_pd(s, weights, rep_->engine);
      if (!made.pd || !advance_to(made.pd, index)) return false;
      rep_->set_weights(out, made.pd.weights_desc(), weights.plain, used);
      rep_->finish<dnnl::convolution_backward_data>(out, made.pd, data_args(made.pd), used);
      return true;
    }
    if (s.pass == Pass::kBackwardWeights) {
      auto made = conv_weights_pd(s, weights, rep_->engine);
      if (!made.pd || !advance_to(made.pd, index)) return false;
      rep_->set_weights(out, made.pd.diff_weights_desc(), weights.plain, used);
      rep_->finish<dnnl::convolution_backward_weights>(out, made.pd, weights_args(made.pd, s.bias), used);
      return true;
    }
    return s.transposed ? make(static_cast<dnnl::deconvolution_forward*>(nullptr))
                        : make(static_cast<dnnl::convolution_forward*>(nullptr));
  });
}

std::vector<std::string> Library::list(const MatMul& s) {
  if (s.inner_product) return list_of([&] { return inner_pd(s, rep_->engine); });
  return list_of([&] { return matmul_pd(s, rep_->engine); });
}

Result<Compiled> Library::create(const MatMul& s, int index) {
  return rep_->remembered(fmt::format("{} #{}", key(s), index), [&](Compiled& out) {
    Layouts used;
    if (s.inner_product) {
      auto made = inner_pd(s, rep_->engine);
      auto& pd = made.pd;
      if (!pd || !advance_to(pd, index)) return false;
      // The IR's b is [K, N] (or [N, K] when transposed); the primitive's weights are [N, K].
      rep_->set_weights(out, pd.weights_desc(), matrix_desc({s.b[1], s.b[0]}, !s.trans_b), used);
      rep_->finish<dnnl::inner_product_forward>(out, pd, conv_args(pd, s.bias), used);
      return true;
    }
    auto made = matmul_pd(s, rep_->engine);
    auto& pd = made.pd;
    if (!pd || !advance_to(pd, index)) return false;
    if (s.pack_b) rep_->set_weights(out, pd.weights_desc(), matrix_desc(s.b, s.trans_b), used);
    rep_->finish<dnnl::matmul>(out, pd, conv_args(pd, s.bias), used);
    return true;
  });
}

Result<Compiled> Library::create(const Pooling& s) {
  const std::string name = fmt::format(
      "pool{}{} {} {} k{} s{} d{} p{},{} f{}", int{s.maximum}, int{s.include_padding}, dims_text(s.src),
      dims_text(s.dst), dims_text(s.kernel), dims_text(s.strides), dims_text(s.dilations),
      dims_text(s.pad_begin), dims_text(s.pad_end), static_cast<int>(s.format));
  return rep_->remembered(name, [&](Compiled& out) {
    const algorithm alg = s.maximum           ? algorithm::pooling_max
                          : s.include_padding ? algorithm::pooling_avg_include_padding
                                              : algorithm::pooling_avg_exclude_padding;
    Described<PoolingForward> made(attributes({}), rep_->engine, dnnl::prop_kind::forward_inference, alg,
                                   activation_desc(s.src, s.format), activation_desc(s.dst, s.format),
                                   s.strides, s.kernel, minus_one(s.dilations), s.pad_begin, s.pad_end);
    auto& pd = made.pd;
    if (!pd || !advance_to(pd, 0)) return false;
    rep_->finish<PoolingForward>(out, pd,
                                 {{DNNL_ARG_SRC, pd.src_desc(), Argument::kInput, 0},
                                  {DNNL_ARG_DST, pd.dst_desc(), Argument::kOutput, 0}});
    return true;
  });
}

Result<Compiled> Library::create(const Binary& s) {
  const std::string name = fmt::format("binary {} {} {} f{}", op_name(s.op), dims_text(s.a), dims_text(s.b),
                                       static_cast<int>(s.format));
  return rep_->remembered(name, [&](Compiled& out) {
    const algorithm alg = s.op == OpKind::kAdd   ? algorithm::binary_add
                          : s.op == OpKind::kMul ? algorithm::binary_mul
                                                 : algorithm::binary_sub;
    Described<dnnl::binary> made(attributes({}), rep_->engine, alg, activation_desc(s.a, s.format),
                                 activation_desc(s.b, s.format), activation_desc(s.a, s.format));
    auto& pd = made.pd;
    if (!pd || !advance_to(pd, 0)) return false;
    rep_->finish<dnnl::binary>(out, pd,
                               {{DNNL_ARG_SRC_0, pd.src0_desc(), Argument::kInput, 0},
                                {DNNL_ARG_SRC_1, pd.src1_desc(), Argument::kInput, 1},
                                {DNNL_ARG_DST, pd.dst_desc(), Argument::kOutput, 0}});
    return true;
  });
}

Result<Compiled> Library::create(const Concat& s) {
  std::string name = fmt::format("concat a{} f{}", s.axis, static_cast<int>(s.format));
  for (const auto& dims : s.srcs) name += " " + dims_text(dims);
  return rep_->remembered(name, [&](Compiled& out) {
    std::vector<memory::desc> descs;
    std::vector<Argument> args;
    Dims dst = s.srcs[0];
    dst[static_cast<size_t>(s.axis)] = 0;
    for (const auto& dims : s.srcs) {
      descs.push_back(activation_desc(dims, s.format));
      dst[static_cast<size_t>(s.axis)] += dims[static_cast<size_t>(s.axis)];
      const int i = static_cast<int>(args.size());
      args.push_back({DNNL_ARG_MULTIPLE_SRC + i, descs.back(), Argument::kInput, i});
    }
    const auto pd = concat_pd(rep_->engine, activation_desc(dst, s.format), s.axis, descs, attributes({}));
    if (is_reference(pd.impl_info_str())) return false;
    args.push_back({DNNL_ARG_DST, pd.dst_desc(), Argument::kOutput, 0});
    rep_->finish<dnnl::concat>(out, pd, std::move(args));
    return true;
  });
}

size_t Library::bytes(const TensorType& type, Layout layout) const {
  if (layout == kPlain) return type.bytes();
  LIMBER_ASSERT(type.dtype == DType::kF32);
  return rep_->desc(type, layout).get_size();
}

std::string Library::layout_name(Layout layout) const {
  static constexpr const char* kNames[] = {"plain", "nhwc", "nchw8c", "nchw16c"};
  return layout.id < 4 ? kNames[layout.id] : rep_->layouts.find(layout.id)->name;
}

bool Library::keeps_elements(Layout layout) const {
  return layout.id < kFirstPacked || is_blocked(rep_->layouts.find(layout.id)->desc);
}

bool Library::can_reorder(const TensorType& type, Layout from, Layout to) const {
  if (from == to) return true;
  if (type.dtype != DType::kF32 || type.shape.elements() == 0) return false;
  const bool packed_from = from.id >= kFirstPacked, packed_to = to.id >= kFirstPacked;
  if (!packed_from && !packed_to) return type.rank() >= 3 && type.rank() <= 5;
  if (!keeps_elements(from) || (from != kPlain && !keeps_elements(to))) return false;
  if (packed_from && packed_to) return rep_->layouts.find(from.id)->plain == rep_->layouts.find(to.id)->plain;
  return from == kPlain || to == kPlain;
}

Result<Compiled> Library::reorder(const TensorType& type, Layout from, Layout to) {
  const std::string name = fmt::format("reorder {} {}>{}", type.to_string(), from.id, to.id);
  return rep_->remembered(name, [&](Compiled& out) {
    const uint32_t packed = std::max(from.id, to.id);
    Layouts used;
    for (Layout layout : {from, to}) {
      if (layout.id >= kFirstPacked) used.push_back(rep_->layouts.find(layout.id));
    }
    const auto side = [&](Layout layout) {
      if (layout == kPlain && packed >= kFirstPacked) return rep_->layouts.find(packed)->plain;
      return rep_->desc(type, layout);
    };
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::reorder::primitive_desc pd(rep_->engine, side(from), rep_->engine, side(to), attr);
    rep_->finish<dnnl::reorder>(
        out, pd,
        {{DNNL_ARG_FROM, side(from), Argument::kInput, 0}, {DNNL_ARG_TO, side(to), Argument::kOutput, 0}},
        used);
    return true;
  });
}

}  // namespace limber::onednn
