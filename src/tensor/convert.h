#pragma once

#include "tensor/tensor.h"

namespace limber {

// The same numbers as `to`, where every number of the one type fits the other well enough for a network: f32
// from any float and from integers of up to 32 bits, i64 and i32 from shorter integers; bool counts as 0
// and 1. kInvalidArgument for all else.
Result<Tensor> convert_tensor(const Tensor& from, DType to);

}  // namespace limber
