// The equation of an Einsum, resolved against the ranks of its inputs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace limber {

// One character per axis. Letters are those of the equation; the axes of an ellipsis are '0', '1' ...
// from the left of the longest one, so that they align on the right, and broadcast.
struct EinsumAxes {
  std::vector<std::string> inputs;
  std::string output;  // no character twice
};

Result<EinsumAxes> parse_einsum(std::string_view equation, std::span<const int> ranks);

}  // namespace limber
