#include "sched/optimise.h"

#include <algorithm>

#include "base/random.h"
#include "sched/branch.h"

namespace limber::sched {
namespace {

constexpr int kPriceRounds = 120;  // of prices

// Changes of a candidate, of a place, or of both.
void mutate(const Problem& problem, Random& random, Plan& plan) {
  const size_t at = random.below(plan.order.size()), who = plan.order[at];
  const uint64_t kind = random.below(4);
  if (kind != 0) plan.chosen[who] = random.below(problem.candidates[who].size());
  if (kind == 1) return;
  plan.order.erase(plan.order.begin() + static_cast<std::ptrdiff_t>(at));
  const size_t to = random.below(plan.order.size() + 1);
  plan.order.insert(plan.order.begin() + static_cast<std::ptrdiff_t>(to), who);
}

// Those that gain most by machine time come first.
void order_by_gain(const Problem& problem, Plan& plan) {
  const auto rate = [&](size_t i) {
    const Candidate& candidate = problem.candidates[i][plan.chosen[i]];
    return candidate.choice.threads == 0 ? 0
                                         : candidate.gain / (candidate.choice.threads * candidate.duration);
  };
  std::stable_sort(plan.order.begin(), plan.order.end(),
                   [&](size_t a, size_t b) { return rate(a) > rate(b); });
}

void evolve(const Problem& problem, const OptimiseOptions& options, Plan& plan, double& value) {
  Evaluator evaluator(problem);
  Random random(options.seed);
  const auto try_out = [&](Plan&& next) {
    const double now = evaluator.value(next);
    if (!(now >= value)) return;
    value = now;
    plan = std::move(next);
  };
  Plan by_gain = plan;
  order_by_gain(problem, by_gain);
  try_out(std::move(by_gain));
  for (int64_t i = 0; i < options.tries; ++i) {
    Plan next = plan;
    mutate(problem, random, next);
    if (random.below(3) == 0) mutate(problem, random, next);
    try_out(std::move(next));
  }
}

}  // namespace

Result<Schedule> optimise(std::span<const Application> applications, const Window& window,
                          const OptimiseOptions& options) {
  LIMBER_TRY(check(applications, window));
  LIMBER_ASSIGN(const Problem problem, make_problem(applications, window));
  Priced priced = find_prices(problem, kPriceRounds);
  const bool small = applications.size() <= options.exact_up_to;
  bool exact = false;
  if (small) {
    Branched branched = branch(problem, priced, options.steps);
    exact = branched.whole;
    priced.plan = std::move(branched.plan);
    priced.value = branched.value;
  }
  if (!exact) evolve(problem, options, priced.plan, priced.value);
  std::vector<Choice> choices;
  for (size_t i = 0; i < applications.size(); ++i)
    choices.push_back(problem.candidates[i][priced.plan.chosen[i]].choice);
  Schedule schedule = lay_out(applications, window, choices, priced.plan.order);
  schedule.exact = exact;
  schedule.bound = exact ? schedule.value : std::max(priced.bound, schedule.value);
  return schedule;
}

}  // namespace limber::sched
