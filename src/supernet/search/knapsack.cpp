#include "supernet/search/knapsack.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace limber {
namespace {

// A beginning of variants: what covers the blocks before a position.
struct Beginning {
  double seconds = 0, price = 0;
  size_t block = 0;  // where its last alternative starts
  int choice = 0;
  size_t before = 0;  // index of what it continues, at position `block`
};

// Keeps what no other beats, by rising seconds and falling price.
void keep_best(std::vector<Beginning>& all) {
  std::stable_sort(all.begin(), all.end(), [](const Beginning& a, const Beginning& b) {
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.price < b.price;
  });
  size_t kept = 0;
  for (const Beginning& one : all) {
    if (kept == 0 || one.price < all[kept - 1].price) all[kept++] = one;
  }
  all.resize(kept);
}

// The cheapest of each interval, which is its last, and the fastest of all.
void thin_out(std::vector<Beginning>& all, double interval) {
  size_t kept = 1;
  for (size_t i = 1; i < all.size(); ++i) {
    const bool last = i + 1 == all.size() ||
                      std::floor(all[i].seconds / interval) != std::floor(all[i + 1].seconds / interval);
    if (last) all[kept++] = all[i];
  }
  all.resize(kept);
}

// Least seconds from each position to the end.
std::vector<double> least_rest(const SearchSpace& space) {
  std::vector<double> rest(space.size() + 1, std::numeric_limits<double>::infinity());
  rest.back() = 0;
  for (size_t b = space.size(); b-- > 0;) {
    for (const ChoiceCost& one : space.blocks[b])
      rest[b] = std::min(rest[b], one.seconds + rest[b + static_cast<size_t>(one.span)]);
  }
  return rest;
}

using Positions = std::vector<std::vector<Beginning>>;

Priced trace(const SearchSpace& space, const Positions& positions, const Beginning& end) {
  Priced priced{.variant = {.choices = std::vector<int>(space.size(), Variant::kCovered)},
                .seconds = end.seconds,
                .price = end.price};
  for (const Beginning* at = &end;;) {
    priced.variant.choices[at->block] = at->choice;
    if (at->block == 0) return priced;
    at = &positions[at->block][at->before];
  }
}

void extend(const SearchSpace& space, const Prices& prices, const std::vector<double>& most, size_t block,
            Positions& positions) {
  for (size_t c = 0; c < space.blocks[block].size(); ++c) {
    const ChoiceCost& one = space.blocks[block][c];
    const size_t end = block + static_cast<size_t>(one.span);
    for (size_t i = 0; i < positions[block].size(); ++i) {
      const Beginning& from = positions[block][i];
      if (from.seconds + one.seconds > most[end]) break;
      positions[end].push_back(
          {from.seconds + one.seconds, from.price + prices[block][c], block, static_cast<int>(c), i});
    }
  }
}

// Prices with a share of the limits that each alternative uses added, `weight` times.
Prices with_penalty(const SearchSpace& space, Prices prices, const Band& band, double weight) {
  for (size_t b = 0; b < space.size(); ++b) {
    for (size_t c = 0; c < prices[b].size(); ++c) {
      const ChoiceCost& one = space.blocks[b][c];
      if (band.max_flops > 0) prices[b][c] += weight * one.flops / band.max_flops;
      if (band.max_parameter_bytes > 0)
        prices[b][c] += weight * one.parameter_bytes / band.max_parameter_bytes;
    }
  }
  return prices;
}

double total(const SearchSpace& space, const Prices& prices, const Variant& variant) {
  double sum = 0;
  for (size_t b = 0; b < space.size(); b += static_cast<size_t>(space.at(b, variant.choices[b]).span))
    sum += prices[b][static_cast<size_t>(variant.choices[b])];
  return sum;
}

double spread(const Prices& prices) {
  double low = 0, high = 0;
  for (const auto& block : prices) {
    for (const double price : block) low = std::min(low, price), high = std::max(high, price);
  }
  return std::max(high - low, 1e-9);
}

}  // namespace

Result<std::vector<Priced>> price_front(const SearchSpace& space, const Prices& prices, double limit,
                                        size_t resolution) {
  LIMBER_TRY(space.check());
  // Sums in another order may differ in the last bits: a limit that is a variant's own latency holds.
  const double slack = limit * 1e-12;
  std::vector<double> most = least_rest(space);
  if (!(most[0] <= limit + slack)) {
    return invalid(
        "no variant takes {:.6g} s or less: the fastest takes {:.6g} s, the original {:.6g} s; "
        "allow more, or make alternatives that are faster",
        limit, most[0], space.cost(space.original()).seconds);
  }
  for (double& seconds : most) seconds = limit + slack - seconds;
  Positions positions(space.size() + 1);
  positions[0].push_back({});
  for (size_t b = 0; b < space.size(); ++b) {
    extend(space, prices, most, b, positions);
    keep_best(positions[b + 1]);
    if (positions[b + 1].size() > resolution)
      thin_out(positions[b + 1], limit / static_cast<double>(resolution));
  }
  std::vector<Priced> front;
  for (const Beginning& end : positions.back()) front.push_back(trace(space, positions, end));
  return front;
}

Result<Priced> cheapest_variant(const SearchSpace& space, const Prices& prices, const Band& band,
                                size_t resolution) {
  const bool only_latency = band.max_flops <= 0 && band.max_parameter_bytes <= 0;
  // Of what goes beyond the other limits: each three times the one before, from a 64th of what prices differ
  // by up to a thousand times that, where nothing else counts.
  constexpr int kWeights = 12;
  std::optional<Priced> best;
  double weight = 0;
  for (int i = 0; i < (only_latency ? 1 : kWeights); ++i) {
    LIMBER_ASSIGN(auto front,
                  price_front(space, with_penalty(space, prices, band, weight), band.high, resolution));
    for (Priced& one : front) {
      if (!band.allows(space.cost(one.variant))) continue;
      one.price = total(space, prices, one.variant);
      if (!best || one.price < best->price) best = std::move(one);
    }
    weight = weight == 0 ? spread(prices) / 64 : weight * 3;
  }
  if (best) return *std::move(best);
  return invalid(
      "no variant found that takes {:.6g} s or less with at most {:.6g} flops and {:.6g} bytes of parameters "
      "(0: any number); allow more of them",
      band.high, band.max_flops, band.max_parameter_bytes);
}

}  // namespace limber
