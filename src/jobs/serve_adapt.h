// Following the world of a model while it is served, with time that nobody else wants.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "jobs/followed_model.h"
#include "serve/model_server.h"

namespace limber {

// What all models that adapt may use of the cores, together: what was used beyond has to be waited for. Any
// thread.
class CoreShare {
 public:
  explicit CoreShare(double cores) : cores_(cores) {}
  double cores() const { return cores_; }
  // So many more seconds of a core were used until `now`; returns how long to rest.
  double use(double seconds, double now);

  // Who looks at images shares it with as many.
  void join();
  void leave();
  int users() const;

 private:
  const double cores_;
  mutable std::mutex mutex_;
  double debt_ = 0, now_ = 0;
  int users_ = 0;
};

struct BackgroundAdaptOptions {
  std::string model;  // its name in the server
  ServeAdaptOptions adapt;
  EngineOptions engine;
  std::shared_ptr<const Dataset> source;
  std::shared_ptr<CoreShare> share;
  // Called from the thread; null: nobody listens.
  std::function<void(const FollowedRecord& event, double time)> tell;
  bool by_turns = false;          // it learns when it was given a turn; false: when it is due
  std::function<void()> changed;  // something of wish(); as tell
};

// A thread that runs when a core would be idle (see ServeAdaptOptions), for no more than the share of the
// cores, and not while requests of any model wait. Where its model is loaded anew, it begins anew.
class BackgroundAdapt {
 public:
  // Refuses what cannot be followed; a model that is not loaded yet is followed once it is. `server` and
  // `control` outlive this.
  static Result<std::unique_ptr<BackgroundAdapt>> start(const BackgroundAdaptOptions& options,
                                                        ModelServer& server, const JobControl& control);
  ~BackgroundAdapt();  // what answers goes on
  BackgroundAdapt(const BackgroundAdapt&) = delete;
  BackgroundAdapt& operator=(const BackgroundAdapt&) = delete;

  // From here on it does nothing; returns when its last step has ended. Called by its owner.
  void stop();

  // What a schedule of turns goes by. Any thread may ask, and give.
  struct Wish {
    bool adapts = true;  // false: it failed, and waits for another model
    bool due = false, learning = false;
    double learning_s = 0;  // of a core, that it takes to learn; 0: nobody knows
    double learnt_s = 0;    // of these that are done, while it learns
  };
  Wish wish() const;
  // While it has none, it looks at images; learning that has begun waits.
  void give_turn(bool turn);

 private:
  BackgroundAdapt(const BackgroundAdaptOptions& options, ModelServer& server, const JobControl& control);
  std::shared_ptr<ServedModel> model() const;
  bool somebody_waits() const;
  Result<std::unique_ptr<FollowedModel>> follow(const std::shared_ptr<ServedModel>& model);
  void work();
  Status run(std::unique_ptr<FollowedModel>& followed, const std::shared_ptr<ServedModel>& model,
             bool& studied);
  bool go_on();
  bool rest(double seconds);
  bool wait_for_turn();
  bool may_learn() const;
  void count_learning(double seconds);
  void wish_for(const Wish& wish);

  ModelServer& server_;
  const JobControl& control_;
  const BackgroundAdaptOptions options_;
  FollowedModelSettings settings_;
  double used_ = 0;  // seconds of the thread that were counted; of the thread alone

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false, turn_ = false;
  Wish wish_;
  std::unique_ptr<FollowedModel> first_;  // until the thread has it
  std::thread thread_;
};

}  // namespace limber
