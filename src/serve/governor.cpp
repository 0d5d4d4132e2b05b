#include "serve/governor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/show.h"
#include "base/status.h"

namespace limber {
namespace {

// Requests that wait too long for the active variant are saved by quicker ones, so the budget need not be
// kept for all by itself. These shares of them may have to be: when a slower variant is taken, and until it
// is left. Each costs a little accuracy, as a quicker variant for all would; what lies between is hysteresis
// against the noise of a rate that is counted over a second.
constexpr double kSavedToRise = 0.25, kSavedAtMost = 0.5;

// By how much the load of others has to fall to be another situation: a quarter of one of two cores is above
// what it varies by itself.
constexpr double kMuchLess = 0.125;

}  // namespace

// What a situation means for latencies.
struct Governor::Outlook {
  double slowdown = 1, stall_s = 0, rate = 0, size = 1;
  double saved =
      0;  // share of the requests that may wait too long for the variant, and be saved by a quicker one
  bool ahead = false;  // the forecast makes it worse than it is
};

const char* policy_name(Policy policy) {
  switch (policy) {
    case Policy::kFixed:
      return "fixed";
    case Policy::kReactive:
      return "reactive";
    case Policy::kFeedback:
      return "feedback";
    case Policy::kForecast:
      return "forecast";
  }
  return "";
}

Governor::Governor(std::shared_ptr<const ChoiceIndex> index, const GovernorOptions& options)
    : index_(std::move(index)), options_(options), calm_needed_s_(options.calm_s) {
  // A fixed model does not ask for a budget: it is the best there is.
  active_ =
      choose(options_.policy == Policy::kFixed ? std::numeric_limits<double>::infinity() : options_.budget_s,
             Outlook{.saved = kSavedToRise});
  if (active_ < 0) active_ = index_->fastest(options_.limits);
}

void Governor::use(std::shared_ptr<const ChoiceIndex> index, int active, const ChoiceLimits& limits) {
  index_ = std::move(index);
  options_.limits = limits;
  active_ = active;
}

Governor::Outlook Governor::look_ahead(const Situation& s) {
  // A factor of nearly 0 would be a clock that jumped; it must not make every latency fit.
  Outlook outlook{std::max(0.05, s.slowdown.slowdown), s.slowdown.stall_s, s.rate, s.size, kSavedAtMost};
  if (s.slowdown.samples > 0) response_.add(s.load, s.slowdown.slowdown);
  if (options_.policy == Policy::kForecast) {
    const double growth = response_.growth(s.load, s.expected_load);
    outlook.slowdown *= growth;
    outlook.ahead = growth > 1.05;  // less than that is noise of the fit
  }
  return outlook;
}

// Waiting of requests that come at random and take equally long: Sakasegawa's share of those that wait at
// all, and an exponential for how long. What waits longer than the rest is saved by a quicker variant
// (rescue), so the share `saved` is left out of the account: a machine that meets the budget for most
// requests by itself is not too slow for its model.
double Governor::predict(double latency_s, const Outlook& outlook, int workers) {
  const double service = outlook.slowdown * outlook.size * latency_s;
  const double use = outlook.rate * service / workers;  // of the workers, 0..1
  if (use >= 1) return std::numeric_limits<double>::infinity();
  const double waits = std::pow(use, std::sqrt(2.0 * (workers + 1)) - 1);
  const double mean = service / (2 * workers * (1 - use));  // of those that wait
  return service + outlook.stall_s + mean * std::max(0.0, std::log(waits / outlook.saved));
}

double Governor::predict(int variant, const Situation& situation) const {
  const Outlook outlook{situation.slowdown.slowdown, situation.slowdown.stall_s, situation.rate,
                        situation.size, kSavedAtMost};
  return predict(index_->point(variant).latency_s, outlook, options_.workers);
}

// The largest latency of the table that keeps the budget; predict() grows with it.
double Governor::latency_within(double budget_s, const Outlook& outlook) const {
  if (!std::isfinite(budget_s)) return budget_s;
  double low = 0, high = budget_s;
  while (predict(high, outlook, options_.workers) < budget_s) high *= 2;
  for (int i = 0; i < 40; ++i) {  // to a billionth
    const double middle = (low + high) / 2;
    (predict(middle, outlook, options_.workers) <= budget_s ? low : high) = middle;
  }
  return low;
}

int Governor::choose(double budget_s, const Outlook& outlook) const {
  ChoiceLimits limits = options_.limits;
  limits.latency_s = std::min(limits.latency_s, latency_within(budget_s, outlook));
  return index_->best(limits);
}

Decision Governor::decide(const Situation& s) {
  if (options_.policy == Policy::kFixed || active_ < 0) return {.variant = active_};
  if (options_.policy == Policy::kReactive) return react(s);
  const Outlook outlook = look_ahead(s);
  const double active_s = index_->point(active_).latency_s;
  const double predicted = predict(active_s, outlook, options_.workers);
  Decision stay{.variant = active_, .predicted_s = predicted};
  const bool dwells = s.now - changed_at_ < options_.dwell_s;

  if (predicted > options_.budget_s) {
    calm_since_ = std::numeric_limits<double>::infinity();
    int next = choose(options_.budget_s, outlook);
    stay.nothing_fits = next < 0;
    if (next < 0) next = index_->fastest(options_.limits);
    if (dwells || next < 0 || next == active_) return stay;
    if (index_->point(next).latency_s >= active_s) return stay;
    return change_to(next, s, outlook, stay.nothing_fits);
  }

  // What made an earlier return fail may have gone with the load that there was.
  if (s.load < failed_load_ - kMuchLess) calm_needed_s_ = options_.calm_s;
  const int next = slower_that_fits(outlook, s.slowdown.error);
  if (next < 0) {
    calm_since_ = std::numeric_limits<double>::infinity();
    return stay;
  }
  calm_since_ = std::min(calm_since_, s.now);
  if (dwells || s.now - calm_since_ < calm_needed_s_) return stay;
  return change_to(next, s, outlook, false);
}

// -1: none.
int Governor::slower_that_fits(const Outlook& outlook, double error) const {
  Outlook worse = outlook;
  worse.slowdown *= 1 + options_.assurance * error;
  worse.saved = kSavedToRise;
  const int next = choose(options_.budget_s, worse);
  if (next < 0 || index_->point(next).latency_s <= index_->point(active_).latency_s) return -1;
  return calm_needed_s_ > options_.calm_s ? half_way_to(next) : next;
}

// Of those between the active variant and this one, by latency, the best of the lower half; where there is
// none, the first behind it. After a return that failed that is far enough: what is quick may not feel what
// slows the others, as somebody who is done within a time slice never loses one.
int Governor::half_way_to(int variant) const {
  const double active_s = index_->point(active_).latency_s;
  const auto best_within = [&](double seconds) {
    ChoiceLimits limits = options_.limits;
    limits.latency_s = seconds;
    const int best = index_->best(limits);
    return best >= 0 && index_->point(best).latency_s > active_s ? best : -1;
  };
  double high = index_->point(variant).latency_s, low = std::sqrt(active_s * high);
  if (const int half = best_within(low); half >= 0 || low <= 0) return half >= 0 ? half : variant;
  while (high > 1.001 * low) {
    const double middle = std::sqrt(low * high);
    const int best = best_within(middle);
    if (best >= 0) variant = best;
    (best >= 0 ? high : low) = middle;
  }
  return variant;
}

Decision Governor::react(const Situation& s) {
  if (s.now - changed_at_ < 1) return {.variant = active_};  // once a second
  const Outlook outlook{.slowdown = std::max(0.05, s.slowdown.slowdown), .size = s.size, .saved = 1};
  int next = choose(options_.budget_s, outlook);
  const bool nothing_fits = next < 0;
  if (nothing_fits) next = index_->fastest(options_.limits);
  if (next < 0 || next == active_) return {.variant = active_, .nothing_fits = nothing_fits};
  return change_to(next, s, outlook, nothing_fits);
}

Decision Governor::change_to(int variant, const Situation& s, const Outlook& outlook, bool nothing_fits) {
  const bool rises = index_->point(variant).latency_s > index_->point(active_).latency_s;
  // Going back was too early: the next time it takes twice as long; after a quiet minute it is forgotten.
  // Seconds; bounded, so that however often it was wrong, some seconds of quiet lead back.
  constexpr double kTooEarly = 5, kForgiven = 60, kLongest = 12;
  if (!rises && s.now - rose_at_ < kTooEarly) {
    calm_needed_s_ = std::min(kLongest, 2 * calm_needed_s_);
    failed_load_ = s.load;
  }
  if (!rises && s.now - rose_at_ > kForgiven) calm_needed_s_ = options_.calm_s;
  if (rises) rose_at_ = s.now;

  Decision decision{.variant = variant, .changed = true, .nothing_fits = nothing_fits};
  decision.predicted_s = predict(index_->point(variant).latency_s, outlook, options_.workers);
  const int from = std::exchange(active_, variant);
  decision.reason = explain(from, s, outlook, nothing_fits);
  changed_at_ = s.now;
  calm_since_ = std::numeric_limits<double>::infinity();
  return decision;
}

std::string Governor::explain(int from, const Situation& s, const Outlook& outlook, bool nothing_fits) const {
  const double before = predict(index_->point(from).latency_s, outlook, options_.workers);
  const double after = predict(index_->point(active_).latency_s, outlook, options_.workers);
  const auto time = [](double seconds) { return std::isfinite(seconds) ? show_seconds(seconds) : "no end"; };
  std::string text;
  if (index_->point(active_).latency_s > index_->point(from).latency_s) {
    text = fmt::format("expected {} fits into {}", time(after), show_seconds(options_.budget_s));
  } else {
    text = fmt::format("expected {} exceeds {}", time(before), show_seconds(options_.budget_s));
    if (nothing_fits) text += ", and so does all else: the quickest";
  }
  text +=
      fmt::format("; work takes {:.2f} times as long, others use {:.0f} %", outlook.slowdown, 100 * s.load);
  if (outlook.ahead) text += fmt::format(", soon {:.0f} %", 100 * s.expected_load);
  return text;
}

}  // namespace limber
