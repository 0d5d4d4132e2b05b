// Serving models over HTTP and gRPC, within a budget of latency.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "jobs/elastic_work.h"
#include "jobs/followed_model.h"
#include "jobs/serve_access.h"
#include "jobs/source.h"
#include "serve/model_server.h"

namespace limber {

struct ServeJobOptions : EngineOptions {
  // A thread for each worker: answers that do not wait for each other keep time better.
  ServeJobOptions() { threads = 1; }

  std::string model;     // as ServedFolderOptions::path; empty where `apps` names some
  std::string name;      // of a single model; empty: that of its file
  ImageOptions image;    // for models that have no record of their own
  bool exits = false;    // variants with exits instead of those a search found
  int workers = 0;       // requests that are computed at the same time; 0: as many as there are cores for
  ServeOptions serving;  // budget, policy, queue; workers and threads are taken from here
  ServeAccess access;    // who may ask, and at which address: of both transports
  HttpOptions http;      // ports and limits; what `access` says stays as it is by default
  GrpcOptions grpc;      // the same
  bool with_grpc = true;
  // Seconds that requests have to end when it is stopped: within the 30 that container platforms wait.
  double grace_s = 10;
  std::string record;  // file that switches and adaptations are written to; empty: none
  // Images that a search in the background may judge variants by when none keeps the budget; none: no search.
  ImageSource search;
  // How the model learns from what it is asked, in the background. With `apps` the share is that of all.
  ServeAdaptOptions adapt;
  // File of several applications (jobs/apps_file.h), which decides of each its model, images, budget, and how
  // it adapts. It is read again where it changes while they are served.
  std::string apps;
  const std::atomic<int>* read_apps_again = nullptr;  // or when this does; null: that alone
};
Status check(const ServeJobOptions& job);

struct ServeOutcome {
  std::vector<ModelServer::Served> models;
  double seconds = 0;
  struct Adaptation {
    std::string model;
    std::shared_ptr<const Followed> followed;  // not null
  };
  std::vector<Adaptation> adaptations;  // of models that adapt, by name
};

// What a server is while it runs, for who started it: called once it is ready.
struct Serving {
  uint16_t http_port = 0, metrics_port = 0;
  int grpc_port = 0;  // 0: none
  std::vector<std::string> models;
  double ready_s = 0;  // that it took to get ready
};

// Returns when it was asked to stop and all requests that had come are answered, or when it cannot start.
// Nothing listens before all that `job` names is known to be usable but models and ports; models are loaded
// while health is answered already, so that whoever watches sees that it is on its way.
Result<ServeOutcome> run_serve(const ServeJobOptions& job, const JobControl& control,
                               const std::function<void(const Serving&)>& on_ready = {});

}  // namespace limber
