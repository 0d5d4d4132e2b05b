// Types and bytes. A TensorType says what a tensor is; a Buffer is bytes; a Tensor is both, on the
// host, row-major and contiguous.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "base/assert.h"
#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace limber {

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;

  bool operator==(const TensorType&) const = default;
  int rank() const { return shape.rank(); }
  size_t bytes() const;           // REQUIRES: constant shape
  std::string to_string() const;  // "f32[N,3,224,224]"
};

// 64-byte aligned bytes, zeroed on request only. Owns its memory or keeps its owner alive.
class Buffer {
 public:
  static constexpr size_t kAlignment = 64;
  // kResourceExhausted when the system has not that much.
  static Result<std::shared_ptr<Buffer>> allocate(size_t bytes);
  // Bytes that belong to `owner` (a mapping, another buffer), which is kept alive. Read-only users only.
  static std::shared_ptr<Buffer> borrow(const void* data, size_t bytes, std::shared_ptr<const void> owner);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool owned() const { return owner_ == nullptr; }

 private:
  Buffer(std::byte* data, size_t size, std::shared_ptr<const void> owner)
      : data_(data), size_(size), owner_(std::move(owner)) {}
  std::byte* data_;
  size_t size_;
  std::shared_ptr<const void> owner_;
};

// A view on a Buffer with a type; copying shares the bytes. The shape is always constant.
class Tensor {
 public:
  Tensor() = default;
  static Result<Tensor> allocate(TensorType type);  // uninitialised
  static Result<Tensor> zeros(TensorType type);
  // REQUIRES: buffer holds at least type.bytes() from `offset`
  Tensor(TensorType type, std::shared_ptr<Buffer> buffer, size_t offset = 0);
  template <typename T>
  static Tensor from(std::span<const T> values, Shape shape) {
    auto tensor = allocate({DTypeOf<T>::value, std::move(shape)});
    LIMBER_ASSERT(tensor.ok() && tensor->elements() == static_cast<int64_t>(values.size()));
    if (!values.empty()) std::memcpy(tensor->raw(), values.data(), values.size_bytes());
    return *std::move(tensor);
  }
  template <typename T>
  static Tensor from(std::initializer_list<T> values, Shape shape) {
    return from(std::span<const T>(values.begin(), values.size()), std::move(shape));
  }
  template <typename T>
  static Tensor scalar(T value) {
    return from(std::span<const T>(&value, 1), Shape{});
  }

  bool valid() const { return buffer_ != nullptr; }
  const TensorType& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }
  int64_t elements() const { return type_.shape.elements(); }
  size_t bytes() const { return type_.bytes(); }

  void* raw() { return buffer_->data() + offset_; }
  const void* raw() const { return buffer_->data() + offset_; }
  // REQUIRES: T matches dtype()
  template <typename T>
  std::span<T> data() {
    LIMBER_ASSERT(DTypeOf<T>::value == dtype());
    return {static_cast<T*>(raw()), static_cast<size_t>(elements())};
  }
  template <typename T>
  std::span<const T> data() const {
    LIMBER_ASSERT(DTypeOf<T>::value == dtype());
    return {static_cast<const T*>(raw()), static_cast<size_t>(elements())};
  }
  // Typed access needs it; only bytes of a file may lie otherwise.
  bool is_aligned() const { return reinterpret_cast<uintptr_t>(raw()) % dtype_size(dtype()) == 0; }
  Result<Tensor> copy() const;  // aligned
  // The same bytes under another shape. REQUIRES: same number of elements
  Tensor reshaped(Shape shape) const;
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }

 private:
  TensorType type_;
  std::shared_ptr<Buffer> buffer_;
  size_t offset_ = 0;
};

// Element `index` as a double or integer, whatever the dtype. For constants and tests, not kernels.
double element_as_double(const Tensor& tensor, int64_t index);
int64_t element_as_int(const Tensor& tensor, int64_t index);

// IEEE half and bfloat16 are storage types; arithmetic is done in float.
float half_to_float(uint16_t half);
uint16_t float_to_half(float value);  // round to nearest even
float bfloat16_to_float(uint16_t value);
uint16_t float_to_bfloat16(float value);

}  // namespace limber
