#include "tensor/dtype.h"

#include "base/assert.h"

namespace limber {
namespace {

struct Row {
  DType dtype;
  size_t size;
  std::string_view name;
};
constexpr Row kRows[kDTypeCount] = {
    {DType::kF32, 4, "f32"},   {DType::kF64, 8, "f64"}, {DType::kF16, 2, "f16"}, {DType::kBF16, 2, "bf16"},
    {DType::kI8, 1, "i8"},     {DType::kU8, 1, "u8"},   {DType::kI16, 2, "i16"}, {DType::kU16, 2, "u16"},
    {DType::kI32, 4, "i32"},   {DType::kU32, 4, "u32"}, {DType::kI64, 8, "i64"}, {DType::kU64, 8, "u64"},
    {DType::kBool, 1, "bool"},
};

const Row& row(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  LIMBER_ASSERT(index < kDTypeCount && kRows[index].dtype == dtype);
  return kRows[index];
}

}  // namespace

size_t dtype_size(DType dtype) { return row(dtype).size; }
std::string_view dtype_name(DType dtype) { return row(dtype).name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Row& r : kRows) {
    if (r.name == name) return r.dtype;
  }
  return std::nullopt;
}

}  // namespace limber
