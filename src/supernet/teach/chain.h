// Variants for a whole range of latencies that have most in common.
#pragma once

#include <span>
#include <vector>

#include "supernet/search/search_space.h"

namespace limber {

// Of the original's latency. What is elastic serves from here up to the original.
inline constexpr double kFastestShare = 0.3;

// From just below the original down to kFastestShare, evenly spread.
std::vector<double> whole_range();

// A variant, and what it takes of the original's latency, as predicted.
struct TimedVariant {
  Variant variant;
  double share = 1;
  bool operator==(const TimedVariant&) const = default;
};

// For each share of the original's latency a variant that takes no more, the slowest first; each once, and
// none where nothing is so fast. The fastest is the one that the errors of its alternatives make look best
// (by their roots); each slower one differs from the one before in that some blocks are the originals again,
// or alternatives with smaller errors: what is trained in one is trained for its neighbours.
Result<std::vector<TimedVariant>> variant_chain(const SearchSpace& space, std::span<const double> shares);

struct RangePoint {
  double share = 1, accuracy = 0;  // of the original's latency; 0..1
};
// Mean accuracy over latencies from the fastest point to the slowest: between two points it is that on the
// line between them. REQUIRES: at least one point
double range_accuracy(std::vector<RangePoint> points);

}  // namespace limber
