#include "sched/problem.h"

#include <algorithm>
#include <limits>

namespace limber::sched {
namespace {

bool no_worse(const Candidate& a, const Candidate& b) {
  return a.load <= b.load && a.base >= b.base && a.base + a.gain >= b.base + b.gain &&
         a.duration <= b.duration && a.choice.threads <= b.choice.threads;
}

void add(std::vector<Candidate>& to, const Candidate& candidate) {
  const auto makes_needless = [&](const Candidate& other) { return no_worse(other, candidate); };
  if (std::any_of(to.begin(), to.end(), makes_needless)) return;
  std::erase_if(to, [&](const Candidate& other) { return no_worse(candidate, other); });
  to.push_back(candidate);
}

// `share`: of the application in all importance.
std::vector<Candidate> candidates_of(const Application& application, const Window& window, double share) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < application.options.size(); ++i) {
    const Option& option = application.options[i];
    if (!keeps_latency(application, option)) continue;
    const double base = share * worth(application, option.before);
    const double gain = share * worth(application, option.after) - base;
    add(candidates, {{i, 0}, base, 0, 0, option.load});
    if (gain <= 0) continue;
    const size_t most = std::min(option.seconds.size(), static_cast<size_t>(window.threads));
    for (size_t threads = 1; threads <= most; ++threads)
      add(candidates, {{i, static_cast<int>(threads)},
                       base,
                       gain,
                       option.seconds[threads - 1] / window.seconds,
                       option.load});
  }
  return candidates;
}

}  // namespace

Result<Problem> make_problem(std::span<const Application> applications, const Window& window) {
  Problem problem;
  problem.threads = window.threads;
  double importance = 0;
  for (const Application& application : applications) importance += application.importance;
  for (const Application& application : applications) {
    auto candidates = candidates_of(application, window, application.importance / importance);
    const auto lighter = [](const Candidate& a, const Candidate& b) { return a.load < b.load; };
    problem.min_load += std::min_element(candidates.begin(), candidates.end(), lighter)->load;
    problem.candidates.push_back(std::move(candidates));
  }
  if (problem.min_load > 1)
    return error(Code::kResourceExhausted,
                 "answering alone takes {:.2f} times the machine, with the lightest option of each "
                 "application; have fewer of them, or smaller options",
                 problem.min_load);
  for (auto& candidates : problem.candidates)
    std::erase_if(candidates, [&](const Candidate& candidate) {
      return candidate.choice.threads > 0 && candidate.duration > 1 - problem.min_load;
    });
  return problem;
}

void occupy(std::span<double> free, size_t threads, double end) {
  size_t at = 0;
  for (size_t i = threads; i < free.size() && free[i] < end; ++i) free[at++] = free[i];
  std::fill_n(free.begin() + static_cast<std::ptrdiff_t>(at), threads, end);
}

double Evaluator::value(const Plan& plan) {
  double load = 0, value = 0;
  for (size_t i = 0; i < plan.chosen.size(); ++i) {
    const Candidate& candidate = problem_.candidates[i][plan.chosen[i]];
    load += candidate.load;
    value += candidate.base;
  }
  if (load > 1) return -std::numeric_limits<double>::infinity();
  const double left = 1 - load;
  std::fill(free_.begin(), free_.end(), 0.0);
  for (const size_t i : plan.order) {
    const Candidate& candidate = problem_.candidates[i][plan.chosen[i]];
    if (candidate.choice.threads == 0) continue;
    const auto threads = static_cast<size_t>(candidate.choice.threads);
    const double end = free_[threads - 1] + candidate.duration / left;
    if (!(end <= 1)) continue;
    value += candidate.gain * (1 - end);
    occupy(free_, threads, end);
  }
  return value;
}

}  // namespace limber::sched
