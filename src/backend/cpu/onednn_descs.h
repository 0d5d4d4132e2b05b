// How shapes, layouts and activations are told to oneDNN.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include "backend/cpu/onednn.h"
#include "backend/cpu/onednn_api.h"

namespace limber::onednn {

using dnnl::algorithm;
using dnnl::memory;
using Tag = dnnl::memory::format_tag;
using Dims = dnnl::memory::dims;
inline constexpr auto kF32 = dnnl::memory::data_type::f32;

inline Tag format_tag(Format format, size_t rank) {
  static constexpr Tag kTags[4][6] = {
      {Tag::undef, Tag::a, Tag::ab, Tag::abc, Tag::abcd, Tag::abcde},
      {Tag::undef, Tag::a, Tag::ab, Tag::acb, Tag::acdb, Tag::acdeb},
      {Tag::undef, Tag::a, Tag::ab, Tag::aBc8b, Tag::aBcd8b, Tag::aBcde8b},
      {Tag::undef, Tag::a, Tag::ab, Tag::aBc16b, Tag::aBcd16b, Tag::aBcde16b},
  };
  LIMBER_ASSERT(rank < 6);
  return kTags[static_cast<size_t>(format)][rank];
}

inline memory::desc activation_desc(const Dims& dims, Format format) {
  return memory::desc(dims, kF32, format_tag(format, dims.size()));
}

inline Dims row_major(const Dims& dims) {
  Dims strides(dims.size());
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(dims[i], 1);
  }
  return strides;
}

// A row-major tensor of these dims, the last two of which may be swapped in memory.
inline memory::desc matrix_desc(const Dims& dims, bool transposed) {
  Dims strides = row_major(dims);
  if (transposed) {
    const size_t r = dims.size();
    strides[r - 2] = 1;
    strides[r - 1] = dims[r - 2];
  }
  return memory::desc(dims, kF32, strides);
}

inline void append_activation(dnnl::post_ops& ops, const Activation& act) {
  const auto eltwise = [&](algorithm a, double alpha = 0, double beta = 0) {
    append_eltwise(ops, a, static_cast<float>(alpha), static_cast<float>(beta));
  };
  switch (act.op) {
    case OpKind::kIdentity:
      return;
    case OpKind::kRelu:
      return eltwise(algorithm::eltwise_relu);
    case OpKind::kLeakyRelu:
      return eltwise(algorithm::eltwise_relu, act.alpha);
    case OpKind::kClip:
      return eltwise(algorithm::eltwise_clip, act.alpha, act.beta);
    case OpKind::kSigmoid:
      return eltwise(algorithm::eltwise_logistic);
    case OpKind::kTanh:
      return eltwise(algorithm::eltwise_tanh);
    case OpKind::kHardSigmoid:
      eltwise(algorithm::eltwise_linear, act.alpha, act.beta);
      return eltwise(algorithm::eltwise_clip, 0, 1);
    case OpKind::kHardSwish:
      return eltwise(algorithm::eltwise_hardswish, 1.0 / 6, 0.5);  // oneDNN 2 knows no others
    case OpKind::kSilu:
      return eltwise(algorithm::eltwise_swish, 1);
    case OpKind::kGelu:
      return eltwise(act.tanh_gelu ? algorithm::eltwise_gelu_tanh : algorithm::eltwise_gelu_erf);
    case OpKind::kElu:
      return eltwise(algorithm::eltwise_elu, act.alpha);
    case OpKind::kMish:
      return eltwise(algorithm::eltwise_mish);
    case OpKind::kSoftplus:
      return eltwise(algorithm::eltwise_soft_relu, 1);
    default:
      LIMBER_UNREACHABLE();
  }
}

inline dnnl::primitive_attr attributes(const PostOps& post, double scale = 1) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops ops;
  if (scale != 1) set_scale(attr, ops, static_cast<float>(scale));
  if (post.sum) ops.append_sum(1.0f);
  append_activation(ops, post.act);
  attr.set_post_ops(ops);
  return attr;
}

}  // namespace limber::onednn
