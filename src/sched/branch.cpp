#include "sched/branch.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace limber::sched {
namespace {

constexpr double kNoBetter = 1e-12;  // differences that are rounding

class Search {
 public:
  Search(const Problem& problem, const Priced& priced, int64_t steps)
      : problem_(problem), priced_(priced), steps_(steps), best_{priced.plan, priced.value, true} {
    const size_t count = problem.candidates.size();
    chosen_.resize(count);
    most_.resize(count + 1);
    least_load_.resize(count + 1);
    for (size_t i = count; i-- > 0;) {
      const auto& worths = priced.worths[i];
      most_[i] = most_[i + 1] + *std::max_element(worths.begin(), worths.end());
      double least = std::numeric_limits<double>::infinity();
      for (const Candidate& candidate : problem.candidates[i]) least = std::min(least, candidate.load);
      least_load_[i] = least_load_[i + 1] + least;
      by_worth_.emplace_back(worths.size());
      std::iota(by_worth_.back().begin(), by_worth_.back().end(), size_t{0});
      std::stable_sort(by_worth_.back().begin(), by_worth_.back().end(),
                       [&](size_t a, size_t b) { return worths[a] > worths[b]; });
    }
    std::reverse(by_worth_.begin(), by_worth_.end());
  }

  Branched run() {
    choose(0, priced_.income, 0, 0);
    return std::move(best_);
  }

 private:
  using Threads = std::array<double, kMaxThreads>;

  bool out_of_steps() {
    if (--steps_ >= 0) return false;
    best_.whole = false;
    return true;
  }

  // `worth`: at prices, of all before `i`.
  void choose(size_t i, double worth, double base, double load) {
    if (i == chosen_.size()) return put_in_order(base, load);
    for (const size_t c : by_worth_[i]) {
      const double here = worth + priced_.worths[i][c];
      if (here + most_[i + 1] <= best_.value + kNoBetter) return;
      const Candidate& candidate = problem_.candidates[i][c];
      if (load + candidate.load + least_load_[i + 1] > 1) continue;
      if (out_of_steps()) return;
      chosen_[i] = c;
      choose(i + 1, here, base + candidate.base, load + candidate.load);
    }
  }

  const Candidate& candidate(size_t i) const { return problem_.candidates[i][chosen_[i]]; }

  void put_in_order(double base, double load) {
    if (load > 1) return;
    left_ = 1 - load;
    rest_.clear();
    order_.clear();
    for (size_t i = 0; i < chosen_.size(); ++i)
      if (candidate(i).choice.threads > 0) rest_.push_back(i);
    continue_order(base, Threads{});
  }

  double end_of(const Candidate& candidate, const Threads& free) const {
    return free[static_cast<size_t>(candidate.choice.threads) - 1] + candidate.duration / left_;
  }

  void continue_order(double value, const Threads& free) {
    if (value > best_.value + kNoBetter) take(value);
    double most = value;
    for (const size_t i : rest_) most += candidate(i).gain * std::max(0.0, 1 - end_of(candidate(i), free));
    if (most <= best_.value + kNoBetter) return;
    for (size_t at = 0; at < rest_.size(); ++at) {
      const size_t i = rest_[at];
      const double end = end_of(candidate(i), free);
      if (!(end <= 1)) continue;
      if (out_of_steps()) return;
      Threads next = free;
      occupy(std::span(next).first(static_cast<size_t>(problem_.threads)),
             static_cast<size_t>(candidate(i).choice.threads), end);
      rest_.erase(rest_.begin() + static_cast<std::ptrdiff_t>(at));
      order_.push_back(i);
      continue_order(value + candidate(i).gain * (1 - end), next);
      order_.pop_back();
      rest_.insert(rest_.begin() + static_cast<std::ptrdiff_t>(at), i);
    }
  }

  // The others come last, where none of them has time left, or all are better.
  void take(double value) {
    best_.value = value;
    best_.plan = {chosen_, order_};
    for (size_t i = 0; i < chosen_.size(); ++i)
      if (std::find(order_.begin(), order_.end(), i) == order_.end()) best_.plan.order.push_back(i);
  }

  const Problem& problem_;
  const Priced& priced_;
  int64_t steps_;
  Branched best_;
  std::vector<double> most_, least_load_;  // of applications from each on
  std::vector<std::vector<size_t>> by_worth_;
  std::vector<size_t> chosen_, rest_, order_;
  double left_ = 1;
};

}  // namespace

Branched branch(const Problem& problem, const Priced& priced, int64_t steps) {
  return Search(problem, priced, steps).run();
}

}  // namespace limber::sched
