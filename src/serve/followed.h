// What a model has learnt of its world while it serves, as whoever follows that world for it tells.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace limber {

struct FollowedEvent {
  double time = 0;     // unix_seconds()
  std::string kind;    // "domain", "adapted", "rejected" ...: as adapt::follow_name() has it
  int64_t domain = 0;  // 0: like the source
  std::string reason;
  std::optional<double> estimate;  // of the accuracy of what answers afterwards
  double seconds = 0;              // that it took
};

// What was known when some images had been looked at.
struct FollowedPoint {
  double time = 0;  // unix_seconds()
  int64_t domain = 0;
  std::optional<double> estimate, original;  // of the accuracy of what answers, and of the model as it came
};

struct Followed {
  static constexpr size_t kEvents = 50;   // that are remembered, the latest
  static constexpr size_t kPoints = 240;  // the same: more than a chart on a phone has room for

  std::string method;                     // "bn"
  std::string state;                      // "following", or what comes before, or why it does not
  std::string net;                        // what answers in the place of the original; empty: as it came
  int64_t domain = 0;                     // 0: like the source
  std::optional<double> estimate;         // of the accuracy of what answers, lately
  std::optional<double> source_accuracy;  // of the model as it came, on the images that say what is normal
  uint64_t seen = 0;                      // images
  uint64_t bad = 0;                       // of them that nothing can be learnt from
  uint64_t passed = 0;                    // that nobody looked at
  uint64_t domains = 0, adapted = 0, rejected = 0, rolled_back = 0, returned = 0, failed = 0;  // events
  double cpu_seconds = 0;             // of a core, that all of it took
  double learning_cpu_s = 0;          // of a core, that learning took last; 0: it has not learnt
  std::vector<FollowedEvent> events;  // the latest last
  std::vector<FollowedPoint> points;
};

// Whether a model may learn now, of several that share what learning may take of the machine.
struct Scheduled {
  double importance = 1, minimum_accuracy = 0;
  bool learns = false;
  std::string why;                       // or why not
  double cores = 0;                      // that it may learn with, now
  std::optional<double> start_s, end_s;  // of its learning, from when it was decided
  std::optional<double> before, after;   // accuracy that is expected: as it is, and when it has learnt
};

}  // namespace limber
