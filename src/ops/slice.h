// What one axis of a Slice selects.
#pragma once

#include <cstdint>

namespace limber {

// Elements start, start + step, ... (count of them), all in [0, size).
struct SliceRange {
  int64_t start, step, count;
};

// Python semantics: negative ends count from the end, everything is clamped. REQUIRES: size >= 0, step != 0
SliceRange slice_range(int64_t size, int64_t start, int64_t end, int64_t step);

}  // namespace limber
