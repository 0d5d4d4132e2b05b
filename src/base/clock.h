#pragma once

#include <chrono>

namespace limber {

// Seconds on a clock that never goes back; only differences mean something.
inline double now_seconds() {
  using clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

// Seconds since 1970-01-01 UTC, to say when something happened; may jump.
inline double unix_seconds() {
  using clock = std::chrono::system_clock;
  return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

}  // namespace limber
