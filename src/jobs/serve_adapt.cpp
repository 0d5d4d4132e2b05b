#include "jobs/serve_adapt.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/priority.h"

namespace limber {
namespace {

// Between two looks at a ring that has nothing yet, and at a queue: often enough to be on time for images,
// seldom enough to cost nothing.
constexpr double kNothing_s = 0.2, kQueue_s = 0.005;

double cores_of(double share) { return share * available_cores(); }

}  // namespace

void BackgroundAdapt::CoreShare::count(double used, double now) {
  debt_ = std::max(0.0, debt_ - cores_ * (now - now_)) + (used - used_);
  used_ = used;
  now_ = now;
}

BackgroundAdapt::BackgroundAdapt(const ServeJobOptions& job, std::shared_ptr<const Dataset> source,
                                 ModelServer& server, const JobControl& control,
                                 std::function<void(const FollowedRecord&, double)> tell)
    : server_(server), control_(control), source_(std::move(source)), share_(cores_of(job.adapt.share)) {
  settings_.adapt = job.adapt;
  settings_.threads = std::max(1, static_cast<int>(share_.cores()));
  settings_.go_on = [this] { return go_on(); };
  settings_.tell = std::move(tell);
  JobOptions engine;
  static_cast<EngineOptions&>(engine) = job;
  settings_.backends = make_backends(build_spec(engine, false));
}

Result<std::unique_ptr<BackgroundAdapt>> BackgroundAdapt::start(
    const ServeJobOptions& job, std::shared_ptr<const Dataset> source, ModelServer& server,
    const JobControl& control, std::function<void(const FollowedRecord&, double)> tell) {
  std::unique_ptr<BackgroundAdapt> made(
      new BackgroundAdapt(job, std::move(source), server, control, std::move(tell)));
  if (const auto model = made->model()) {
    LIMBER_ASSIGN(made->first_, made->follow(model));
  }
  made->thread_ = std::thread([adapt = made.get()] { adapt->work(); });
  return made;
}

BackgroundAdapt::~BackgroundAdapt() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// The only one; null while it is not loaded.
std::shared_ptr<ServedModel> BackgroundAdapt::model() const {
  const auto models = server_.models();
  return models.empty() ? nullptr : models[0].second;
}

Result<std::unique_ptr<FollowedModel>> BackgroundAdapt::follow(const std::shared_ptr<ServedModel>& model) {
  return FollowedModel::create(model, source_, settings_);
}

// False when all is over.
bool BackgroundAdapt::rest(double seconds) {
  std::unique_lock lock(mutex_);
  return !stopped_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return stop_; });
}

bool BackgroundAdapt::go_on() {
  share_.count(thread_cpu_seconds() * settings_.threads, now_seconds());
  if (!rest(share_.rest_s())) return false;
  while (true) {
    const auto served = model();
    if (served == nullptr || served->waiting() == 0) return true;
    if (!rest(kQueue_s)) return false;
  }
}

void BackgroundAdapt::work() {
  if (settings_.adapt.idle_only) run_when_idle();
  std::unique_ptr<FollowedModel> followed = std::move(first_);
  bool studied = false;
  std::weak_ptr<ServedModel> given_up;
  while (go_on()) {
    const auto served = model();
    if (served == nullptr || given_up.lock() == served) {
      followed.reset();
      if (!rest(1)) return;
      continue;
    }
    if (followed == nullptr || !followed->is(served)) studied = false;
    const Status status = run(followed, served, studied);
    if (status.ok()) continue;
    control_.note(NoteKind::kWarning, fmt::format("the model adapts no more: {}", status.message()));
    if (followed != nullptr) followed->give_up(status);
    given_up = served;
  }
}

Status BackgroundAdapt::run(std::unique_ptr<FollowedModel>& followed,
                            const std::shared_ptr<ServedModel>& model, bool& studied) {
  if (followed == nullptr || !followed->is(model)) {
    LIMBER_ASSIGN(followed, follow(model));
  }
  if (!studied) {
    LIMBER_ASSIGN(studied, followed->study());
    return {};
  }
  LIMBER_ASSIGN(const bool worked, followed->step());
  followed->set_interval(followed->cost() / share_.cores());
  if (!worked) (void)rest(kNothing_s);
  return {};
}

}  // namespace limber
