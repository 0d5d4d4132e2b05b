#include "serve/loadgen/schedule.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "base/random.h"

namespace limber {
namespace {

bool read_number(std::string_view text, double& to) {
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), to);
  return problem == std::errc() && stop == text.data() + text.size();
}

}  // namespace

Result<std::vector<LoadPhase>> parse_phases(const std::string& text) {
  std::vector<LoadPhase> phases;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = std::string_view(text).substr(at, end - at);
    const size_t colon = part.find(':');
    LoadPhase phase;
    if (colon == std::string_view::npos || !read_number(part.substr(0, colon), phase.rate) ||
        !read_number(part.substr(colon + 1), phase.seconds))
      return invalid("'{}' should be RATE:SECONDS, as in 200:10,0:2,400:5", part);
    phases.push_back(phase);
    at = end + 1;
  }
  LIMBER_TRY(check(phases));
  return phases;
}

Status check(const std::vector<LoadPhase>& phases) {
  if (phases.empty()) return invalid("there are no phases; expected at least one");
  double requests = 0;
  for (const LoadPhase& phase : phases) {
    if (!(phase.rate >= 0 && phase.rate <= 1e6))
      return invalid("a rate is {}; expected 0 to 1e6 requests a second", phase.rate);
    if (!(phase.seconds > 0 && phase.seconds <= 1e6))
      return invalid("a phase takes {} s; expected more than 0, at most 1e6", phase.seconds);
    requests += phase.rate * phase.seconds;
  }
  if (requests < 1) return invalid("that are {} requests; expected at least 1", requests);
  if (requests > 0.99 * static_cast<double>(kMaxRequests))
    return invalid("that are {:.3g} requests; expected at most {}: fewer seconds, or a lower rate", requests,
                   kMaxRequests);
  return {};
}

double total_seconds(const std::vector<LoadPhase>& phases) {
  double seconds = 0;
  for (const LoadPhase& phase : phases) seconds += phase.seconds;
  return seconds;
}

std::vector<double> due_times(const std::vector<LoadPhase>& phases, Arrivals arrivals, uint64_t seed) {
  LIMBER_ASSERT(check(phases).ok());
  Random random(seed);
  std::vector<double> due;
  double start = 0;
  for (const LoadPhase& phase : phases) {
    const double end = start + phase.seconds;
    if (phase.rate > 0 && arrivals == Arrivals::kPoisson) {
      const auto gap = [&] { return -std::log(1 - random.uniform()) / phase.rate; };
      for (double at = start + gap(); at < end && due.size() < kMaxRequests; at += gap()) due.push_back(at);
    } else if (phase.rate > 0) {
      const auto count = static_cast<int64_t>(std::floor(phase.rate * phase.seconds + 1e-9));
      for (int64_t i = 0; i < count; ++i) due.push_back(start + static_cast<double>(i) / phase.rate);
    }
    start = end;
  }
  return due;
}

}  // namespace limber
