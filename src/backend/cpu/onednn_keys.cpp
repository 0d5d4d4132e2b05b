// What descriptions say of themselves: keys for caches and tuning results.
#include "backend/cpu/onednn.h"

namespace limber::onednn {

std::string dims_text(const std::vector<int64_t>& dims) {
  std::string text;
  for (int64_t d : dims) text += (text.empty() ? "" : "x") + std::to_string(d);
  return text;
}

namespace {

std::string post_text(const PostOps& post) {
  return fmt::format("{}{}:{}:{}{}", post.sum ? "sum+" : "", op_name(post.act.op), post.act.alpha,
                     post.act.beta, post.act.tanh_gelu ? "t" : "");
}

}  // namespace

std::string key(const Convolution& s) {
  constexpr const char* kPasses[] = {"", "-data", "-weights"};
  return fmt::format("conv{}{}{} {} {} {} s{} d{} p{},{} g{} b{} w{} f{}>{} {}",
                     kPasses[static_cast<size_t>(s.pass)], s.transposed ? "T" : "",
                     s.swapped_weights ? "S" : "", dims_text(s.src), dims_text(s.weights), dims_text(s.dst),
                     dims_text(s.strides), dims_text(s.dilations), dims_text(s.pad_begin),
                     dims_text(s.pad_end), s.groups, int{s.bias}, int{s.winograd},
                     static_cast<int>(s.src_format), static_cast<int>(s.dst_format), post_text(s.post));
}

std::string key(const MatMul& s) {
  return fmt::format("matmul {} {} {} t{}{} b{} p{} i{} a{} {}", dims_text(s.a), dims_text(s.b),
                     dims_text(s.y), int{s.trans_a}, int{s.trans_b}, int{s.bias}, int{s.pack_b},
                     int{s.inner_product}, s.alpha, post_text(s.post));
}

bool fusable(const Activation& act) {
  switch (act.op) {
    case OpKind::kIdentity:
    case OpKind::kRelu:
    case OpKind::kLeakyRelu:
    case OpKind::kClip:
    case OpKind::kSigmoid:
    case OpKind::kTanh:
    case OpKind::kHardSigmoid:
    case OpKind::kHardSwish:
    case OpKind::kSilu:
    case OpKind::kGelu:
    case OpKind::kElu:
    case OpKind::kMish:
    case OpKind::kSoftplus:
      return true;
    default:
      return false;
  }
}

}  // namespace limber::onednn
