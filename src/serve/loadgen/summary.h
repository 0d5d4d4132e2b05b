// What a run under load says: percentiles, counts, and what happened in each second.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "serve/loadgen/client.h"

namespace limber {

// Of exact values; all 0 of none.
struct LatencySummary {
  int64_t count = 0;
  double mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, p999 = 0, max = 0;
};
LatencySummary summarize(std::vector<double> seconds);

// Requests that were due in one second of the run. Malformed ones are left out.
struct LoadSecond {
  int64_t requests = 0, good = 0, missed = 0, right = 0, judged = 0;
  double mean = 0, p50 = 0, p90 = 0, max = 0;  // latency of good answers
  int variant = -1;                            // that answered most; -1: none named one
};

struct LoadSummary {
  int64_t requests = 0;  // that were well-formed
  int64_t good = 0;      // answered with 200
  int64_t refused = 0;   // answered with anything else
  int64_t lost = 0;      // sent, no answer
  int64_t unsent = 0;    // no connection was free in time
  int64_t late = 0;      // good, but after the deadline
  int64_t missed = 0;    // no good answer within the deadline, for whatever reason
  int64_t judged = 0;    // good answers of which the right class is known
  int64_t right = 0;
  double throughput = 0;            // good answers a second
  LatencySummary latency;           // good answers, from when they were due
  LatencySummary lag;               // from when they were due until they were sent
  std::map<int, int64_t> statuses;  // well-formed requests; lost and unsent are not among them
  std::vector<int64_t> variants;    // good answers, as LoadLog::variants
  int64_t switches = 0;             // good answers of another variant than the one before
  int64_t malformed = 0;            // broken requests that were sent
  int64_t malformed_refused = 0;    // of these: got a 4xx
  std::vector<LoadSecond> seconds;

  double missed_share() const;
  std::optional<double> accuracy() const;  // nothing: no right class is known
};

// `deadline` as in the plan; 0: nothing is late, and only requests without a good answer are missed.
LoadSummary summarize(const LoadLog& log, double deadline);

}  // namespace limber
