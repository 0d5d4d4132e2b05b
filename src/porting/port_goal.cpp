#include "porting/port_goal.h"

#include <algorithm>
#include <cmath>

#include "porting/loss_weights.h"

namespace limber {
namespace {

constexpr int kTimings = 4;        // of one goal for this machine, each with a tighter limit
constexpr double kTighter = 0.97;  // than what the last timing asks for: the next one differs a little
constexpr size_t kLatency = static_cast<size_t>(Constraint::kLatency);

std::string out_of_reach(const Goal& goal, size_t constraint, double limit, double nearest) {
  const auto which = static_cast<Constraint>(constraint);
  return fmt::format("{}.targets.{}: {} is out of reach; the least is {}", goal.path, constraint_name(which),
                     show_figure(which, limit), show_figure(which, nearest));
}

// The first limit that not even the smallest model keeps; empty: each can be reached, at least alone.
Result<std::string> check_reach(Executor& executor, const Goal& goal) {
  LIMBER_ASSIGN(const PortCost least, executor.least(goal.device));
  const Figures limits = limits_of(goal), figures = figures_of(least, goal.device);
  for (size_t i = 0; i < kConstraints; ++i) {
    Figures one = {};
    one[i] = figures[i];
    if (!keeps(one, limits)) return out_of_reach(goal, i, limits[i], figures[i]);
  }
  return std::string();
}

double excess_of(const Figures& figures, const Figures& limits) {
  double excess = 0;
  for (size_t i = 0; i < kConstraints; ++i) excess = std::max(excess, figures[i] / limits[i] - 1);
  return excess;
}

class Way {
 public:
  Way(Executor& executor, const Goal& goal, const PortGoalOptions& options)
      : executor_(executor), goal_(goal), options_(options), limits_(limits_of(goal)) {}

  Result<PortedGoal> go(const Ported& parent) {
    LIMBER_ASSIGN(out_.refused, check_reach(executor_, goal_));
    if (!out_.refused.empty()) return std::move(out_);
    LIMBER_TRY(executor_.init(goal_, parent));
    LIMBER_ASSIGN(start_, figures());
    out_.way = std::log1p(excess_of(start_, limits_));
    LIMBER_TRY(shrink());
    if (goal_.device.here && goal_.targets.latency && out_.refused.empty()) LIMBER_TRY(keep_time());
    if (!out_.refused.empty()) return std::move(out_);
    LIMBER_ASSIGN(out_.ported, executor_.finish());
    return std::move(out_);
  }

 private:
  Result<Figures> figures() {
    LIMBER_ASSIGN(const PortCost cost, executor_.measure());
    return figures_of(cost, goal_.device);
  }

  // Until all limits are kept.
  Status shrink() {
    LIMBER_ASSIGN(Figures now, figures());
    for (Figures weights; !all_zero(weights = loss_weights(start_, now, limits_));) {
      if (out_.steps++ == options_.max_steps) return refuse(now, "no step leads nearer");
      const Status step = executor_.adjust(limits_, weights);
      if (step.code() == Code::kInvalidArgument) return refuse(now, step.message());
      LIMBER_TRY(step);
      LIMBER_ASSIGN(now, figures());
      if (options_.progress) options_.progress(excess_of(now, limits_), out_.steps);
    }
    return {};
  }

  // Predictions for this machine are checked on it: what is too slow goes on shrinking.
  Status keep_time() {
    const double asked = *goal_.targets.latency;
    for (int i = 0; i < kTimings; ++i) {
      LIMBER_ASSIGN(const Model model, executor_.model());
      LIMBER_ASSIGN(out_.measured_s, options_.time_here(model));
      if (out_.measured_s <= asked) return {};
      LIMBER_ASSIGN(const Figures now, figures());
      limits_[kLatency] = kTighter * now[kLatency] * asked / out_.measured_s;
      LIMBER_TRY(shrink());
      if (!out_.refused.empty()) break;
    }
    out_.refused = out_of_reach(goal_, kLatency, asked, out_.measured_s) + " (measured)";
    return {};
  }

  // Each limit can be reached alone, and not all together.
  Status refuse(const Figures& now, const std::string& why) {
    size_t worst = 0;
    for (size_t i = 1; i < kConstraints; ++i) {
      if (now[i] / limits_[i] > now[worst] / limits_[worst]) worst = i;
    }
    out_.refused =
        out_of_reach(goal_, worst, limits_[worst], now[worst]) + " with the other targets (" + why + ")";
    return {};
  }

  Executor& executor_;
  const Goal& goal_;
  const PortGoalOptions& options_;
  Figures limits_, start_ = {};
  PortedGoal out_;
};

}  // namespace

Result<PortedGoal> port_goal(Executor& executor, const Goal& goal, const Ported& parent,
                             const PortGoalOptions& options) {
  return Way(executor, goal, options).go(parent);
}

}  // namespace limber
