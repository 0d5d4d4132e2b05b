// When requests are due: fixed before the first one is sent, whatever the server does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace limber {

// What a run may have in memory, at some 50 bytes each.
inline constexpr int64_t kMaxRequests = 50'000'000;

struct LoadPhase {
  double rate = 0;  // requests a second; 0: a pause
  double seconds = 0;
};

enum class Arrivals : uint8_t {
  kPoisson,   // as many strangers at once send them: bursts and gaps by chance
  kConstant,  // evenly spaced
};

// "200:10,0:2,400:5": 200 a second for 10 s, a pause of 2 s, 400 a second for 5 s.
Result<std::vector<LoadPhase>> parse_phases(const std::string& text);

Status check(const std::vector<LoadPhase>& phases);
double total_seconds(const std::vector<LoadPhase>& phases);

// Seconds after the start, ascending; the same for the same seed. Phases follow each other without a gap.
// REQUIRES: check(phases) is ok
std::vector<double> due_times(const std::vector<LoadPhase>& phases, Arrivals arrivals, uint64_t seed);

}  // namespace limber
