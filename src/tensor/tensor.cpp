#include "tensor/tensor.h"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>

namespace limber {

size_t TensorType::bytes() const { return static_cast<size_t>(shape.elements()) * dtype_size(dtype); }

std::string TensorType::to_string() const {
  return fmt::format("{}[{}]", dtype_name(dtype), shape.to_string());
}

namespace {

// Larger blocks come from the system, and go back to it when they are freed: the heap would keep them. A
// sanitizer watches its own heap only.
#ifdef LIMBER_SANITIZED
constexpr size_t kFromSystem = SIZE_MAX;
#else
constexpr size_t kFromSystem = size_t{256} << 10;
#endif

void* allocate_bytes(size_t bytes) {
  if (bytes >= kFromSystem) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? nullptr : data;
  }
  const size_t rounded =
      (std::max<size_t>(bytes, 1) + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment;
  return rounded < bytes ? nullptr : std::aligned_alloc(Buffer::kAlignment, rounded);
}

}  // namespace

Result<std::shared_ptr<Buffer>> Buffer::allocate(size_t bytes) {
  void* data = allocate_bytes(bytes);
  if (data == nullptr) return error(Code::kResourceExhausted, "cannot allocate {} bytes", bytes);
  return std::shared_ptr<Buffer>(new Buffer(static_cast<std::byte*>(data), bytes, nullptr));
}

std::shared_ptr<Buffer> Buffer::borrow(const void* data, size_t bytes, std::shared_ptr<const void> owner) {
  LIMBER_ASSERT(owner != nullptr);
  auto* start = static_cast<std::byte*>(const_cast<void*>(data));
  return std::shared_ptr<Buffer>(new Buffer(start, bytes, std::move(owner)));
}

Buffer::~Buffer() {
  if (!owned()) return;
  if (size_ >= kFromSystem) {
    munmap(data_, size_);
  } else {
    std::free(data_);
  }
}

Result<Tensor> Tensor::allocate(TensorType type) {
  LIMBER_ASSIGN(auto buffer, Buffer::allocate(type.bytes()));
  return Tensor(std::move(type), std::move(buffer));
}

Result<Tensor> Tensor::zeros(TensorType type) {
  LIMBER_ASSIGN(Tensor tensor, allocate(std::move(type)));
  std::memset(tensor.raw(), 0, tensor.bytes());
  return tensor;
}

Tensor::Tensor(TensorType type, std::shared_ptr<Buffer> buffer, size_t offset)
    : type_(std::move(type)), buffer_(std::move(buffer)), offset_(offset) {
  LIMBER_ASSERT(buffer_ && offset_ <= buffer_->size() && type_.bytes() <= buffer_->size() - offset_);
}

Result<Tensor> Tensor::copy() const {
  LIMBER_ASSIGN(Tensor tensor, allocate(type_));
  if (bytes() > 0) std::memcpy(tensor.raw(), raw(), bytes());
  return tensor;
}

Tensor Tensor::reshaped(Shape shape) const {
  LIMBER_ASSERT(shape.elements() == elements());
  return Tensor({dtype(), std::move(shape)}, buffer_, offset_);
}

namespace {

template <typename Out>
Out element_as(const Tensor& t, int64_t i) {
  LIMBER_ASSERT(i >= 0 && i < t.elements());
  // Elements of a mapped file need not be aligned.
  const auto* p = static_cast<const std::byte*>(t.raw()) + static_cast<size_t>(i) * dtype_size(t.dtype());
  const auto load = [p](auto zero) {
    std::memcpy(&zero, p, sizeof(zero));
    return zero;
  };
  switch (t.dtype()) {
    case DType::kF32:
      return static_cast<Out>(load(float{}));
    case DType::kF64:
      return static_cast<Out>(load(double{}));
    case DType::kF16:
      return static_cast<Out>(half_to_float(load(uint16_t{})));
    case DType::kBF16:
      return static_cast<Out>(bfloat16_to_float(load(uint16_t{})));
    case DType::kI8:
      return static_cast<Out>(load(int8_t{}));
    case DType::kU8:
      return static_cast<Out>(load(uint8_t{}));
    case DType::kI16:
      return static_cast<Out>(load(int16_t{}));
    case DType::kU16:
      return static_cast<Out>(load(uint16_t{}));
    case DType::kI32:
      return static_cast<Out>(load(int32_t{}));
    case DType::kU32:
      return static_cast<Out>(load(uint32_t{}));
    case DType::kI64:
      return static_cast<Out>(load(int64_t{}));
    case DType::kU64:
      return static_cast<Out>(load(uint64_t{}));
    case DType::kBool:
      return static_cast<Out>(load(uint8_t{}) != 0);
  }
  LIMBER_UNREACHABLE();
}

}  // namespace

double element_as_double(const Tensor& tensor, int64_t index) { return element_as<double>(tensor, index); }
int64_t element_as_int(const Tensor& tensor, int64_t index) { return element_as<int64_t>(tensor, index); }

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f, mantissa = half & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);   // NaN
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // overflows to infinity
  if (magnitude < 0x38800000) {  // subnormal half: adding 0.5 lets the FPU do the rounding
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
}

float bfloat16_to_float(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

uint16_t float_to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);  // NaN stays one
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace limber
