#include "sched/expectations.h"

#include <algorithm>

#include "base/assert.h"

namespace limber::sched {
namespace {

constexpr double kNear = 0.25;        // distance at which a domain counts a quarter of what the same one does
constexpr double kGuess = 0.25;       // the guess counts as that much of the same domain
constexpr double kOtherOption = 0.4;  // another option's error, by that of the same
constexpr double kNewer = 0.5;        // an older observation of a domain by the next newer one

double weight_of(double distance) {
  const double closeness = 1 / (1 + std::max(0.0, distance) / kNear);
  return closeness * closeness;
}

}  // namespace

double Expectations::correction(size_t option, const Distance& distance,
                                std::optional<double> Error::*of) const {
  double sum = 0, weights = kGuess;
  for (size_t other = 0; other < errors_.size(); ++other) {
    std::vector<int64_t> seen;
    for (auto error = errors_[other].rbegin(); error != errors_[other].rend(); ++error) {
      if (!((*error).*of)) continue;
      double weight = weight_of(distance(error->domain)) * (other == option ? 1 : kOtherOption);
      for (const int64_t domain : seen)
        if (domain == error->domain) weight *= kNewer;
      seen.push_back(error->domain);
      if (weight < 1e-4) continue;
      sum += weight * *((*error).*of);
      weights += weight;
    }
  }
  return sum / weights;
}

Expected Expectations::expect(size_t option, const Expected& guess, const Distance& distance) const {
  LIMBER_ASSERT(option < errors_.size());
  const double before = guess.before + correction(option, distance, &Error::before);
  const double after = guess.after + correction(option, distance, &Error::after);
  return {std::clamp(before, 0.0, 1.0), std::clamp(after, 0.0, 1.0)};
}

void Expectations::happened(int64_t domain, size_t option, const Expected& guess,
                            std::optional<double> before, std::optional<double> after) {
  LIMBER_ASSERT(option < errors_.size());
  Error error{domain, {}, {}};
  if (before) error.before = *before - guess.before;
  if (after) error.after = *after - guess.after;
  errors_[option].push_back(error);
  if (errors_[option].size() > kRemembered) errors_[option].erase(errors_[option].begin());
}

}  // namespace limber::sched
