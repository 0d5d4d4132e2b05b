// What goes in and comes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "limber/export.h"

namespace limber {
inline namespace v1 {

enum class ElementType : uint8_t {
  kFloat32,
  kFloat64,
  kFloat16,   // IEEE half, stored in 16 bits
  kBFloat16,  // stored in 16 bits
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kBool,  // one byte, 0 or 1
};
LIMBER_API size_t element_size(ElementType type);       // bytes
LIMBER_API const char* element_name(ElementType type);  // "float32", "int64" ... as numpy calls them

namespace detail {
template <typename T>
constexpr bool holds(ElementType type) {
  if constexpr (std::is_same_v<T, float>) return type == ElementType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return type == ElementType::kFloat64;
  if constexpr (std::is_same_v<T, bool>) return type == ElementType::kBool;
  if constexpr (std::is_same_v<T, int8_t>) return type == ElementType::kInt8;
  if constexpr (std::is_same_v<T, uint8_t>) return type == ElementType::kUint8;
  if constexpr (std::is_same_v<T, int16_t>) return type == ElementType::kInt16;
  if constexpr (std::is_same_v<T, uint16_t>) {
    return type == ElementType::kUint16 || type == ElementType::kFloat16 || type == ElementType::kBFloat16;
  }
  if constexpr (std::is_same_v<T, int32_t>) return type == ElementType::kInt32;
  if constexpr (std::is_same_v<T, uint32_t>) return type == ElementType::kUint32;
  if constexpr (std::is_same_v<T, int64_t>) return type == ElementType::kInt64;
  if constexpr (std::is_same_v<T, uint64_t>) return type == ElementType::kUint64;
  return false;
}
}  // namespace detail

// What a model says about one input or output before it is compiled.
struct TensorInfo {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<int64_t> dims;         // -1 where a dimension is decided when the model is compiled
  std::vector<std::string> symbols;  // one per dimension: its name ("batch") where dims is -1, else ""
};

// Memory of a session: row-major, contiguous, 64-byte aligned. Copying a view does not copy the memory;
// it is valid as long as the session.
struct TensorView {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<int64_t> dims;
  void* data = nullptr;

  size_t elements() const {
    size_t count = 1;
    for (int64_t dim : dims) count *= static_cast<size_t>(dim);
    return count;
  }
  size_t bytes() const { return elements() * element_size(type); }
  // The elements; empty when T does not match the type.
  template <typename T>
  std::span<T> as() const {
    return detail::holds<T>(type) ? std::span<T>(static_cast<T*>(data), elements()) : std::span<T>();
  }
};

}  // namespace v1
}  // namespace limber
