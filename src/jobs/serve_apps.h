// Several applications in one process: models as a file names them, served, scheduled, and changed with it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "jobs/apps_file.h"
#include "jobs/conductor.h"
#include "jobs/serve_job.h"
#include "jobs/served_folder.h"

namespace limber {

// The models of applications, by their names. Any thread.
class AppModels final : public ModelRepository {
 public:
  explicit AppModels(const ServeJobOptions& job);

  void set(const ServedApp& app);  // instead of what is there by this name
  void remove(const std::string& name);

  std::vector<std::string> names() const override;
  Result<ServedSource> open(const std::string& name) const override;
  std::vector<std::shared_ptr<Backend>> backends() const override { return backends_; }
  ServeOptions serving(const std::string& name, const ServeOptions& usual) const override;

 private:
  const EngineOptions engine_;
  const bool energy_;
  const std::vector<std::shared_ptr<Backend>> backends_;
  mutable std::mutex mutex_;
  std::map<std::string, ServedApp> apps_;
};

// What becomes of applications beside their requests. Use from one thread.
class RunningApps {
 public:
  struct Tell {  // called from any thread; null: nobody listens
    std::function<void(const FollowedRecord& event, double time)> followed;
    Conductor::Tell turn;
  };
  // The server has loaded of `apps` what could be loaded. All outlive it.
  RunningApps(const ServeJobOptions& job, const ServedApps& apps, AppModels& models, ModelServer& server,
              Tell tell, const JobControl& control);
  ~RunningApps();
  RunningApps(const RunningApps&) = delete;
  RunningApps& operator=(const RunningApps&) = delete;

  // Called some times a second: does what the file says where it has changed, or where that was asked for. A
  // file that is wrong changes nothing, and is said to be. Takes as long as loading what is new.
  void look();

 private:
  struct Running {
    ServedApp app;
    std::shared_ptr<BackgroundAdapt> adapt;  // null: it does not adapt
  };
  void apply(const ServedApps& apps);
  void serve(const ServedApp& app);
  void begin(const ServedApp& app);
  void end(const std::string& name);
  Result<std::shared_ptr<BackgroundAdapt>> start_adapting(const ServedApp& app);

  const ServeJobOptions& job_;
  AppModels& models_;
  ModelServer& server_;
  const Tell tell_;
  const JobControl& control_;
  const std::shared_ptr<CoreShare> share_;
  std::string stamp_;     // of the file, when it was read last
  int asked_ = 0;         // how often reading was asked for, by then
  double looked_at_ = 0;  // for the stamp
  std::map<std::string, Running> running_;
  Conductor conductor_;  // ends first
};

}  // namespace limber
