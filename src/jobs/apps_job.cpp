#include "jobs/apps_job.h"

#include <algorithm>

#include "base/clock.h"
#include "sched/baselines.h"
#include "sched/optimise.h"

namespace limber {
namespace {

using sched::Application;
using sched::ApplicationProfile;

Status go_into(const sched::Profiles& profiles, const std::string& domain, AppsPlan& plan) {
  bool known = domain.empty();
  for (const ApplicationProfile& profile : profiles.applications) {
    const auto& all = profile.domains;
    const auto here = std::find_if(all.begin(), all.end(),
                                   [&](const sched::DomainProfile& one) { return one.name == domain; });
    known |= here != all.end();
    const auto at = here == all.end() ? size_t{0} : static_cast<size_t>(here - all.begin());
    plan.applications.push_back(sched::in_domain(profile, at));
    plan.domains.push_back(all[at].name);
  }
  if (!known) return error(Code::kNotFound, "no application was recorded in domain '{}'", domain);
  return {};
}

Application whole(const Application& application) {
  Application kept = application;
  const double size = sched::largest_size(application);
  std::erase_if(kept.options, [&](const sched::Option& option) { return option.size != size; });
  return kept;
}

// Where the whole models are too much for the machine, they cannot be kept.
Result<double> best_of_whole_models(const AppsPlan& plan, const sched::OptimiseOptions& options) {
  std::vector<Application> kept;
  for (const Application& application : plan.applications) kept.push_back(whole(application));
  const auto schedule = sched::optimise(kept, plan.window, options);
  if (schedule.ok()) return schedule->accuracy;
  if (schedule.status().code() != Code::kResourceExhausted) return schedule.status();
  return 0.0;
}

void compare(AppsPlan& plan) {
  const auto mean = [&](const std::vector<sched::Allotment>& allotments, double delay_s) {
    return sched::weighted_mean(plan.applications,
                                sched::accuracies_of(plan.applications, plan.window, allotments, delay_s));
  };
  plan.profiling_s = std::min(sched::profiling_seconds(plan.applications, plan.window), plan.window.seconds);
  plan.ekya = mean(sched::thief(plan.applications, plan.window, plan.profiling_s), plan.profiling_s);
  plan.uniform = mean(sched::uniform(plan.applications), 0);
  plan.none = mean(sched::no_retraining(plan.applications), 0);
}

}  // namespace

Status check(const AppsPlanOptions& job) {
  if (job.profiles.empty()) return invalid("profiles: no file is named");
  if (job.window_s && !(*job.window_s > 0)) return invalid("window_s {} must be above 0", *job.window_s);
  return {};
}

Result<AppsPlan> run_apps_plan(const AppsPlanOptions& job, const JobControl& control) {
  LIMBER_TRY(check(job));
  LIMBER_ASSIGN(const sched::Profiles profiles, sched::read_profiles(job.profiles));
  AppsPlan plan;
  plan.window = profiles.window;
  if (job.window_s) plan.window.seconds = *job.window_s;
  LIMBER_TRY(go_into(profiles, job.domain, plan));
  sched::OptimiseOptions options;
  options.seed = job.seed;
  const double begin = now_seconds();
  LIMBER_ASSIGN(plan.schedule, sched::optimise(plan.applications, plan.window, options));
  plan.schedule_seconds = now_seconds() - begin;
  control.progress({"comparing", -1, ""});
  LIMBER_ASSIGN(plan.whole_models, best_of_whole_models(plan, options));
  compare(plan);
  return plan;
}

Status check(const AppsSimulateOptions& job) {
  if (job.profiles.empty()) return invalid("profiles: no file is named");
  return sched::check(job);
}

Result<AppsSimulation> run_apps_simulate(const AppsSimulateOptions& job, const JobControl& control) {
  LIMBER_TRY(check(job));
  LIMBER_ASSIGN(const sched::Profiles profiles, sched::read_profiles(job.profiles));
  AppsSimulation simulation;
  simulation.applications = job.applications > 0 ? job.applications : profiles.applications.size();
  LIMBER_ASSIGN(simulation.policies, sched::simulate(profiles, job, [&control](double done) {
                  control.progress({"simulating", done, ""});
                  return !control.stop_asked();
                }));
  return simulation;
}

}  // namespace limber
