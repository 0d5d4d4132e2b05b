// A model that follows its world: looks at what it is asked, notices when that changes, learns from it by some
// strategy, and lets what was learnt answer only when the guard finds it no worse.
//
//   see()    images ──> as it came ──> drift ──┬─> 4 of 5 wait to be learnt from
//                  └──> what answers           └─> 1 of 5 is kept to judge by
//   learn()  what waits ──> strategy ──> candidate ──> guard ──> answers, or is forgotten
//
// Images that cannot be what they should be (no numbers, all of one colour, pure noise) are counted and left
// out of both.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "adapt/guard.h"
#include "adapt/source_study.h"
#include "adapt/strategy.h"

namespace limber::adapt {

// What answers requests: a network and weights for it. Never changes once it is made.
struct Net {
  Graph graph;  // as loaded: open batch, normalisations are nodes
  WeightSnapshot weights;
  std::string name;       // for people: "as it came", "bn after 1200 frames"
  int64_t domain = 0;     // that it was learnt in
  bool original = false;  // the model as it came
};

enum class FollowKind : uint8_t {
  kAlarm,       // things look different; which domain it is will be known when it has settled
  kDomain,      // settled: this domain
  kAdapted,     // what was learnt answers from here on
  kRejected,    // the guard refused what was learnt; what answered before goes on
  kRolledBack,  // what answered was found to be worse than the model as it came, which answers again
  kReturned,    // what was accepted in this domain before answers again; of the source: the model as it came
  kFailed,      // the strategy could not learn
};
const char* follow_name(FollowKind kind);  // "alarm"

struct FollowEvent {
  FollowKind kind = FollowKind::kAlarm;
  int64_t frame = 0;   // frames seen before
  int64_t since = 0;   // kAlarm: since when things look different, as far as can be told
  int64_t domain = 0;  // by DriftDetector::domain()
  std::string reason;  // in words, with the numbers that decided; kAlarm: the feature that gave it away
  double estimate = 0;  // of the accuracy of what answers afterwards, where frames show it; else 0
  double seconds = 0;   // that it took
};

struct FollowerOptions {
  int64_t window = 100;  // frames between two times of learning
  bool guarded = true;   // false: whatever was learnt answers
  size_t remembered = 8;  // domains whose accepted networks are kept, beside the source
  int64_t batch = 50;     // images that run at once
  GuardOptions guard;
};

// What see() found out about some images, one by one.
struct Look {
  std::vector<std::vector<float>> original;  // logits of the model as it came
  std::vector<std::vector<float>> answers;   // of net(), as it was when they came
  AccuracyEstimate estimate;                 // of the model as it came, on these images
  double accuracy = 0;                       // estimated, of net()
};

struct FollowCounts {
  int64_t frames = 0;
  FrameFaults faults;  // frames that were left out
  int64_t adapted = 0, rejected = 0, rolled_back = 0, returned = 0, failed = 0;
  double seeing_s = 0, detecting_s = 0, learning_s = 0, judging_s = 0;
};

// What a run needs to go on with after a break; what frames were waiting is not part of it.
struct FollowerState;

// Memory: networks of at most `remembered` domains and of the source, and images of about two windows. Use
// from one thread; net() and domain() from any.
class Follower {
 public:
  // `model` is what the strategy was made for, with the weights that it changes.
  static Result<std::unique_ptr<Follower>> create(const AdaptedModel& model,
                                                  std::unique_ptr<Strategy> strategy, SourceStudy source,
                                                  const FollowerOptions& options = {});
  ~Follower();

  // Images that were asked, in order, f32[n,C,H,W] as the model wants them. Takes about as long as answering
  // them twice. kInvalidArgument for other images.
  Result<Look> see(const Tensor& images);
  // Enough was seen to learn from.
  bool due() const;
  // Learns from what was seen, judges it, and changes net() when it is good. Takes long; a failure of the
  // strategy is an event, not an error. Does nothing unless due().
  Status learn();

  std::shared_ptr<const Net> net() const;
  int64_t domain() const;
  // Those since the last call.
  std::vector<FollowEvent> take_events();
  const FollowCounts& counts() const;
  const DriftDetector& detector() const;
  const Strategy& strategy() const;

 private:
  struct Impl;
  explicit Follower(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace limber::adapt
