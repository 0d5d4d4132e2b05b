#include "ir/op_kind.h"

#include <array>

#include "base/assert.h"

namespace limber {
namespace {
constexpr std::array<std::string_view, kOpCount> kNames = {
#define LIMBER_OP(name) #name,
#include "ir/op_list.inc"
#undef LIMBER_OP
};
}  // namespace

std::string_view op_name(OpKind op) {
  LIMBER_ASSERT(static_cast<size_t>(op) < kNames.size());
  return kNames[static_cast<size_t>(op)];
}

std::optional<OpKind> parse_op(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<OpKind>(i);
  }
  return std::nullopt;
}

}  // namespace limber
