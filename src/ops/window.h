// Sliding windows: what convolution and pooling share. Internal to ops/.
#pragma once

#include "ops/rules.h"

namespace limber::rules {

struct Window {
  int64_t kernel, stride, dilation, pad_begin, pad_end;
  bool ceil_mode = false;

  int64_t extent() const { return (kernel - 1) * dilation + 1; }
};

// Checks the length and values of "strides", "pads" and, where the operator has it, "dilations".
Status check_window_attrs(const InferArgs& args, int spatial_rank);

// The window along spatial axis i. REQUIRES: check_window_attrs; 1 <= kernel <= kMaxExtent
Window window_at(const InferArgs& args, int spatial_rank, int i, int64_t kernel);

// How many windows fit along a dimension of this size. In ceil mode a last window that would start
// in the end padding is dropped.
Result<Dim> window_count(const Dim& size, const Window& window, int spatial_axis);

// The type of x[N,C,spatial..] pooled as the attributes "kernel", "strides", "pads" .. say; checks them.
Result<TensorType> pooled(const InferArgs& args, const TensorType& x);

}  // namespace limber::rules
