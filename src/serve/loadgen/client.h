// Puts a server under load and writes down what became of every request.
//
// Open loop: requests are due at times fixed beforehand, and latency counts from then; a server that stalls
// does not slow down those who ask. A request that finds every connection busy waits, and its waiting counts.
// Closed loop: so many callers that each ask again as soon as they were answered.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "serve/loadgen/request.h"
#include "serve/loadgen/schedule.h"

namespace limber {

struct LoadPlan {
  std::vector<double> due;    // open loop: seconds after the start, ascending
  int closed = 0;             // closed loop where above 0: so many callers, for so many
  double seconds = 0;         // of the closed loop
  int connections = 64;       // open loop: at most so many at once, kept alive
  double deadline = 0;        // seconds after a request is due; 0: none
  bool send_deadline = true;  // what is left of it goes with each request as its timeout
  double give_up = 10;        // seconds after which an answer is not waited for any more
  double malformed = 0;       // share of requests that are broken on purpose
  uint64_t seed = 0;          // which these are
};
Status check(const LoadPlan& plan);

// Times are seconds after the start.
struct LoadRecord {
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  double due = 0;
  double sent = kNever;  // kNever: no connection got free in time
  double done = kNever;  // kNever: no answer came
  int32_t row = 0;
  int32_t predicted = -1;  // class; -1: unknown
  int16_t status = 0;      // of HTTP; 0: no answer
  int16_t variant = -1;    // index into LoadLog::variants; -1: the answer names none
  bool malformed = false;

  double latency() const { return done - due; }
  bool good() const { return status == 200 && !malformed; }
};

// Why requests got no good answer, by what happened: "status 429", "timed out".
struct LoadProblem {
  int64_t count = 0;
  std::string example;  // what the server said the first time; empty: nothing
};

struct LoadLog {
  std::vector<LoadRecord> records;  // in the order they were due
  std::vector<std::string> variants;
  std::vector<int64_t> labels;  // by row
  std::map<std::string, LoadProblem> problems;
  std::map<std::string, int64_t> malformed;  // kinds that were sent and got no 4xx
  double started_unix = 0;                   // when time 0 was
  double seconds = 0;                        // until the last answer
  int64_t connections = 0;                   // that were opened in all
  bool stopped = false;                      // before its end
};

struct LoadProgress {
  double seconds = 0, share = 0;
  int64_t sent = 0, answered = 0, refused = 0, lost = 0;
  double latency = 0;  // mean of good answers since the last report
};
using LoadWatcher = std::function<void(const LoadProgress&)>;

// Uses this thread alone. `stop` true: nothing more is sent. kIo when the server cannot be reached at all.
Result<LoadLog> run_load(const LoadTarget& target, const RequestWriter& writer, const LoadPlan& plan,
                         const LoadWatcher& watcher = {}, const std::atomic<bool>* stop = nullptr);

}  // namespace limber
