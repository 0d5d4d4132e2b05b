// The names that the Open Inference Protocol gives to element types: "FP32", "INT64", "BOOL" ...
#pragma once

#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace limber {

inline constexpr std::string_view kBytesDatatype = "BYTES";  // texts or files; no DType of ours

std::string_view datatype_name(DType dtype);                     // "FP32"
std::optional<DType> parse_datatype(std::string_view datatype);  // the inverse; nothing for BYTES
inline constexpr std::string_view kDatatypeList =
    "BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FP16, BF16, FP32, FP64 or BYTES";

}  // namespace limber
