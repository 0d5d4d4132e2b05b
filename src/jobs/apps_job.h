// Several applications on one machine, from recorded profiles: who should retrain, and what it brings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jobs/job.h"
#include "sched/simulate.h"

namespace limber {

struct AppsPlanOptions {
  std::string profiles;            // file
  std::string domain;              // in which all are that know it; empty, and for others: their first
  std::optional<double> window_s;  // instead of the file's
  uint64_t seed = 0;               // of evolution, where applications are many
};
Status check(const AppsPlanOptions& job);

struct AppsPlan {
  std::vector<sched::Application> applications;
  std::vector<std::string> domains;  // by application
  sched::Window window;
  sched::Schedule schedule;
  double schedule_seconds = 0;  // that finding it took
  // Mean accuracy over the window with the same knowledge.
  double whole_models = 0;  // the best schedule that keeps the models as they are
  double ekya = 0, uniform = 0, none = 0;
  double profiling_s = 0;  // of the window, that Ekya's micro-profiling takes
};
// kNotFound when no application knows the domain.
Result<AppsPlan> run_apps_plan(const AppsPlanOptions& job, const JobControl& control = {});

struct AppsSimulateOptions : sched::SimulateOptions {
  std::string profiles;  // file
};
Status check(const AppsSimulateOptions& job);

struct AppsSimulation {
  size_t applications = 0;
  std::vector<sched::Simulated> policies;  // none: it was stopped
};
Result<AppsSimulation> run_apps_simulate(const AppsSimulateOptions& job, const JobControl& control = {});

}  // namespace limber
