#include "supernet/search/search.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "supernet/search/price_model.h"

namespace limber {
namespace {

constexpr int kTries = 50;  // to find a variant that is allowed and new, before giving up for now

bool is_better(const Scored& a, const Scored& b) {
  return a.accuracy != b.accuracy ? a.accuracy > b.accuracy : a.seconds < b.seconds;
}

bool is_plain(SearchMethod method) {
  return method == SearchMethod::kPlainEvolution || method == SearchMethod::kPlainAnnealing;
}

// By how much of the time of what it replaces an alternative is shorter: a price where no errors are known.
double saved_share(const SearchSpace& space, size_t block, const ChoiceCost& one) {
  double whole = 0;
  for (size_t i = 0; i < static_cast<size_t>(one.span); ++i) whole += space.at(block + i, 0).seconds;
  return whole > 0 ? std::max(0.0, 1 - one.seconds / whole) : 0;
}

Prices error_prices(const SearchSpace& space, double exponent) {
  bool known = false;
  for (const auto& block : space.blocks)
    known |= std::any_of(block.begin(), block.end(), [](const ChoiceCost& one) { return one.error > 0; });
  Prices prices(space.size());
  for (size_t b = 0; b < space.size(); ++b) {
    for (const ChoiceCost& one : space.blocks[b])
      prices[b].push_back(std::pow(known ? one.error : saved_share(space, b, one), exponent));
    prices[b][0] = 0;
  }
  return prices;
}

void perturb(Prices& prices, double amount, Random& random) {
  for (auto& block : prices) {
    for (double& price : block) price *= std::exp(amount * random.normal());
  }
}

double total_price(const Prices& prices, const Variant& variant) {
  double sum = 0;
  for (size_t b = 0; b < prices.size(); ++b) {
    if (variant.choices[b] != Variant::kCovered) sum += prices[b][static_cast<size_t>(variant.choices[b])];
  }
  return sum;
}

Result<Band> make_band(const SearchSpace& space, const SearchOptions& options) {
  LIMBER_TRY(space.check());
  if (options.max_evaluations < 1 || options.group < 1 || options.population < 1)
    return invalid("{} evaluations in groups of {} from {} parents, expected 1 or more of each",
                   options.max_evaluations, options.group, options.population);
  if (!(options.nearby >= 0 && options.nearby <= 1))
    return invalid("near the limit is {} of it, expected a share in 0..1", options.nearby);
  const double original = space.cost(space.original()).seconds;
  const double limit = options.latency > 0 ? options.latency : options.latency_share * original;
  if (!(limit > 0)) return invalid("a search needs a latency limit above 0");
  const Band band{.low = options.nearby * std::min(limit, original),
                  .high = limit,
                  .max_flops = options.max_flops,
                  .max_parameter_bytes = options.max_parameter_bytes};
  // Fails, and says why, when there is nothing to find.
  LIMBER_TRY(cheapest_variant(space, error_prices(space, 1), band).status());
  return band;
}

class Searcher {
 public:
  Searcher(const SearchSpace& space, const EvaluateVariants& evaluate, const SearchOptions& options,
           const Band& band)
      : space_(space), evaluate_(evaluate), options_(options), band_(band), random_(options.seed) {
    for (const Scored& one : options.known) note(one);
    result_.limit = band.high;
  }

  Result<SearchResult> run() {
    const bool annealing =
        options_.method == SearchMethod::kAnnealing || options_.method == SearchMethod::kPlainAnnealing;
    LIMBER_TRY(start());
    LIMBER_TRY(annealing ? anneal() : evolve());
    if (!best_) return error(Code::kResourceExhausted, "the search was stopped before its first evaluation");
    result_.best = all_[*best_];
    return std::move(result_);
  }

 private:
  bool guided() const { return !is_plain(options_.method); }
  int evaluations() const { return static_cast<int>(result_.evaluated.size()); }
  size_t room() const {
    const int left = std::min(options_.group, options_.max_evaluations - evaluations());
    return static_cast<size_t>(std::max(left, 0)) -
           std::min(group_.size(), static_cast<size_t>(std::max(left, 0)));
  }
  bool done() {
    result_.stopped = options_.stop != nullptr && options_.stop->load();
    return result_.stopped || evaluations() >= options_.max_evaluations;
  }

  void note(const Scored& one) {
    if (!index_.emplace(one.variant.choices, all_.size()).second) return;
    all_.push_back(one);
    if (!band_.allows(space_.cost(one.variant))) return;
    if (!best_ || is_better(one, all_[*best_])) best_ = all_.size() - 1;
  }

  bool is_known(const Variant& variant) const { return index_.contains(variant.choices); }
  bool is_fresh(const Variant& variant) const {
    return !is_known(variant) && std::find(group_.begin(), group_.end(), variant) == group_.end();
  }
  // Into the next group, when it is new and allowed and there is room.
  bool propose(const Variant& variant) {
    if (room() == 0 || !is_fresh(variant) || !band_.allows(space_.cost(variant))) return false;
    group_.push_back(variant);
    return true;
  }

  Status evaluate_group() {
    if (group_.empty()) return {};
    const auto evaluated = evaluate_(group_);
    if (evaluated.status().code() == Code::kResourceExhausted && done() && result_.stopped) {
      group_.clear();
      return {};
    }
    LIMBER_ASSIGN(const std::vector<double> accuracies, evaluated);
    if (accuracies.size() != group_.size())
      return error(Code::kInternal, "{} accuracies for {} variants", accuracies.size(), group_.size());
    for (size_t i = 0; i < group_.size(); ++i) {
      const Scored one{group_[i], space_.cost(group_[i]).seconds, accuracies[i]};
      note(one);
      result_.evaluated.push_back(one);
      const double before = result_.curve.empty() ? one.accuracy : result_.curve.back();
      result_.curve.push_back(std::max(before, one.accuracy));
    }
    group_.clear();
    if (options_.progress)
      options_.progress({evaluations(), options_.max_evaluations, best_ ? &all_[*best_] : nullptr});
    return {};
  }

  Variant fresh_start() {
    if (guided()) return nearby_variant(space_, band_, random_);
    for (int i = 0; i < kTries; ++i) {
      Variant variant = random_variant(space_, random_);
      if (band_.allows(space_.cost(variant))) return variant;
    }
    Band below = band_;
    below.low = 0;
    return move_near(space_, below, random_variant(space_, random_), random_);
  }

  Variant mutate(const Variant& variant) {
    return guided() ? nearby_mutation(space_, band_, variant, random_)
                    : random_mutation(space_, variant, random_);
  }

  // What is just too slow, changed as little as possible.
  void propose_near(const std::vector<Variant>& variants) {
    constexpr int kWays =
        3;  // of each: ways are random, and a few differ; more would crowd out other variants
    for (const Variant& variant : variants) {
      if (band_.allows(space_.cost(variant))) continue;
      for (int i = 0; i < kWays; ++i) propose(move_near(space_, band_, variant, random_));
    }
  }

  // The first groups.
  Status start() {
    std::vector<Variant> seeds;
    if (guided() && options_.use_prices) {
      LIMBER_ASSIGN(seeds, price_seeds(space_, band_, static_cast<size_t>(first_group()), random_));
    }
    if (guided()) seeds.insert(seeds.begin(), options_.seeds.begin(), options_.seeds.end());
    for (const Variant& seed : seeds) propose(seed);
    if (guided()) propose_near(options_.seeds);
    if (!done()) LIMBER_TRY(evaluate_group());
    // What is learnt takes over from here; without it more must be seen first.
    const int wanted = guided() && options_.refine ? first_group() : options_.population;
    for (int tries = 0; evaluations() < wanted && tries < kTries && !done(); ++tries) {
      for (int i = 0; i < kTries && room() > 0; ++i) propose(fresh_start());
      LIMBER_TRY(evaluate_group());
    }
    return {};
  }

  // Small: the sooner something is learnt from, the better the rest.
  int first_group() const { return std::min(options_.group, 8); }

  // What knapsacks over learnt prices say, at first with the likeliest ones.
  Status propose_by_prices(const PriceModel& model, size_t count, const Variant* trunk = nullptr) {
    for (int i = 0; i < 3 * static_cast<int>(count) && count > 0; ++i) {
      const double doubt = 0.5 * i;
      const size_t from = trunk == nullptr ? 0 : shared_blocks(*trunk);
      LIMBER_ASSIGN(const Priced priced, cheapest(model.prices(doubt, random_), trunk, from));
      if (propose(priced.variant)) --count;
    }
    return {};
  }

  Result<Priced> cheapest(const Prices& prices, const Variant* trunk, size_t from) const {
    // Steps of latency that the knapsack tells apart: 0.2 % of the limit, well below what timing is sure of.
    constexpr size_t kResolution = 512;
    if (from == 0) return cheapest_variant(space_, prices, band_, kResolution);
    return cheapest_variant(with_beginning(space_, *trunk, from), prices, band_, kResolution);
  }

  // How many blocks others may have in common with the variant: those that take a random part of its time.
  size_t shared_blocks(const Variant& trunk) {
    // Shares of its time. Less in common saves little work; more leaves hardly a block to differ in.
    constexpr double kLeast = 0.5, kMost = 0.95;
    const double until = random_.uniform(kLeast, kMost) * space_.cost(trunk).seconds;
    double passed = 0;
    for (size_t b = 0;;) {
      const ChoiceCost& one = space_.at(b, trunk.choices[b]);
      const size_t next = b + static_cast<size_t>(one.span);
      passed += one.seconds;
      if (passed > until || next >= space_.size()) return b;
      b = next;
    }
  }

  // Indices of the best that are allowed.
  std::vector<size_t> parents() const {
    std::vector<size_t> best;
    for (size_t i = 0; i < all_.size(); ++i) {
      if (band_.allows(space_.cost(all_[i].variant))) best.push_back(i);
    }
    std::stable_sort(best.begin(), best.end(),
                     [&](size_t a, size_t b) { return is_better(all_[a], all_[b]); });
    best.resize(std::min(best.size(), static_cast<size_t>(options_.population)));
    return best;
  }

  // The better of two, so that the best have more children.
  const Variant& pick(const std::vector<size_t>& parents) {
    const size_t a = random_.below(parents.size()), b = random_.below(parents.size());
    return all_[parents[std::min(a, b)]].variant;
  }

  Variant child(const std::vector<size_t>& parents) {
    if (parents.size() < 2 || random_.below(4) != 0) return mutate(pick(parents));
    Variant crossed = cross(space_, pick(parents), pick(parents), random_);
    return guided() ? move_near(space_, band_, std::move(crossed), random_) : crossed;
  }

  // Begins as the trunk does, and goes on like it or like a parent.
  Variant branch(const Variant& trunk, const std::vector<size_t>& parents) {
    const size_t from = shared_blocks(trunk);
    const Variant& other = pick(parents);
    if (random_.below(2) != 0 || other.choices[from] == Variant::kCovered)
      return nearby_mutation(space_, band_, trunk, random_, from);
    Variant crossed = trunk;
    const auto point = static_cast<std::ptrdiff_t>(from);
    std::copy(other.choices.begin() + point, other.choices.end(), crossed.choices.begin() + point);
    return move_near(space_, band_, std::move(crossed), random_, std::nullopt, from);
  }

  // Of a few branches the cheapest, by prices as they might be.
  Variant cheap_branch(const Variant& trunk, const std::vector<size_t>& parents, const PriceModel& model) {
    constexpr int kBranches = 6;  // pricing one takes microseconds, evaluating one tenths of a second
    const Prices prices = model.prices(1, random_);
    Variant best = branch(trunk, parents);
    for (int i = 1; i < kBranches; ++i) {
      Variant other = branch(trunk, parents);
      if (is_fresh(other) && total_price(prices, other) < total_price(prices, best)) best = std::move(other);
    }
    return best;
  }

  // By turns what is likeliest to be best, what might be, and a child.
  Result<Variant> make_trunk(const std::vector<size_t>& parents, const PriceModel& model) {
    const int turn = generation_++ % 3;
    if (turn == 2 && !parents.empty()) {
      Variant made = child(parents);
      if (band_.allows(space_.cost(made))) return made;
    }
    LIMBER_ASSIGN(Priced priced, cheapest(model.prices(turn == 0 ? 0 : 1, random_), nullptr, 0));
    return std::move(priced.variant);
  }

  // Has nothing better been found for long? Then every other group is free to begin as it likes.
  bool is_stuck() {
    constexpr int kPatience = 8;  // generations; with groups of 12 about half of the default evaluations
    idle_generations_ = best_ == best_before_ ? idle_generations_ + 1 : 0;
    best_before_ = best_;
    return idle_generations_ > kPatience && idle_generations_ % 2 == 1;
  }

  // A group that begins alike, but for one, so that the beginning is computed once.
  Status propose_branches(const std::vector<size_t>& parents) {
    const PriceModel model(space_, all_);
    if (is_stuck()) return propose_by_prices(model, room() / 2);
    LIMBER_ASSIGN(const Variant trunk, make_trunk(parents, model));
    propose(trunk);
    LIMBER_TRY(propose_by_prices(model, std::min<size_t>(room(), 1)));
    LIMBER_TRY(propose_by_prices(model, (room() + 1) / 2, &trunk));
    for (int i = 0; i < kTries && room() > 0 && !parents.empty(); ++i)
      propose(cheap_branch(trunk, parents, model));
    return {};
  }

  Status evolve() {
    for (int idle = 0; idle < kTries && !done();) {
      const auto best = parents();
      if (guided() && options_.refine && !all_.empty()) LIMBER_TRY(propose_branches(best));
      for (int i = 0; i < kTries && room() > 0 && !best.empty(); ++i) propose(child(best));
      for (int i = 0; i < kTries && room() > 0; ++i) propose(fresh_start());
      idle = group_.empty() ? idle + 1 : 0;
      LIMBER_TRY(evaluate_group());
    }
    return {};
  }

  double accuracy_of(const Variant& variant) const { return all_[index_.at(variant.choices)].accuracy; }

  bool accepts(double from, double to) {
    constexpr double kHot = 0.02,
                     kCold = 0.0005;  // in accuracy: two points at first, less than an image of 500 at last
    const double share = static_cast<double>(evaluations()) / options_.max_evaluations;
    return to >= from || random_.uniform() < std::exp((to - from) / (kHot * std::pow(kCold / kHot, share)));
  }

  // The next step of a chain that leads to something new. Steps to what is known are taken or not at once.
  std::optional<Variant> step(Variant& at) {
    for (int i = 0; i < kTries; ++i) {
      Variant next = mutate(at);
      if (is_known(next)) {
        if (band_.allows(space_.cost(next)) && accepts(accuracy_of(at), accuracy_of(next)))
          at = std::move(next);
      } else if (propose(next)) {
        return next;
      }
    }
    return std::nullopt;
  }

  Status anneal() {
    std::vector<Variant> chains;
    for (const size_t i : parents()) chains.push_back(all_[i].variant);
    chains.resize(std::min(chains.size(), static_cast<size_t>(options_.group)));
    for (int idle = 0; idle < kTries && !done() && !chains.empty();) {
      std::vector<std::optional<Variant>> next(chains.size());
      size_t first = 0;
      if (guided() && options_.refine) {
        LIMBER_TRY(propose_by_prices(PriceModel(space_, all_), (room() + 1) / 2));
        for (; first < group_.size() && first < chains.size(); ++first) next[first] = group_[first];
      }
      for (size_t c = first; c < chains.size() && room() > 0; ++c) next[c] = step(chains[c]);
      idle = group_.empty() ? idle + 1 : 0;
      LIMBER_TRY(evaluate_group());
      for (size_t c = 0; c < chains.size(); ++c) {
        if (next[c] && accepts(accuracy_of(chains[c]), accuracy_of(*next[c])))
          chains[c] = *std::move(next[c]);
      }
    }
    return {};
  }

  const SearchSpace& space_;
  const EvaluateVariants& evaluate_;
  const SearchOptions& options_;
  const Band band_;
  Random random_;
  std::vector<Scored> all_;  // known before, and evaluated here
  std::map<std::vector<int>, size_t> index_;
  std::optional<size_t> best_;
  std::vector<Variant> group_;
  int generation_ = 0, idle_generations_ = 0;
  std::optional<size_t> best_before_;
  SearchResult result_;
};

}  // namespace

Result<SearchResult> search_variants(const SearchSpace& space, const EvaluateVariants& evaluate,
                                     const SearchOptions& options) {
  LIMBER_ASSIGN(const Band band, make_band(space, options));
  return Searcher(space, evaluate, options, band).run();
}

Result<std::vector<Variant>> price_seeds(const SearchSpace& space, const Band& band, size_t count,
                                         Random& random) {
  // Of the error: nobody knows beforehand how it turns into lost accuracy. The likeliest first.
  constexpr double kExponents[] = {1, 0.5, 2, 0.75};
  std::vector<Variant> seeds;
  for (size_t i = 0; i < 4 * count && seeds.size() < count; ++i) {
    Prices prices = error_prices(space, kExponents[i % std::size(kExponents)]);
    // Further and further from what the errors say, until there is something new; in 1024 steps of latency.
    if (i >= std::size(kExponents)) perturb(prices, 0.1 * static_cast<double>(i), random);
    LIMBER_ASSIGN(Priced priced, cheapest_variant(space, prices, band, 1024));
    if (std::find(seeds.begin(), seeds.end(), priced.variant) == seeds.end())
      seeds.push_back(std::move(priced.variant));
  }
  return seeds;
}

std::vector<Scored> pareto_front(std::vector<Scored> scored) {
  std::stable_sort(scored.begin(), scored.end(), [](const Scored& a, const Scored& b) {
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.accuracy > b.accuracy;
  });
  std::vector<Scored> front;
  for (Scored& one : scored) {
    if (front.empty() || one.accuracy > front.back().accuracy) front.push_back(std::move(one));
  }
  return front;
}

std::vector<Scored> best_per_level(std::span<const Scored> scored, std::span<const double> levels) {
  std::vector<Scored> pool;
  for (const double level : levels) {
    const Scored* best = nullptr;
    for (const Scored& one : scored) {
      if (one.seconds <= level && (best == nullptr || is_better(one, *best))) best = &one;
    }
    const bool there = best != nullptr && std::any_of(pool.begin(), pool.end(), [&](const Scored& one) {
                         return one.variant == best->variant;
                       });
    if (best != nullptr && !there) pool.push_back(*best);
  }
  return pool;
}

}  // namespace limber
