// The cheapest variants by price for every latency: a shortest path over block positions with a limit.
#pragma once

#include <vector>

#include "supernet/search/search_space.h"

namespace limber {

// By block and alternative, as SearchSpace::blocks. What a variant costs is the sum; any sign.
using Prices = std::vector<std::vector<double>>;

struct Priced {
  Variant variant;
  double seconds = 0;
  double price = 0;
};

// Variants of which no other is both faster (or as fast) and cheaper (or as cheap), by rising seconds and
// falling price; none above `limit` seconds.
// Exact as long as no more than `resolution` beginnings matter at any block. Above that, of those whose
// seconds differ by less than 1 / resolution of the limit only the cheapest is followed.
// kInvalidArgument naming the fastest possible when none is within the limit.
Result<std::vector<Priced>> price_front(const SearchSpace& space, const Prices& prices, double limit,
                                        size_t resolution = 4096);

// The last of them: the cheapest within the band's limits, and of equal ones the fastest. For limits on flops
// and parameters several weights are tried with which their use is added to the prices, so with those it may
// miss the cheapest; kInvalidArgument when none of the weights leads to a variant within them.
Result<Priced> cheapest_variant(const SearchSpace& space, const Prices& prices, const Band& band,
                                size_t resolution = 4096);

}  // namespace limber
