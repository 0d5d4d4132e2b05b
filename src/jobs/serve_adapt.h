// Following the world of a model while it is served, with time that nobody else wants.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "jobs/followed_model.h"
#include "jobs/serve_job.h"

namespace limber {

// A thread that runs when a core would be idle (see ServeAdaptOptions), for no more than its share of the
// cores, and not while requests wait. Where the model is loaded anew, it begins anew.
class BackgroundAdapt {
 public:
  // Refuses what cannot be followed. `server` has loaded the model; it, `job` and `control` outlive this.
  // `tell` is called from the thread.
  static Result<std::unique_ptr<BackgroundAdapt>> start(
      const ServeJobOptions& job, std::shared_ptr<const Dataset> source, ModelServer& server,
      const JobControl& control, std::function<void(const FollowedRecord& event, double time)> tell);
  ~BackgroundAdapt();  // what answers goes on
  BackgroundAdapt(const BackgroundAdapt&) = delete;
  BackgroundAdapt& operator=(const BackgroundAdapt&) = delete;

 private:
  // What was used beyond the share has to be waited for.
  class CoreShare {
   public:
    explicit CoreShare(double cores) : cores_(cores) {}
    double cores() const { return cores_; }
    // `used`: seconds of cores, since ever.
    void count(double used, double now);
    double rest_s() const { return debt_ / cores_; }

   private:
    double cores_, debt_ = 0, used_ = 0, now_ = 0;
  };

  BackgroundAdapt(const ServeJobOptions& job, std::shared_ptr<const Dataset> source, ModelServer& server,
                  const JobControl& control,
                  std::function<void(const FollowedRecord& event, double time)> tell);
  std::shared_ptr<ServedModel> model() const;
  Result<std::unique_ptr<FollowedModel>> follow(const std::shared_ptr<ServedModel>& model);
  void work();
  Status run(std::unique_ptr<FollowedModel>& followed, const std::shared_ptr<ServedModel>& model,
             bool& studied);
  bool go_on();
  bool rest(double seconds);

  ModelServer& server_;
  const JobControl& control_;
  const std::shared_ptr<const Dataset> source_;
  FollowedModelSettings settings_;
  CoreShare share_;  // of the thread alone

  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::unique_ptr<FollowedModel> first_;  // until the thread has it
  std::thread thread_;
};

}  // namespace limber
