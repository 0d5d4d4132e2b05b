#include "backend/ref/element.h"

namespace limber::ref {
namespace {

template <typename C, typename Codec>
C load(const void* base, int64_t i) {
  return convert<C>(Codec::decode(static_cast<const typename Codec::Raw*>(base)[i]));
}

template <typename C, typename Codec>
void store(void* base, int64_t i, C value) {
  static_cast<typename Codec::Raw*>(base)[i] = Codec::encode(value);
}

template <typename Limit>
auto limit_of(DType dtype, Limit limit) {
  return with_codec(dtype, [&](auto codec) { return limit(decltype(codec.decode({})){}); });
}

}  // namespace

template <typename C>
Access<C> access(DType dtype) {
  return with_codec(dtype, [](auto codec) {
    return Access<C>{&load<C, decltype(codec)>, &store<C, decltype(codec)>};
  });
}
template Access<double> access<double>(DType);
template Access<int64_t> access<int64_t>(DType);
template Access<uint64_t> access<uint64_t>(DType);

template <typename C>
C lowest(DType dtype) {
  return limit_of(dtype, [](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>)
      return convert<C>(-std::numeric_limits<T>::infinity());
    else
      return convert<C>(std::numeric_limits<T>::lowest());
  });
}
template double lowest<double>(DType);
template int64_t lowest<int64_t>(DType);
template uint64_t lowest<uint64_t>(DType);

template <typename C>
C highest(DType dtype) {
  return limit_of(dtype, [](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>)
      return convert<C>(std::numeric_limits<T>::infinity());
    else
      return convert<C>(std::numeric_limits<T>::max());
  });
}
template double highest<double>(DType);
template int64_t highest<int64_t>(DType);
template uint64_t highest<uint64_t>(DType);

}  // namespace limber::ref
