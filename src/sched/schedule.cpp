#include "sched/schedule.h"

#include <algorithm>

namespace limber::sched {
namespace {

// Mean over the window of what `of` makes of accuracies.
template <typename Of>
double over_window(const Option& option, const Decision& decision, double window_s, Of of) {
  if (decision.threads == 0) return of(option.before);
  const double until = decision.end_s / window_s;
  return until * of(option.before) + (1 - until) * of(option.after);
}

void add_up(std::span<const Application> applications, const Window& window, Schedule& schedule) {
  std::vector<double> values, accuracies;
  for (size_t i = 0; i < applications.size(); ++i) {
    const Decision& decision = schedule.decisions[i];
    const Option& option = applications[i].options[decision.option];
    values.push_back(over_window(option, decision, window.seconds,
                                 [&](double accuracy) { return worth(applications[i], accuracy); }));
    accuracies.push_back(
        over_window(option, decision, window.seconds, [](double accuracy) { return accuracy; }));
  }
  schedule.value = weighted_mean(applications, values);
  schedule.accuracy = weighted_mean(applications, accuracies);
}

}  // namespace

double Schedule::optimum_share() const {
  if (exact || bound <= value) return 1;
  return bound > 0 ? std::max(0.0, value / bound) : 0;
}

double load_of(std::span<const Application> applications, std::span<const Choice> choices) {
  double load = 0;
  for (size_t i = 0; i < applications.size(); ++i) load += applications[i].options[choices[i].option].load;
  return load;
}

Schedule lay_out(std::span<const Application> applications, const Window& window,
                 std::span<const Choice> choices, std::span<const size_t> order) {
  Schedule schedule;
  schedule.load = load_of(applications, choices);
  const double left = std::max(0.0, 1 - schedule.load);
  for (const Choice& choice : choices) schedule.decisions.push_back({choice.option, 0, 0, 0});
  std::vector<double> free(static_cast<size_t>(window.threads), 0.0);  // when each thread is, ascending
  for (const size_t i : order) {
    const Choice& choice = choices[i];
    if (choice.threads == 0 || left == 0) continue;
    const auto threads = static_cast<size_t>(choice.threads);
    const double seconds = applications[i].options[choice.option].seconds[threads - 1];
    const double start = free[threads - 1], end = start + seconds / left;
    if (end > window.seconds) continue;
    schedule.decisions[i] = {choice.option, choice.threads, start, end};
    std::fill_n(free.begin(), threads, end);
    std::sort(free.begin(), free.end());
  }
  add_up(applications, window, schedule);
  return schedule;
}

double weighted_mean(std::span<const Application> applications, std::span<const double> of) {
  double sum = 0, weights = 0;
  for (size_t i = 0; i < applications.size(); ++i) {
    sum += applications[i].importance * of[i];
    weights += applications[i].importance;
  }
  return sum / weights;
}

std::vector<size_t> retraining_order(const Schedule& schedule) {
  std::vector<size_t> order;
  for (size_t i = 0; i < schedule.decisions.size(); ++i)
    if (schedule.decisions[i].threads > 0) order.push_back(i);
  const auto before = [&](size_t a, size_t b) {
    const Decision &x = schedule.decisions[a], &y = schedule.decisions[b];
    return x.start_s != y.start_s ? x.start_s < y.start_s : x.end_s < y.end_s;
  };
  std::stable_sort(order.begin(), order.end(), before);
  return order;
}

}  // namespace limber::sched
