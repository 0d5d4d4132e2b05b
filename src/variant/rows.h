// Batches as rows, one per image.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "tensor/tensor.h"

namespace limber {

// What a classifier says about one image of the batch.
std::span<const float> row_of(const Tensor& output, size_t row);

// Copies into a session's input as many rows as there are. Rows do not depend on each other: what is left in
// those behind a short batch does no harm. kInvalidArgument naming both types when they do not fit.
Status feed(const Tensor& rows, Tensor input);

}  // namespace limber
