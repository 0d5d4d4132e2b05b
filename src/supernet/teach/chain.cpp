#include "supernet/teach/chain.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "supernet/search/knapsack.h"

namespace limber {
namespace {

constexpr int kSteps = 20;            // from the original to kFastestShare: 3.5 % of its latency each
constexpr size_t kResolution = 1024;  // steps of latency that are told apart
constexpr double kNearLimit = 0.95;   // of a share of the latency: times are never quite the same again

// The space of what `fast` is and of variants with something nearer to the originals in its place: where
// `fast` has an alternative, other ones with a smaller error that stand for no other blocks.
SearchSpace nearer_than(SearchSpace space, const Variant& fast) {
  for (size_t b = 0; b < space.size();) {
    const auto chosen = static_cast<size_t>(fast.choices[b]);
    const double error = space.blocks[b][chosen].error;
    const size_t end = b + static_cast<size_t>(space.blocks[b][chosen].span);
    for (size_t i = b; i < end; ++i) {
      for (size_t c = 1; c < space.blocks[i].size(); ++c) {
        ChoiceCost& one = space.blocks[i][c];
        const bool nearer = i + static_cast<size_t>(one.span) <= end && one.error < error;
        if (!nearer && (i != b || c != chosen)) one.seconds = std::numeric_limits<double>::infinity();
      }
    }
    b = end;
  }
  return space;
}

// What an alternative costs before anything is tuned, its error, tells too little of what it costs after
// that: the rest of the network learns to live with one skipped block sooner than with many narrow ones. By
// the roots one large error counts less than several small ones.
Prices root_errors(const SearchSpace& space) {
  Prices prices;
  for (const auto& block : space.blocks) {
    auto& row = prices.emplace_back();
    for (const ChoiceCost& one : block) row.push_back(std::sqrt(one.error));
  }
  return prices;
}

}  // namespace

std::vector<double> whole_range() {
  std::vector<double> shares;
  for (int i = 1; i <= kSteps; ++i) shares.push_back(1 - (1 - kFastestShare) * i / kSteps);
  return shares;
}

Result<std::vector<TimedVariant>> variant_chain(const SearchSpace& space, std::span<const double> shares) {
  const double original = space.cost(space.original()).seconds;
  std::vector<double> rising(shares.begin(), shares.end());
  std::sort(rising.begin(), rising.end());
  const Prices prices = root_errors(space);
  SearchSpace left = space;
  std::vector<TimedVariant> chain;
  for (const double share : rising) {
    const auto found = cheapest_variant(left, prices, {.high = kNearLimit * share * original}, kResolution);
    if (found.status().code() == Code::kInvalidArgument) continue;  // none is so fast
    if (!found.ok()) return found.status();
    const Variant& variant = found->variant;
    if (!chain.empty() && chain.back().variant == variant) continue;
    chain.push_back({variant, space.cost(variant).seconds / original});
    left = nearer_than(std::move(left), variant);
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

double range_accuracy(std::vector<RangePoint> points) {
  LIMBER_ASSERT(!points.empty());
  std::sort(points.begin(), points.end(),
            [](const RangePoint& a, const RangePoint& b) { return a.share < b.share; });
  double area = 0;
  for (size_t i = 1; i < points.size(); ++i)
    area += (points[i].share - points[i - 1].share) * (points[i].accuracy + points[i - 1].accuracy) / 2;
  const double width = points.back().share - points.front().share;
  return width > 0 ? area / width : points.front().accuracy;
}

}  // namespace limber
