#include "porting/loss_weights.h"

#include <algorithm>

namespace limber {
namespace {

// A way that is shorter than this share of the limit counts as so long: else a hair above it would weigh all.
constexpr double kShortestWay = 1e-3;

}  // namespace

Figures loss_weights(const Figures& start, const Figures& now, const Figures& limits) {
  Figures weights = {};
  const Figures none = {};
  for (size_t i = 0; i < kConstraints; ++i) {
    Figures one = none;
    one[i] = now[i];
    if (keeps(one, limits)) continue;
    const double way = std::max(start[i] - limits[i], kShortestWay * limits[i]);
    weights[i] = std::clamp((now[i] - limits[i]) / way, 0.0, 1.0);
  }
  return weights;
}

bool all_zero(const Figures& weights) {
  return std::all_of(weights.begin(), weights.end(), [](double weight) { return weight == 0; });
}

}  // namespace limber
