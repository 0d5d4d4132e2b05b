// Small search spaces, every variant of which can be listed.
#pragma once

#include <functional>

#include "supernet/search/knapsack.h"
#include "supernet/search/search_space.h"

namespace limber::test {

struct RandomSpaceOptions {
  int blocks = 5;
  int alternatives = 4;  // at most, the original included
  bool whole = false;    // seconds, errors are small whole numbers: many ties
};

inline SearchSpace random_space(const RandomSpaceOptions& options, Random& random) {
  SearchSpace space;
  for (int b = 0; b < options.blocks; ++b) {
    auto& block = space.blocks.emplace_back();
    const double original =
        options.whole ? 3 + static_cast<double>(random.below(3)) : random.uniform(0.8, 1.6);
    block.push_back({.seconds = original, .flops = original * 1e6, .parameter_bytes = original * 1e3});
    const auto more = random.below(static_cast<uint64_t>(options.alternatives));
    for (uint64_t a = 0; a < more; ++a) {
      const int left = options.blocks - b;
      const int span = random.below(3) == 0 ? 1 + static_cast<int>(random.below(3)) : 1;
      const double share = random.uniform(0.1, 0.95);
      ChoiceCost one{.span = std::min(span, left)};
      one.seconds = options.whole ? static_cast<double>(random.below(5)) : share * one.span;
      one.error = options.whole ? static_cast<double>(random.below(4))
                                : one.span * (1 - share) * (1 - share) * random.uniform(0.2, 1.0);
      one.flops = share * 1e6;
      one.parameter_bytes = random.uniform() * 1e3;
      block.push_back(one);
    }
  }
  return space;
}

inline void for_each_variant(const SearchSpace& space, const std::function<void(const Variant&)>& visit) {
  Variant variant{.choices = std::vector<int>(space.size(), Variant::kCovered)};
  const std::function<void(size_t)> go = [&](size_t b) {
    if (b == space.size()) return visit(variant);
    for (size_t c = 0; c < space.blocks[b].size(); ++c) {
      variant.choices[b] = static_cast<int>(c);
      go(b + static_cast<size_t>(space.blocks[b][c].span));
    }
    variant.choices[b] = Variant::kCovered;
  };
  go(0);
}

// Every block is covered exactly once, by a choice that is there.
inline bool is_variant_of(const SearchSpace& space, const Variant& variant) {
  if (variant.choices.size() != space.size()) return false;
  size_t end = 0;
  for (size_t b = 0; b < space.size(); ++b) {
    const int choice = variant.choices[b];
    if ((choice == Variant::kCovered) != (b < end)) return false;
    if (choice == Variant::kCovered) continue;
    if (choice < 0 || static_cast<size_t>(choice) >= space.blocks[b].size()) return false;
    end = b + static_cast<size_t>(space.at(b, choice).span);
  }
  return end == space.size();
}

inline Prices errors_of(const SearchSpace& space) {
  Prices prices;
  for (const auto& block : space.blocks) {
    prices.emplace_back();
    for (const ChoiceCost& one : block) prices.back().push_back(one.error);
  }
  return prices;
}

inline double price_of(const SearchSpace& space, const Prices& prices, const Variant& variant) {
  double sum = 0;
  for (size_t b = 0; b < space.size(); ++b) {
    if (variant.choices[b] != Variant::kCovered) sum += prices[b][static_cast<size_t>(variant.choices[b])];
  }
  return sum;
}

}  // namespace limber::test
