// Arithmetic on single elements of static values; see static_value.h.
#pragma once

#include <optional>

#include "ir/attrs.h"
#include "ir/op_kind.h"
#include "ops/static_value.h"

namespace limber {

std::optional<double> element_number(const StaticElement& e);  // nullopt: symbolic
std::optional<int64_t> element_int(const StaticElement& e);    // nullopt: symbolic or no integer type

// The element as `dtype` holds it; nullopt where that would wrap around.
std::optional<StaticElement> element_stored(DType dtype, const StaticElement& e);

// What an element-wise operator gives; nullopt where it cannot be told. A symbol is at least 1.
std::optional<StaticElement> static_unary(OpKind op, const Attrs& attrs, const StaticElement& e);
std::optional<StaticElement> static_binary(OpKind op, const Attrs& attrs, const StaticElement& a,
                                           const StaticElement& b);

}  // namespace limber
