// What a served model has done: counts for ever, latencies of the last two minutes.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "serve/service.h"

namespace limber {

// One second of a model's life.
struct ServedSecond {
  double time = 0;                     // unix_seconds() at its end
  std::optional<double> p50_s, p95_s;  // of requests that ended in it
  double rate = 0;                     // requests that came, per second
  double load = 0, forecast = 0;
  std::string variant;
};

// A change of the active variant.
struct SwitchEvent {
  double time = 0;  // unix_seconds()
  std::string from, to, reason;
};

// All times in seconds. Any thread may use it.
class ServeStats {
 public:
  // Upper ends of the histogram's buckets; one more takes the rest. From a tiny network on a fast core to a
  // large one on a slow board.
  static constexpr std::array kBuckets = {0.00025, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075,
                                          0.01,    0.015,  0.02,  0.03,  0.05,  0.075, 0.1,
                                          0.15,    0.25,   0.5,   1.0,   2.5,   10.0};
  static constexpr size_t kHistory = 120;  // seconds, which the live page draws
  static constexpr size_t kSwitches = 50;  // that are remembered with their reasons

  struct Done {
    double latency_s = 0, queue_s = 0, compute_s = 0;
    int64_t rows = 1;
    bool late = false;     // took longer than the budget or its own deadline
    bool rescued = false;  // by a quicker variant than the active one
    double busy_s = 0;     // of a worker, for this request alone
  };
  void arrived(double now);
  void done(const Done& request);
  void refused(Refusal why);
  void switched(SwitchEvent event, double seconds);

  // Ends a second when one is over. `variant` is what is active.
  void tick(double now, double unix_now, double load, double forecast, const std::string& variant);
  // Requests per second that came lately.
  double rate() const;

  struct Totals {
    uint64_t requests = 0, answered = 0, late = 0, rescued = 0, rows = 0, switches = 0;
    std::array<uint64_t, 8> refused{};  // by Refusal
    std::array<uint64_t, kBuckets.size() + 1> latency{};
    double latency_sum_s = 0, queue_sum_s = 0, compute_sum_s = 0, switch_sum_s = 0, busy_sum_s = 0;
    uint64_t all_refused() const;
    Totals& operator+=(const Totals& other);
  };
  Totals totals() const;

  struct Window {  // of the last ten seconds
    std::optional<double> p50_s, p95_s, p99_s;
    double rate = 0, miss_share = 0;
  };
  Window window() const;
  std::vector<ServedSecond> history() const;
  std::vector<SwitchEvent> switches() const;

 private:
  // Latencies of one second; a sample of them where there are very many.
  struct Second {
    std::vector<float> latencies;
    uint64_t answered = 0, seen = 0, late = 0, arrived = 0;  // seen: answered, or too late for that
    double length_s = 1;
  };
  static constexpr size_t kSample = 2000;  // per second: a p99 has twenty above it
  static constexpr size_t kWindow = 10;    // seconds that "lately" means: of Window

  mutable std::mutex mutex_;
  Totals totals_;
  Second current_;
  double began_ = 0;  // the current second; 0: not yet
  double rate_ = 0;
  uint64_t random_ = 1;
  std::deque<Second> recent_;
  std::deque<ServedSecond> history_;
  std::deque<SwitchEvent> switches_;
};

}  // namespace limber
