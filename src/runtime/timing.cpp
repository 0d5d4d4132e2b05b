#include "runtime/timing.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "base/median.h"
#include "runtime/session.h"

namespace limber {
namespace {

// Seconds: filling the caches of a core anew takes a few milliseconds at most, a hundredth of this and less.
constexpr double kLongRun = 0.1;

}  // namespace

double quick_time(std::vector<double> rounds) {
  if (rounds.empty()) return 0;
  const auto quarter = rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 4);
  std::nth_element(rounds.begin(), quarter, rounds.end());
  return *quarter;
}

void TurnTimer::add(Session& session) {
  add([&session](std::vector<double>& parts) { return session.run_timed(parts); });
}

Status TurnTimer::warm_up() {
  for (Thing& thing : things_) {
    for (int i = 0; i < options_.warm_up; ++i) LIMBER_TRY(thing.run(scratch_));
  }
  return {};
}

Status TurnTimer::turn(Thing& thing) {
  const bool is_long = !thing.rounds.empty() && thing.rounds.back() > kLongRun;
  if (things_.size() > 1 && !is_long) LIMBER_TRY(thing.run(scratch_));  // the others had the caches meanwhile
  std::vector<double> quickest;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < options_.runs; ++i) {
    scratch_.clear();
    const double start = now_seconds();
    LIMBER_TRY(thing.run(scratch_));
    const double seconds = now_seconds() - start;
    if (seconds >= least) continue;
    least = seconds;
    quickest = scratch_;
  }
  thing.rounds.push_back(least);
  thing.parts.resize(quickest.size());
  for (size_t k = 0; k < quickest.size(); ++k) thing.parts[k].push_back(quickest[k]);
  return {};
}

Status TurnTimer::round() {
  for (Thing& thing : things_) LIMBER_TRY(turn(thing));
  return {};
}

Status TurnTimer::run(const std::atomic<bool>* stop) {
  LIMBER_TRY(warm_up());
  const double enough = static_cast<double>(things_.size()) * options_.seconds;
  double total = 0;
  for (int r = 0; r < options_.max_rounds && (r < options_.min_rounds || total < enough); ++r) {
    for (Thing& thing : things_) {
      if (stop != nullptr && stop->load())
        return error(Code::kResourceExhausted, "stopped while timing {} things", things_.size());
      LIMBER_TRY(turn(thing));
      total += options_.runs * thing.rounds.back();
    }
  }
  return {};
}

// By round: how slow the machine was, 1 in a quick one. Of one thing alone nobody can tell.
std::vector<double> TurnTimer::slowness() const {
  std::vector<double> by_round(rounds(), 1.0);
  if (things_.size() < 2) return by_round;
  for (size_t r = 0; r < by_round.size(); ++r) {
    std::vector<double> ratios;
    for (const Thing& thing : things_) ratios.push_back(thing.rounds[r] / median(thing.rounds));
    by_round[r] = median(std::move(ratios));
  }
  const double quick = quick_time(by_round);
  for (double& slowness : by_round) slowness /= quick;
  return by_round;
}

namespace {

double corrected(std::vector<double> rounds, const std::vector<double>& slowness) {
  for (size_t r = 0; r < rounds.size(); ++r) rounds[r] /= slowness[r];
  return quick_time(std::move(rounds));
}

}  // namespace

double TurnTimer::seconds(size_t thing) const { return corrected(things_[thing].rounds, slowness()); }

std::vector<double> TurnTimer::part_seconds(size_t thing) const {
  const std::vector<double> by_round = slowness();
  std::vector<double> seconds;
  for (const auto& part : things_[thing].parts) seconds.push_back(corrected(part, by_round));
  return seconds;
}

Result<double> time_once(const std::function<Status()>& run) {
  const double start = now_seconds();
  LIMBER_TRY(run());
  return now_seconds() - start;
}

Result<std::vector<double>> time_each(const std::function<Status()>& run, double seconds, size_t least,
                                      size_t most) {
  std::vector<double> times;
  const double stop = now_seconds() + seconds;
  while (times.size() < most && (times.size() < least || now_seconds() < stop)) {
    LIMBER_ASSIGN(const double once, time_once(run));
    times.push_back(once);
  }
  return times;
}

Result<double> time_quick(const std::function<Status()>& run, const TimingOptions& options) {
  TurnTimer timer(options);
  timer.add([&run](std::vector<double>& /*parts*/) { return run(); });
  LIMBER_TRY(timer.run());
  return timer.seconds(0);
}

}  // namespace limber
