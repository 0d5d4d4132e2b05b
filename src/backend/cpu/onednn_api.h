// What oneDNN 2 and 3 say differently, in one place. Version 2.6 is what Debian 12 has, 3 what Debian 13 has.
#pragma once

#include <fmt/core.h>
#include <oneapi/dnnl/dnnl_version.h>

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

namespace limber::onednn {

#if DNNL_VERSION_MAJOR < 3

using PoolingForward = dnnl::pooling_v2_forward;

// An operation descriptor and the primitive descriptor made from it; backward, also the forward one. oneDNN
// 2.6 reads the others again when it moves on to the next implementation, so they must live as long.
template <typename Op>
struct Described {
  typename Op::desc desc;
  dnnl::primitive_desc_base forward;
  typename Op::primitive_desc pd;

  template <typename... Parts>
  Described(const dnnl::primitive_attr& attr, const dnnl::engine& engine, const Parts&... parts)
      : desc(parts...), pd(desc, attr, engine, /*allow_empty=*/true) {}
  template <typename... Parts>
  Described(const dnnl::convolution_forward::primitive_desc& hint, const dnnl::primitive_attr& attr,
            const dnnl::engine& engine, const Parts&... parts)
      : desc(parts...), forward(hint), pd(desc, attr, engine, hint, /*allow_empty=*/true) {}
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;
};

inline dnnl::concat::primitive_desc concat_pd(const dnnl::engine& engine, const dnnl::memory::desc& dst,
                                              int axis, const std::vector<dnnl::memory::desc>& srcs,
                                              const dnnl::primitive_attr& attr) {
  return {dst, axis, srcs, engine, attr};
}

inline std::vector<int64_t> dims_of(const dnnl::memory::desc& desc) { return desc.dims(); }
inline bool is_blocked(const dnnl::memory::desc& desc) { return desc.data.format_kind == dnnl_blocked; }

// REQUIRES (all three): is_blocked(desc)
inline std::vector<int64_t> strides_of(const dnnl::memory::desc& desc) {
  const auto* strides = desc.data.format_desc.blocking.strides;
  return {strides, strides + desc.data.ndims};
}
inline std::vector<int64_t> inner_blocks_of(const dnnl::memory::desc& desc) {
  const auto& blocking = desc.data.format_desc.blocking;
  return {blocking.inner_blks, blocking.inner_blks + blocking.inner_nblks};
}
inline std::vector<int64_t> inner_axes_of(const dnnl::memory::desc& desc) {
  const auto& blocking = desc.data.format_desc.blocking;
  return {blocking.inner_idxs, blocking.inner_idxs + blocking.inner_nblks};
}

// REQUIRES: !is_blocked(desc). Enough to tell two packings of one tensor apart.
inline std::string opaque_name(const dnnl::memory::desc& desc) {
  const auto& winograd = desc.data.format_desc.wino_desc;
  return fmt::format("winograd{}x{}.{}", winograd.r, winograd.alpha, static_cast<int>(winograd.wino_format));
}

inline void append_eltwise(dnnl::post_ops& ops, dnnl::algorithm algorithm, float alpha, float beta) {
  ops.append_eltwise(1.0F, algorithm, alpha, beta);
}

// Multiplies the result before everything in `ops`, which must be empty.
inline void set_scale(dnnl::primitive_attr& attr, dnnl::post_ops& /*ops*/, float scale) {
  attr.set_output_scales(0, {scale});
}

#else

using PoolingForward = dnnl::pooling_forward;

// A primitive descriptor; backward, with the forward one.
template <typename Op>
struct Described {
  typename Op::primitive_desc pd;

  template <typename... Parts>
  Described(const dnnl::primitive_attr& attr, const dnnl::engine& engine, const Parts&... parts)
      : pd(engine, parts..., attr, /*allow_empty=*/true) {}
  template <typename... Parts>
  Described(const dnnl::convolution_forward::primitive_desc& hint, const dnnl::primitive_attr& attr,
            const dnnl::engine& engine, const Parts&... parts)
      : pd(engine, parts..., hint, attr, /*allow_empty=*/true) {}
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;
};

inline dnnl::concat::primitive_desc concat_pd(const dnnl::engine& engine, const dnnl::memory::desc& dst,
                                              int axis, const std::vector<dnnl::memory::desc>& srcs,
                                              const dnnl::primitive_attr& attr) {
  return {engine, dst, axis, srcs, attr};
}

inline std::vector<int64_t> dims_of(const dnnl::memory::desc& desc) { return desc.get_dims(); }
inline bool is_blocked(const dnnl::memory::desc& desc) {
  return desc.get_format_kind() == dnnl::memory::format_kind::blocked;
}

// REQUIRES (all three): is_blocked(desc)
inline std::vector<int64_t> strides_of(const dnnl::memory::desc& desc) { return desc.get_strides(); }
inline std::vector<int64_t> inner_blocks_of(const dnnl::memory::desc& desc) { return desc.get_inner_blks(); }
inline std::vector<int64_t> inner_axes_of(const dnnl::memory::desc& desc) { return desc.get_inner_idxs(); }

// REQUIRES: !is_blocked(desc). Its size is all that can be known.
inline std::string opaque_name(const dnnl::memory::desc& desc) {
  return fmt::format("opaque{}", desc.get_size());
}

inline void append_eltwise(dnnl::post_ops& ops, dnnl::algorithm algorithm, float alpha, float beta) {
  ops.append_eltwise(algorithm, alpha, beta);
}

// Multiplies the result before everything in `ops`, which must be empty.
inline void set_scale(dnnl::primitive_attr& /*attr*/, dnnl::post_ops& ops, float scale) {
  ops.append_eltwise(dnnl::algorithm::eltwise_linear, scale, 0.0F);
}

#endif

}  // namespace limber::onednn
