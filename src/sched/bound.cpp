#include "sched/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace limber::sched {
namespace {

constexpr size_t kMoments = 24;
constexpr double kLeastExcess = 1e-9;

// Applications that choose alone may together ask for more than answering can have: some then take what is
// lightest.
void make_possible(const Problem& problem, Plan& plan) {
  const auto lighter = [](const Candidate& a, const Candidate& b) { return a.load < b.load; };
  double load = 0;
  for (size_t i = 0; i < plan.chosen.size(); ++i) load += problem.candidates[i][plan.chosen[i]].load;
  for (size_t i = 0; i < plan.chosen.size() && load > 1; ++i) {
    const auto& candidates = problem.candidates[i];
    const auto least = std::min_element(candidates.begin(), candidates.end(), lighter);
    load += least->load - candidates[plan.chosen[i]].load;
    plan.chosen[i] = static_cast<size_t>(least - candidates.begin());
  }
}

Plan plan_of(const Problem& problem, const std::vector<size_t>& chosen,
             const std::vector<Prices::Offer>& offers) {
  Plan plan{chosen, std::vector<size_t>(chosen.size())};
  std::iota(plan.order.begin(), plan.order.end(), size_t{0});
  std::stable_sort(plan.order.begin(), plan.order.end(),
                   [&](size_t a, size_t b) { return offers[a].end < offers[b].end; });
  make_possible(problem, plan);
  return plan;
}

}  // namespace

Prices::Prices(const Problem& problem) : problem_(problem), prices_(kMoments, 0.0) {
  for (size_t k = 1; k <= kMoments; ++k) moments_.push_back(std::pow(static_cast<double>(k) / kMoments, 1.5));
  add_up();
}

void Prices::add_up() {
  sums_.assign(kMoments + 1, 0.0);
  moment_sums_ = sums_;
  for (size_t k = kMoments; k-- > 0;) {
    sums_[k] = sums_[k + 1] + prices_[k];
    moment_sums_[k] = moment_sums_[k + 1] + prices_[k] * moments_[k];
  }
  income_ = moment_sums_[0];
}

Prices::Use Prices::use_of(const Candidate& candidate) const {
  const double share = candidate.choice.threads / static_cast<double>(problem_.threads);
  return {share * candidate.duration, share * (1 - problem_.min_load)};
}

// By a moment before `end` at least that is used which is too much for the time from then to the end.
double Prices::cost(const Use& use, double end) const {
  const auto at = [&](double time) {
    return static_cast<size_t>(std::lower_bound(moments_.begin(), moments_.end(), time) - moments_.begin());
  };
  const size_t last = at(end), first = at(end - use.work / use.rate);
  return use.work * sums_[last] + (use.work - use.rate * end) * (sums_[first] - sums_[last]) +
         use.rate * (moment_sums_[first] - moment_sums_[last]);
}

Prices::Offer Prices::offer(const Candidate& candidate) const {
  const double rest = candidate.base - candidate.load * income_;
  if (candidate.choice.threads == 0) return {rest, 0};
  const Use use = use_of(candidate);
  const double least = use.work / use.rate;
  Offer best{-std::numeric_limits<double>::infinity(), 0};
  const auto consider = [&](double end) {
    if (end < least || end > 1) return;
    const double worth = rest + candidate.gain * (1 - end) - cost(use, end);
    if (worth > best.worth) best = {worth, end};
  };
  // Linear in between.
  consider(least);
  for (const double moment : moments_) {
    consider(moment);
    consider(moment + least);
  }
  return best;
}

void Prices::follow(const std::vector<size_t>& chosen, const std::vector<Offer>& offers, double excess,
                    double step) {
  std::vector<double> over(kMoments);
  for (size_t k = 0; k < kMoments; ++k) over[k] = -moments_[k];
  for (size_t i = 0; i < chosen.size(); ++i) {
    const Candidate& candidate = problem_.candidates[i][chosen[i]];
    const Use use = use_of(candidate);
    for (size_t k = 0; k < kMoments; ++k)
      over[k] += candidate.load * moments_[k] +
                 std::clamp(use.work - use.rate * (offers[i].end - moments_[k]), 0.0, use.work);
  }
  double square = 0;
  for (size_t k = 0; k < kMoments; ++k)
    if (over[k] > 0 || prices_[k] > 0) square += over[k] * over[k];
  if (square == 0) return;
  for (size_t k = 0; k < kMoments; ++k)
    prices_[k] = std::max(0.0, prices_[k] + step * excess / square * over[k]);
  add_up();
}

Priced find_prices(const Problem& problem, int rounds) {
  Prices prices(problem);
  Evaluator evaluator(problem);
  Priced best;
  best.bound = std::numeric_limits<double>::infinity();
  best.value = -std::numeric_limits<double>::infinity();
  const size_t count = problem.candidates.size();
  double step = 1;
  for (int round = 0, idle = 0; round < rounds; ++round) {
    std::vector<size_t> chosen(count);
    std::vector<Prices::Offer> offers(count);
    std::vector<std::vector<double>> worths(count);
    double bound = prices.income();
    for (size_t i = 0; i < count; ++i) {
      offers[i].worth = -std::numeric_limits<double>::infinity();
      for (size_t c = 0; c < problem.candidates[i].size(); ++c) {
        const Prices::Offer offer = prices.offer(problem.candidates[i][c]);
        worths[i].push_back(offer.worth);
        if (offer.worth <= offers[i].worth) continue;
        offers[i] = offer;
        chosen[i] = c;
      }
      bound += offers[i].worth;
    }
    Plan plan = plan_of(problem, chosen, offers);
    if (const double value = evaluator.value(plan); value > best.value) {
      best.value = value;
      best.plan = std::move(plan);
    }
    if (bound < best.bound) {
      best.bound = bound;
      best.worths = std::move(worths);
      best.income = prices.income();
      idle = 0;
    } else if (++idle == 5) {
      step /= 2;
      idle = 0;
    }
    if (best.bound - best.value < kLeastExcess) break;
    prices.follow(chosen, offers, bound - best.value, step);
  }
  return best;
}

}  // namespace limber::sched
