// How others start a server of several applications: what systemd and Kubernetes are told of it.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "jobs/job.h"

namespace limber {

enum class Orchestrator : uint8_t { kSystemd, kKubernetes };

struct AppsExportOptions {
  std::string apps;  // the file that names them
  Orchestrator to = Orchestrator::kSystemd;
  double cores = 0;           // that it may use; 0: those of this machine
  size_t memory_bytes = 0;    // the same; 0: as many as there are
  double adapt_share = 0.25;  // of the cores, for learning
  // Of Kubernetes: the image, and the claim of a volume that holds what lies in the folder of the file.
  std::string image = "limber", claim = "limber-apps";
  std::string output;  // file; empty: none is written

  bool operator==(const AppsExportOptions&) const = default;
};
Status check(const AppsExportOptions& job);

// A unit, or a Deployment and its Service. The file must be one that can be served.
Result<std::string> run_apps_export(const AppsExportOptions& job, const JobControl& control = {});

}  // namespace limber
