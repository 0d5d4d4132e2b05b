#include "passes/sliced_tensor.h"

#include <algorithm>

namespace limber {
namespace {

// Calls visit(offset in the full tensor, offset in the small one, count) for runs of neighbours, in bytes.
class KeptRuns {
 public:
  explicit KeptRuns(const SlicedTensor& slice) : slice_(slice), strides_(strides_of(slice.full.shape)) {
    const int last = slice.axes.back().axis;
    run_ = dtype_size(slice.full.dtype);
    for (int i = last + 1; i < slice.full.rank(); ++i) run_ *= static_cast<size_t>(slice.full.shape.dim(i));
  }

  template <typename Visit>
  void each(const Visit& visit) {
    size_t small = 0;
    descend(0, 0, small, visit);
  }

 private:
  const std::vector<int64_t>* kept(int axis) const {
    const auto it = std::find_if(slice_.axes.begin(), slice_.axes.end(),
                                 [axis](const KeptAxis& kept) { return kept.axis == axis; });
    return it == slice_.axes.end() ? nullptr : &it->indices;
  }

  template <typename Visit>
  void descend(int axis, int64_t offset, size_t& small, const Visit& visit) {
    if (axis > slice_.axes.back().axis) {
      visit(static_cast<size_t>(offset) * dtype_size(slice_.full.dtype), small, run_);
      small += run_;
      return;
    }
    const int64_t stride = strides_[static_cast<size_t>(axis)];
    if (const auto* indices = kept(axis)) {
      for (int64_t i : *indices) descend(axis + 1, offset + i * stride, small, visit);
    } else {
      for (int64_t i = 0; i < slice_.full.shape.dim(axis); ++i)
        descend(axis + 1, offset + i * stride, small, visit);
    }
  }

  const SlicedTensor& slice_;
  const std::vector<int64_t> strides_;
  size_t run_;
};

Status check_type_of(const SlicedTensor& slice, const TensorType& expected, const Tensor& tensor) {
  if (tensor.type() == expected) return {};
  return invalid("'{}' has type {}, expected {}", slice.name, tensor.type().to_string(),
                 expected.to_string());
}

}  // namespace

Result<Tensor> take(const SlicedTensor& slice, const Tensor& full) {
  LIMBER_TRY(check_type_of(slice, slice.full, full));
  if (slice.axes.empty()) return full;
  LIMBER_ASSIGN(Tensor small, Tensor::allocate(slice.small));
  const auto* from = static_cast<const std::byte*>(full.raw());
  auto* to = static_cast<std::byte*>(small.raw());
  KeptRuns(slice).each(
      [&](size_t at, size_t offset, size_t bytes) { std::memcpy(to + offset, from + at, bytes); });
  return small;
}

Status put_back(const SlicedTensor& slice, const Tensor& small, Tensor& full) {
  LIMBER_TRY(check_type_of(slice, slice.small, small));
  LIMBER_TRY(check_type_of(slice, slice.full, full));
  const auto* from = static_cast<const std::byte*>(small.raw());
  auto* to = static_cast<std::byte*>(full.raw());
  if (slice.axes.empty()) {
    std::memcpy(to, from, full.bytes());
    return {};
  }
  KeptRuns(slice).each(
      [&](size_t at, size_t offset, size_t bytes) { std::memcpy(to + at, from + offset, bytes); });
  return {};
}

}  // namespace limber
