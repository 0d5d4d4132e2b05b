// The best variant within a latency: few evaluations, near the limit, guided by what blocks cost.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "supernet/search/knapsack.h"
#include "supernet/search/search_space.h"

namespace limber {

enum class SearchMethod : uint8_t {
  kEvolution,       // near the limit: NearbyInit, NearbyMutate, crossing; groups begin alike
  kAnnealing,       // near the limit
  kPlainEvolution,  // anywhere below the limit: random start, random mutation; for comparison
  kPlainAnnealing,
};

struct SearchProgress {
  int evaluations = 0, max_evaluations = 0;
  const Scored* best = nullptr;  // nullptr as long as there is none
};

struct SearchOptions {
  double latency = 0;              // seconds at most; when 0, `latency_share` of the original's
  double latency_share = 0;        // one of the two must be given
  double max_flops = 0;            // 0: any number
  double max_parameter_bytes = 0;  // 0: any number
  SearchMethod method = SearchMethod::kEvolution;
  bool use_prices = true;  // start from knapsacks over the distillation errors; not by the plain methods
  bool refine = true;      // learn prices from what was evaluated, and ask knapsacks again; the same
  double nearby = 0.9;     // the search stays between this share of the limit and the limit
  int max_evaluations = 200;
  int group = 12;       // variants evaluated together; annealing has so many chains
  int population = 16;  // of evolution: so many of the best are parents
  uint64_t seed = 0;
  std::vector<Variant> seeds;  // looked at first, where they are allowed; not by the plain methods
  std::vector<Scored> known;   // evaluated before on the same data: learnt from, and not evaluated again
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const SearchProgress&)> progress;  // after every group
};

// The accuracy, or whatever is to be large, of each.
using EvaluateVariants = std::function<Result<std::vector<double>>(std::span<const Variant>)>;

struct SearchResult {
  Scored best;                    // of those within the limits; of equal ones the fastest
  std::vector<Scored> evaluated;  // here, in order; each once. All are within the limits
  std::vector<double> curve;      // after each evaluation: the best accuracy so far, what was known aside
  double limit = 0;               // seconds
  // By the flag, also amid an evaluation; otherwise all were evaluated that were asked for, or that it finds.
  bool stopped = false;
};

// The same for the same space, options and accuracies. kInvalidArgument naming the fastest possible when no
// variant is within the limit. A failure of `evaluate` ends it.
Result<SearchResult> search_variants(const SearchSpace& space, const EvaluateVariants& evaluate,
                                     const SearchOptions& options);

// Distinct variants that knapsacks over the errors propose: for several exponents, then for prices that are
// off at random. Fewer than `count` when they propose no more.
Result<std::vector<Variant>> price_seeds(const SearchSpace& space, const Band& band, size_t count,
                                         Random& random);

// Those of which no other is as fast and more accurate, or faster and as accurate; by rising seconds.
std::vector<Scored> pareto_front(std::vector<Scored> scored);
// For each level, in seconds, the most accurate that is not slower. Levels without one are left out, and so
// are repetitions.
std::vector<Scored> best_per_level(std::span<const Scored> scored, std::span<const double> levels);

}  // namespace limber
