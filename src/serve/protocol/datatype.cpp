#include "serve/protocol/datatype.h"

#include <utility>

#include "base/assert.h"

namespace limber {
namespace {

constexpr std::pair<DType, std::string_view> kDatatypes[] = {
    {DType::kF32, "FP32"},  {DType::kF64, "FP64"},   {DType::kF16, "FP16"},  {DType::kBF16, "BF16"},
    {DType::kI8, "INT8"},   {DType::kU8, "UINT8"},   {DType::kI16, "INT16"}, {DType::kU16, "UINT16"},
    {DType::kI32, "INT32"}, {DType::kU32, "UINT32"}, {DType::kI64, "INT64"}, {DType::kU64, "UINT64"},
    {DType::kBool, "BOOL"},
};
static_assert(std::size(kDatatypes) == kDTypeCount);

}  // namespace

std::string_view datatype_name(DType dtype) {
  for (const auto& [type, name] : kDatatypes) {
    if (type == dtype) return name;
  }
  LIMBER_ASSERT(false);
  return {};
}

std::optional<DType> parse_datatype(std::string_view datatype) {
  for (const auto& [type, name] : kDatatypes) {
    if (name == datatype) return type;
  }
  return std::nullopt;
}

}  // namespace limber
