#include "variant/rows.h"

#include <cstring>

namespace limber {

std::span<const float> row_of(const Tensor& output, size_t row) {
  const size_t width = output.data<float>().size() / static_cast<size_t>(output.shape().dim(0));
  return output.data<float>().subspan(row * width, width);
}

Status feed(const Tensor& rows, Tensor input) {
  bool fits = rows.dtype() == input.dtype() && rows.type().rank() == input.type().rank() &&
              rows.bytes() <= input.bytes();
  for (int axis = 1; fits && axis < input.type().rank(); ++axis)
    fits = rows.shape().dim(axis) == input.shape().dim(axis);
  if (!fits) return invalid("images {} do not fit {}", rows.type().to_string(), input.type().to_string());
  std::memmove(input.raw(), rows.raw(), rows.bytes());  // sessions may share memory
  return {};
}

}  // namespace limber
