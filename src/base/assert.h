// LIMBER_ASSERT states what only a bug in Limber can break; input from outside never reaches one.
// Checked in every build: a wrong number is worse than a stop.
#pragma once

#include <cstdint>

namespace limber {
[[noreturn]] void assert_failed(const char* expression, const char* file, int line);
}

#define LIMBER_ASSERT(condition) \
  (static_cast<bool>(condition) ? void(0) : ::limber::assert_failed(#condition, __FILE__, __LINE__))
#define LIMBER_UNREACHABLE() ::limber::assert_failed("unreachable", __FILE__, __LINE__)
