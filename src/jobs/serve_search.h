// A search for a quicker variant while a model is served, with time that nobody else wants (AN8).
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "jobs/serve_job.h"
#include "jobs/served_folder.h"

namespace limber {

// Waits until a model says that no variant keeps its budget; then searches for one that does, and hands the
// server what it found. Its thread runs only when a core is idle.
class BackgroundSearch {
 public:
  // All outlive it.
  BackgroundSearch(const ServeJobOptions& job, const ServedFolder& folder, ModelServer& server,
                   const JobControl& control);
  ~BackgroundSearch();  // stops a search that is under way; what it found so far is kept in the folder
  BackgroundSearch(const BackgroundSearch&) = delete;
  BackgroundSearch& operator=(const BackgroundSearch&) = delete;

 private:
  struct Wish {
    std::string model;
    double share = 0;  // of the original's latency
  };
  void listen();
  void ask(const std::string& model, double share);
  void work();
  Status search(const Wish& wish);

  const ServeJobOptions& job_;
  const ServedFolder& folder_;
  ModelServer& server_;
  const JobControl& control_;

  std::mutex mutex_;
  std::condition_variable asked_;
  std::vector<Wish> wishes_;                // one of each model at most
  std::map<std::string, double> searched_;  // model -> the least share that was searched for
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace limber
