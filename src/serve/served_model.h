// One model that answers requests: queue, workers, warm variants, and the decision which of them is active.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "serve/followed.h"
#include "serve/governor.h"
#include "serve/ready_variant.h"
#include "serve/request.h"
#include "serve/rescue.h"
#include "serve/service.h"
#include "serve/stats.h"
#include "serve/tap.h"

namespace limber {

struct ServeOptions {
  GovernorOptions governor;  // budget, policy, dwell; `workers` is taken from below
  ChoiceWeights weights;
  ReadyOptions ready;
  // Requests that may wait; more are refused. Some seconds' work of a model of 10 ms: who waits longer is
  // gone.
  size_t queue_limit = 256;
  // Variants that stay compiled: steps of latency fine enough to choose from, each with memory for all
  // workers.
  size_t warm_limit = 8;
  // Where no least accuracy is given: variants below this share of the best one's accuracy are left out. In
  // time and wrong is worth less than late; what counts as wrong is the user's to say, three quarters is a
  // guess.
  double least_share = 0.75;
  // When this becomes true, getting ready ends with what is ready. Null: never.
  const std::atomic<bool>* stop = nullptr;
};

// What happens around the model, as its owner senses it.
struct Surroundings {
  double now = 0;
  double load = 0, expected_load = 0;
};

// Any thread may call anything. Requests are served in the order they came, each by the active variant, or by
// a quicker warm one when its time would not suffice; several at once where that pays.
//
// Switching puts another pointer beside the queue: a request that has begun ends as it began, the next one
// takes the new variant, nobody waits. Variants are compiled by a thread of low priority.
class ServedModel {
 public:
  // Makes variants ready, the best first: on return it answers. Takes seconds. Variants that do not keep the
  // limits are left out; kInvalidArgument when none is left. A fixed policy serves the original.
  static Result<std::unique_ptr<ServedModel>> start(ServedSource source,
                                                    std::vector<std::shared_ptr<Backend>> backends,
                                                    const ServeOptions& options);
  // Answers what waits, then ends.
  ~ServedModel();
  ServedModel(const ServedModel&) = delete;
  ServedModel& operator=(const ServedModel&) = delete;

  // As InferenceService::infer.
  void infer(InferRequest request, InferDone done);
  ModelMetadata metadata() const;
  const ServedSource& source() const { return source_; }
  const std::string& version() const { return source_.version; }
  const std::string& note() const { return source_.note; }

  // Decides anew. Called some twenty times a second by one thread.
  void tick(const Surroundings& around);
  // Makes this variant active whatever the governor thinks, until it decides otherwise; for tests of
  // switching. kNotFound when it is not one of those that are warm.
  Status force(const std::string& variant);
  // Variants that a search found since. Those there are keep their measured times. When they were judged by
  // other images than before, only they are chosen from: accuracies of different images do not compare.
  Status use_variants(std::vector<ServedVariant> variants, const std::string& judged_by);
  // From some time on the original is this network, until it is given another; null: as it came. The thread
  // of low priority makes it ready as it does with variants, what is given last counts, and each request is
  // answered by one network or the other. Variants that a search found stay as they are: nobody knows how
  // good they would be with what was learnt. kInvalidArgument when it takes or gives something else than the
  // model, kNotFound where the limits leave the original out.
  Status use_net(std::shared_ptr<const ServedNet> net);
  // Gets what is asked from here on; null: nobody does. REQUIRES: rows of input 0, which is f32
  void use_tap(std::shared_ptr<RequestTap> tap);
  // For status and metrics. Null: nobody follows the model's world.
  void tell_followed(std::shared_ptr<const Followed> followed);
  std::shared_ptr<const Followed> followed() const;
  // The same of its turns to learn. Null: nobody schedules them.
  void tell_scheduled(std::shared_ptr<const Scheduled> scheduled);
  std::shared_ptr<const Scheduled> scheduled() const;
  // Called from tick() when no variant keeps the budget, with the share of the original's latency that would.
  void on_nothing_fits(std::function<void(double share)> call);

  struct View {
    std::string active;
    std::string net;  // that answers in the place of the original; empty: as it came
    double estimated_s = 0, accuracy = 0, budget_s = 0, slowdown = 1;
    double least_accuracy = 0;  // of what may be chosen
    size_t queue = 0, queue_limit = 0, warm_bytes = 0;
    struct Entry {
      std::string name;
      ChoicePoint point;
      bool warm = false, active = false;
    };
    std::vector<Entry> pool;
    std::string problem;  // why a variant that was wanted is not served; empty: none
    Policy policy = Policy::kFixed;
  };
  View view() const;
  size_t waiting() const { return waits_.load(std::memory_order_relaxed); }  // requests; takes no lock
  const ServeStats& stats() const { return *stats_; }
  // For who wants to know what it did when it is gone.
  std::shared_ptr<const ServeStats> kept_stats() const { return stats_; }

 private:
  // What workers choose from; never changes once it is made.
  struct WarmSet {
    std::vector<std::shared_ptr<const ReadyVariant>> variants;  // the quickest first
    std::shared_ptr<const ReadyVariant> active;
  };
  // What a worker took: requests of one row each, or one of several.
  struct Work {
    std::vector<Ticket> tickets;
    std::shared_ptr<const ReadyVariant> with;
    std::shared_ptr<RequestTap> tap;
    bool rescued = false;
    double began = 0, run_s = 0, estimated_s = 0;  // of its runs together
  };

  ServedModel(ServedSource source, ServedSignature signature, std::vector<std::shared_ptr<Backend>> backends,
              const ServeOptions& options, const ChoiceLimits& limits, WeightSnapshot weights);
  Status warm_up();
  void start_threads();
  void work(int worker);
  std::optional<Work> take(std::vector<Ticket>& late);
  size_t rows_at_once(const ReadyVariant& with, const Ticket& first, double now) const;
  void drop_late(double now, std::vector<Ticket>& late);
  double time_left(const Ticket& ticket, double now) const;
  std::shared_ptr<const ReadyVariant> variant_for_head(double now, bool& rescued) const;
  void serve(int worker, Work work);
  void compute_several(int worker, Work& work, std::vector<InferResponse>& responses);
  Status compute_one(int worker, Work& work, InferResponse& response);
  Status run_lane(Lane& lane, int64_t batch, Work& work);
  void show_rows(const Work& work, const Lane& lane, int64_t at, int64_t count) const;
  void finish(Work& work, std::vector<InferResponse>& responses);
  InferResponse refusal_of(const InferRequest& request, ServeStatus status) const;

  // All of these hold control_mutex_ already.
  int original_number() const;
  Result<std::shared_ptr<const ReadyVariant>> prepare(int number) const;
  Result<std::shared_ptr<const ReadyVariant>> make_ready(const ServedVariant& variant, int number,
                                                         const ServedNet* net) const;
  std::shared_ptr<const WarmSet> warm() const;
  static std::shared_ptr<const ReadyVariant> find(const WarmSet& set, int number);
  void publish(std::vector<std::shared_ptr<const ReadyVariant>> variants,
               std::shared_ptr<const ReadyVariant> active);
  void keep_warm(const std::shared_ptr<const ReadyVariant>& made);
  void switch_to(const std::shared_ptr<const ReadyVariant>& to, const std::string& reason, double asked_at);
  void activate(const Decision& decision, double now);
  std::shared_ptr<const ChoiceIndex> make_index() const;
  double slowest_s() const;
  void make_governor();
  std::vector<int> warm_up_order() const;

  void deploy();
  void change_net(std::unique_lock<std::mutex>& control);

  const ServedSource source_;
  const ServedSignature signature_;
  const std::optional<Preprocessor> preprocessor_;
  const std::vector<std::shared_ptr<Backend>> backends_;
  const ServeOptions options_;
  const WeightSnapshot weights_;

  const std::shared_ptr<ServeStats> stats_ = std::make_shared<ServeStats>();
  SlowdownMeter meter_;

  mutable std::mutex mutex_;  // of the queue, the warm set and what follows
  std::condition_variable waiting_;
  std::deque<Ticket> queue_;
  std::atomic<size_t> waits_ = 0;  // its size, for who must not hold the mutex
  std::shared_ptr<const WarmSet> warm_;
  std::shared_ptr<RequestTap> tap_;
  bool stopping_ = false;
  Slowdown slowdown_;      // as of the last tick
  double overhead_s_ = 0;  // of a request beside waiting and computing: decoding, copying; a running mean
  double size_ = 1;        // of a request, in rows computed one by one; a running mean

  mutable std::mutex control_mutex_;  // of what decides; taken before mutex_
  ChoiceLimits limits_;               // those that were asked for, and the least accuracy
  std::vector<ServedVariant> variants_;
  std::string judged_by_;
  std::string problem_;
  std::map<int, int> used_at_;  // variant -> when it was active last, as a count of switches
  std::unique_ptr<Governor> governor_;
  int switches_ = 0;
  double switched_at_ = -std::numeric_limits<double>::infinity();
  std::function<void(double)> on_nothing_fits_;

  std::condition_variable deploying_;  // something is to be made ready, or it is all over
  std::optional<Decision> to_deploy_;
  std::shared_ptr<const ServedNet> net_, net_to_use_;  // null: as it came; nothing is to be done
  double asked_at_ = 0;
  bool over_ = false;

  mutable std::mutex followed_mutex_;  // never held for longer than a pointer takes
  std::shared_ptr<const Followed> followed_;
  std::shared_ptr<const Scheduled> scheduled_;

  std::vector<std::thread> threads_;
};

}  // namespace limber
