// A model that follows its world: looks at what it is asked, notices when that changes, learns from it by
// some strategy, and lets what was learnt answer only when the guard finds it no worse.
//
//   see()    images ──> as it came ──> drift ──┬─> 4 of 5 wait to be learnt from
//                  └──> what answers           └─> 1 of 5 is kept to judge by
//   learn()  what waits ──> strategy ──> candidate ──> guard ──> answers, or is forgotten
//
// Images that cannot be what they should be (no numbers, all of one colour, pure noise) are counted and left
// out of both.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapt/answerer.h"
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
  double operations = 1;  // of the model's, as a share
};

enum class FollowKind : uint8_t {
  kAlarm,       // things look different; which domain it is will be known when it has settled
  kDomain,      // settled: this domain
  kAdapted,     // what was learnt answers from here on
  kRejected,    // the guard refused what was learnt; what answered before goes on
  kRolledBack,  // what answered was found to be worse than the model as it came, which answers again
  kReturned,    // what was accepted in this domain before answers again; of the source: the model as it came
  kFailed,      // the strategy could not learn
  kReset,       // what was written into the master made it forget the source: it is as it came again
};
const char* follow_name(FollowKind kind);  // "alarm"

struct FollowEvent {
  FollowKind kind = FollowKind::kAlarm;
  int64_t frame = 0;    // frames seen before
  int64_t since = 0;    // kAlarm: since when things look different, as far as can be told
  int64_t domain = 0;   // by DriftDetector::domain()
  std::string reason;   // in words, with the numbers that decided; kAlarm: the feature that gave it away
  double estimate = 0;  // of the accuracy of what answers afterwards, where frames show it; else 0
  double seconds = 0;   // that it took
};

struct FollowerOptions {
  int64_t window = 100;  // frames between two times of learning
  bool guarded = true;   // false: whatever was learnt answers
  // begin() says when a domain begins, and which; the detector does not run. Of each visit the first `window`
  // frames are learnt from, once, and nothing after them: for comparing strategies.
  bool borders_known = false;
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
  FrameFaults faults;     // frames that were left out
  int64_t by_learnt = 0;  // that something else answered than the model as it came
  double operations = 0;  // sum of Net::operations over these
  // What answering takes, but for the first time that a network does.
  struct Time {
    int64_t frames = 0;
    double seconds = 0;
    double each() const { return frames > 0 ? seconds / static_cast<double>(frames) : 0; }
  };
  Time learnt, original;
  int64_t adapted = 0, rejected = 0, rolled_back = 0, returned = 0, failed = 0;
  double answering_s = 0, detecting_s = 0, learning_s = 0, judging_s = 0;
};

// What following needs to go on after a break as if there had been none. Networks that a strategy cut itself
// are no part of it: until the next one the model as it came answers.
struct FollowerState {
  // Tensors of weights that are not those of the source, by what they are for; the detector.
  std::map<std::string, Tensor> tensors;
  std::string text;  // the rest, as one line of JSON
};
// Images of frames that were seen before, by their numbers from 0, in this order.
using FrameLoader = std::function<Result<Tensor>(std::span<const int64_t> frames)>;

// Memory: networks of at most `remembered` domains and of the source, and images of about two windows. Use
// from one thread; net() and domain() from any.
class Follower {
 public:
  // `model` is what the strategy was made for, with the weights that it changes.
  // `as_it_came`: the model's weights, where the strategy has changed them already to what it learnt before.
  static Result<std::unique_ptr<Follower>> create(
      const AdaptedModel& model, std::unique_ptr<Strategy> strategy, SourceStudy source,
      const FollowerOptions& options = {}, const std::optional<WeightSnapshot>& as_it_came = std::nullopt);

  // A visit to a domain begins with the next frame: 0 is the source, and a number that came before a domain
  // that was met before. The model as it came answers until the visit's first window was learnt from; a
  // strategy that remembers nothing starts from it, too. REQUIRES: FollowerOptions::borders_known
  Status begin(int64_t domain);
  // Images that were asked, in order, f32[n,C,H,W] as the model wants them. Takes about as long as answering
  // them twice. Those that `stand_ins` marks (by image; empty: none) stand where a frame cannot be read: they
  // are answered and counted, and nothing is made of them. kInvalidArgument for other images.
  Result<Look> see(const Tensor& images, const std::vector<bool>& stand_ins = {});
  // Enough was seen to learn from.
  bool due() const;
  // Learns from what was seen, judges it, and changes net() when it is good. Takes long; a failure of the
  // strategy is an event, not an error. Does nothing unless due().
  Status learn();

  // Between two calls of see() or learn().
  Result<FollowerState> state() const;
  // For a follower that was made in the same way and has seen nothing. kCorrupt for what no such one gave; it
  // is of no use then.
  Status restore(const FollowerState& state, const FrameLoader& load);

  std::shared_ptr<const Net> net() const;
  int64_t domain() const;
  // Those since the last call.
  std::vector<FollowEvent> take_events();
  const FollowCounts& counts() const { return counts_; }
  const DriftDetector& detector() const { return source_.detector; }
  const AccuracyEstimator& estimator() const { return source_.estimator; }
  const Strategy& strategy() const { return *strategy_; }

 private:
  struct Numbers;  // of a state
  // A network, ready to answer, with how it does on the source.
  struct Runner {
    std::shared_ptr<const Net> net;
    std::unique_ptr<Answerer> answerer;
    Footing footing;
    bool has_answered = false;
  };
  // A frame that candidates are judged by.
  struct RecentFrame {
    std::vector<float> pixels, original;  // logits of the model as it came
    Frame frame;
    int64_t number = 0;
    bool kept = false;  // nothing learns from it
  };
  enum class LearntFrom : uint8_t { kNothing, kAllButKept };  // of the recent frames
  struct WatchedFrame {
    std::vector<float> original, answers;  // logits
    Frame frame;
  };

  Follower(const AdaptedModel& model, std::unique_ptr<Strategy> strategy, SourceStudy source,
           const FollowerOptions& options, WeightSnapshot as_it_came, WeightSnapshot now);
  Status start();
  bool remodels() const { return strategy_->remodelled() != nullptr; }
  static Result<Logits> answer_by(Runner& runner, const Tensor& images, FollowCounts::Time& time);
  Result<Look> answer(const Tensor& images);
  Status take_in(std::span<const float> pixels, const Frame& frame, const std::vector<float>& logits);
  Status detect(const Frame& frame);
  void start_over();
  bool learning_is_over() const;
  void forget_waiting();
  void keep(std::span<const float> pixels, const Frame& frame, const std::vector<float>& logits);
  Status begin_anew(const DriftAlarm& alarm);
  Status enter_domain();
  Status go_back_to_what_was_known(int64_t domain);
  Status watch(const Look& look, std::span<const Frame> frames, const std::vector<bool>& stand_ins);
  double gain_of(const Look& look) const;
  Result<Runner> candidate(std::string name);
  Status settle_on(Runner learnt);
  Status accept(Runner learnt, const std::string& reason);
  Status judge_master();
  Status reject(const std::string& reason);
  Status take_back();
  Result<Runner> runner_of(std::shared_ptr<const Net> net);
  Result<Footing> footing_on_source(const Net& net, const Answerer& over);
  AccuracyEstimate estimate_original(std::span<const Frame> frames, const Logits& logits) const;
  Result<std::optional<Trial>> try_on_recent(const Runner& runner, LearntFrom learnt_from);
  void answer_with(Runner runner);
  void answer_as_it_came();
  void remember(const std::shared_ptr<const Net>& net);
  Status set_weights(const WeightSnapshot& weights);
  Status go_on_from(const WeightSnapshot& weights);
  Status save_nets(FollowerState& state) const;
  Status restore_nets(const FollowerState& state, const Numbers& numbers);
  Status restore_remodelled(const Numbers& numbers);
  Status restore_watched(const FollowerState& state);
  Status restore_frames(const std::vector<int64_t>& waiting, const std::vector<int64_t>& recent,
                        const std::vector<int64_t>& kept, const FrameLoader& load);
  Frame describe(std::span<const float> pixels, const std::vector<float>& logits) const;
  Tensor images_of(std::span<const float> pixels) const;
  FollowEvent& tell(FollowKind kind, std::string reason);

  AdaptedModel model_;
  std::unique_ptr<Strategy> strategy_;
  SourceStudy source_;
  FollowerOptions options_;
  Guard guard_;
  WeightSnapshot source_weights_;
  WeightSnapshot last_weights_, begun_weights_;  // that the strategy goes on from, and began this visit from
  Runner original_, answering_;                  // the second is empty while the model as it came answers

  std::vector<float> waiting_;  // pixels to learn from
  std::deque<int64_t> waiting_numbers_;
  std::deque<RecentFrame> recent_;
  std::deque<WatchedFrame> watched_;
  std::vector<std::shared_ptr<const Net>> accepted_;  // by domain; the last used first
  std::vector<FollowEvent> events_;
  FollowCounts counts_;
  int64_t collected_ = 0;  // frames since the last alarm or begin(), but for faulty ones
  int64_t begun_at_ = 0;   // frames that were seen before the last begin()
  bool learnt_ = false;    // since the last alarm
  bool settling_ = false;
  size_t image_size_ = 1;  // numbers an image

  mutable std::mutex mutex_;
  std::shared_ptr<const Net> net_;  // of these two anybody may ask
  int64_t domain_ = 0;
};

}  // namespace limber::adapt
