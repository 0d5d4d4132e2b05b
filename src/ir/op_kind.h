#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace limber {

enum class OpKind : uint16_t {
#define LIMBER_OP(name) k##name,
#include "ir/op_list.inc"
#undef LIMBER_OP
};

inline constexpr int kOpCount = 0
#define LIMBER_OP(name) +1
#include "ir/op_list.inc"
#undef LIMBER_OP
    ;

std::string_view op_name(OpKind op);
std::optional<OpKind> parse_op(std::string_view name);

}  // namespace limber
