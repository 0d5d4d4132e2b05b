#include "tensor/convert.h"

namespace limber {
namespace {

bool fits(DType from, DType to) {
  const bool whole = is_integer(from) || from == DType::kBool;
  const size_t bytes = dtype_size(from);
  switch (to) {
    case DType::kF32:
      return is_float(from) || (whole && bytes <= 4);
    case DType::kI64:
      return whole && bytes <= 4;
    case DType::kI32:
      return whole && bytes <= 2;
    default:
      return false;
  }
}

template <typename To, typename Element>
Result<Tensor> converted(const Tensor& from, const Element& element) {
  LIMBER_ASSIGN(Tensor to, Tensor::allocate({DTypeOf<To>::value, from.shape()}));
  const auto out = to.data<To>();
  for (int64_t i = 0; i < from.elements(); ++i)
    out[static_cast<size_t>(i)] = static_cast<To>(element(from, i));
  return to;
}

}  // namespace

Result<Tensor> convert_tensor(const Tensor& from, DType to) {
  if (from.dtype() == to) return from;
  if (!fits(from.dtype(), to))
    return invalid("{} does not become {}", dtype_name(from.dtype()), dtype_name(to));
  if (to == DType::kF32) return converted<float>(from, element_as_double);
  return to == DType::kI64 ? converted<int64_t>(from, element_as_int)
                           : converted<int32_t>(from, element_as_int);
}

}  // namespace limber
