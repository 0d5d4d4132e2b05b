#include "jobs/serve_apps.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/parallel.h"

namespace limber {
namespace {

constexpr double kStamp_s = 1;  // between two looks whether the file is another

// What tells one state of a file from another; empty: it is not there.
std::string stamp_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return "";
  return fmt::format("{} {} {}.{:09}", info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

int times_asked(const ServeJobOptions& job) {
  return job.read_apps_again == nullptr ? 0 : job.read_apps_again->load(std::memory_order_relaxed);
}

sched::TurnOptions turn_options(const ServeJobOptions& job, const ServedApps& apps) {
  const double cores = available_cores();
  return {.window_s = apps.window_s, .cores = cores, .share = job.adapt.share * cores};
}

}  // namespace

// --- models ------------------------------------------------------------------------------------------------

AppModels::AppModels(const ServeJobOptions& job)
    : engine_(job),
      energy_(job.serving.weights.energy > 0 || std::isfinite(job.serving.governor.limits.energy_j)),
      backends_([&] {
        JobOptions engine;
        static_cast<EngineOptions&>(engine) = job;
        return make_backends(build_spec(engine, false));
      }()) {}

void AppModels::set(const ServedApp& app) {
  const std::lock_guard lock(mutex_);
  apps_[app.name] = app;
}

void AppModels::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  apps_.erase(name);
}

std::vector<std::string> AppModels::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, app] : apps_) names.push_back(name);
  return names;
}

Result<ServedSource> AppModels::open(const std::string& name) const {
  ServedFolderOptions options;
  {
    const std::lock_guard lock(mutex_);
    const auto at = apps_.find(name);
    if (at == apps_.end()) return error(Code::kNotFound, "no application '{}'", name);
    static_cast<EngineOptions&>(options) = engine_;
    options.path = at->second.model;
    options.name = name;
    options.image = at->second.image;
    options.open_batch = !at->second.adapt.method.empty();
    options.energy = energy_;
  }
  LIMBER_ASSIGN(const auto folder, ServedFolder::open(options));
  return folder->open(name);
}

ServeOptions AppModels::serving(const std::string& name, const ServeOptions& usual) const {
  ServeOptions options = usual;
  const std::lock_guard lock(mutex_);
  const auto at = apps_.find(name);
  if (at != apps_.end()) options.governor.budget_s = at->second.latency_s;
  return options;
}

// --- while they are served ---------------------------------------------------------------------------------

RunningApps::RunningApps(const ServeJobOptions& job, const ServedApps& apps, AppModels& models,
                         ModelServer& server, Tell tell, const JobControl& control)
    : job_(job),
      models_(models),
      server_(server),
      tell_(std::move(tell)),
      control_(control),
      share_(std::make_shared<CoreShare>(job.adapt.share * available_cores())),
      stamp_(stamp_of(job.apps)),
      asked_(times_asked(job)),
      looked_at_(now_seconds()),
      conductor_(turn_options(job, apps), thread_count({.threads = job.threads}), server, tell_.turn) {
  for (const ServedApp& app : apps.apps) begin(app);
}

RunningApps::~RunningApps() {
  while (!running_.empty()) end(running_.begin()->first);
}

Result<std::shared_ptr<BackgroundAdapt>> RunningApps::start_adapting(const ServedApp& app) {
  if (app.adapt.method.empty()) return std::shared_ptr<BackgroundAdapt>();
  BackgroundAdaptOptions options{app.name, app.adapt, job_, nullptr, share_, tell_.followed, true, {}};
  options.adapt.idle_only = job_.adapt.idle_only;
  options.adapt.window = job_.adapt.window;
  options.changed = [this] { conductor_.wake(); };
  LIMBER_ASSIGN(options.source, open_source_images(app.adapt, 0));
  LIMBER_ASSIGN(auto started, BackgroundAdapt::start(options, server_, control_));
  return std::shared_ptr<BackgroundAdapt>(std::move(started));
}

// It is served; whether it can adapt is its own affair.
void RunningApps::begin(const ServedApp& app) {
  auto adapt = start_adapting(app);
  if (!adapt.ok())
    control_.note(NoteKind::kWarning,
                  fmt::format("{} is served, and adapts not: {}", app.name, adapt.status().message()));
  Running& running = running_[app.name];
  running.app = app;
  running.adapt = adapt.ok() ? *adapt : nullptr;
  conductor_.set(app.name, {app.importance, app.minimum_accuracy, running.adapt});
}

// Its turn goes to others when it has ended, not before.
void RunningApps::end(const std::string& name) {
  const auto running = running_.find(name);
  if (running != running_.end() && running->second.adapt != nullptr) running->second.adapt->stop();
  conductor_.remove(name);
  running_.erase(name);
}

void RunningApps::serve(const ServedApp& app) {
  models_.set(app);
  if (const Status status = server_.open(app.name); !status.ok())
    control_.note(NoteKind::kWarning,
                  fmt::format("{} is not served as {} says: {}", app.name, job_.apps, status.message()));
  begin(app);
}

void RunningApps::look() {
  const int asked = times_asked(job_);
  const double now = now_seconds();
  if (asked == asked_ && now - looked_at_ < kStamp_s) return;
  looked_at_ = now;
  const std::string stamp = stamp_of(job_.apps);
  if (stamp == stamp_ && asked == asked_) return;
  stamp_ = stamp;
  asked_ = asked;
  const auto apps = read_apps(job_.apps);
  if (!apps.ok()) {
    control_.note(NoteKind::kWarning, fmt::format("{}; nothing changes", apps.status().message()));
    return;
  }
  apply(*apps);
}

void RunningApps::apply(const ServedApps& apps) {
  std::vector<std::string> names, gone;
  for (const ServedApp& app : apps.apps) names.push_back(app.name);
  for (const auto& [name, running] : running_)
    if (std::find(names.begin(), names.end(), name) == names.end()) gone.push_back(name);
  for (const std::string& name : gone) {
    end(name);
    models_.remove(name);
    (void)server_.unload(name);  // where it could not be loaded there is nothing to unload
    control_.note(NoteKind::kNote, fmt::format("{} is served no more", name));
  }
  conductor_.use_window(apps.window_s);
  for (const ServedApp& app : apps.apps) {
    const auto running = running_.find(app.name);
    if (running == running_.end()) {
      serve(app);
      control_.note(NoteKind::kNote, fmt::format("{} was added", app.name));
    } else if (running->second.app.served_as != app.served_as) {
      end(app.name);
      serve(app);
      control_.note(NoteKind::kNote, fmt::format("{} was changed", app.name));
    } else {
      running->second.app = app;
      conductor_.weigh(app.name, app.importance, app.minimum_accuracy);
    }
  }
}

}  // namespace limber
