// Who of several applications may learn, while they are served: asks the schedule, and gives turns.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "jobs/serve_adapt.h"
#include "record/serve_records.h"
#include "sched/turns.h"

namespace limber {

// Decides whenever something is due, begins or ends, and once in a window at least. Any thread may call.
class Conductor {
 public:
  struct Member {
    double importance = 1, minimum_accuracy = 0;
    std::shared_ptr<BackgroundAdapt> adapt;  // null: it does not adapt
  };
  // Told a decision that is another than before; from its thread. Null: nobody listens.
  using Tell = std::function<void(const TurnRecord& turn, double time)>;

  // `server` outlives it. `worker_threads`: that each of the server's workers computes with.
  Conductor(const sched::TurnOptions& options, int worker_threads, ModelServer& server, Tell tell);
  ~Conductor();
  Conductor(const Conductor&) = delete;
  Conductor& operator=(const Conductor&) = delete;

  // By the name of its model; what was there by this name is forgotten.
  void set(const std::string& name, const Member& member);
  // The same, and what its learning has brought is kept.
  void weigh(const std::string& name, double importance, double minimum_accuracy);
  void remove(const std::string& name);
  void use_window(double seconds);
  // Something may be decided otherwise now. Takes no time.
  void wake();

 private:
  struct Known {
    Member member;
    double learnt_at = 0;  // unix_seconds() of the last event of learning that was taken up
    double busy_s = 0, busy_at = 0, busy_cores = 0;  // of its workers, when it was asked last; since then
    std::string told;
  };
  void work();
  void decide(double now);
  sched::Learner learner_of(const std::string& name, Known& known, const ServedModel* model, double now);
  void take_up(const std::string& name, Known& known, const Followed& followed);
  void give(const std::string& name, Known& known, const sched::Turn& turn, const sched::Learner& learner,
            const std::shared_ptr<ServedModel>& model);

  ModelServer& server_;
  const int worker_threads_;
  const Tell tell_;

  std::mutex mutex_;  // of what is decided by; never held by who is waited for here
  double window_s_;
  sched::TurnPlanner planner_;
  std::map<std::string, Known> known_;

  std::mutex wake_mutex_;  // never held while another is taken
  std::condition_variable woken_;
  bool wake_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace limber
