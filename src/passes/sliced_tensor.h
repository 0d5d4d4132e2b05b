// A tensor of which some indices are kept along some axes.
#pragma once

#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace limber {

struct KeptAxis {
  int axis = 0;
  std::vector<int64_t> indices;  // ascending, not empty

  bool operator==(const KeptAxis&) const = default;
};

struct SlicedTensor {
  std::string name;
  TensorType full, small;
  std::vector<KeptAxis> axes;  // sorted by axis; an element is kept when all its axes keep it
};

// The kept elements of `full`. kInvalidArgument when it has another type than the description.
Result<Tensor> take(const SlicedTensor& slice, const Tensor& full);
// Writes `small` over the kept elements of `full`, and nothing else.
Status put_back(const SlicedTensor& slice, const Tensor& small, Tensor& full);

}  // namespace limber
