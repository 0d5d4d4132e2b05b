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

}  // namespace

double CoreShare::use(double seconds, double now) {
  const std::lock_guard lock(mutex_);
  debt_ = std::max(0.0, debt_ - cores_ * std::max(0.0, now - now_)) + seconds;
  now_ = std::max(now_, now);
  return debt_ / cores_;
}

void CoreShare::join() {
  const std::lock_guard lock(mutex_);
  ++users_;
}

void CoreShare::leave() {
  const std::lock_guard lock(mutex_);
  --users_;
}

int CoreShare::users() const {
  const std::lock_guard lock(mutex_);
  return users_;
}

BackgroundAdapt::BackgroundAdapt(const BackgroundAdaptOptions& options, ModelServer& server,
                                 const JobControl& control)
    : server_(server), control_(control), options_(options) {
  settings_.adapt = options.adapt;
  settings_.threads = std::max(1, static_cast<int>(options.share->cores()));
  settings_.go_on = [this] { return go_on(); };
  settings_.tell = options.tell;
  JobOptions engine;
  static_cast<EngineOptions&>(engine) = options.engine;
  settings_.backends = make_backends(build_spec(engine, false));
  options_.share->join();
}

Result<std::unique_ptr<BackgroundAdapt>> BackgroundAdapt::start(const BackgroundAdaptOptions& options,
                                                                ModelServer& server,
                                                                const JobControl& control) {
  std::unique_ptr<BackgroundAdapt> made(new BackgroundAdapt(options, server, control));
  if (const auto model = made->model()) {
    LIMBER_ASSIGN(made->first_, made->follow(model));
  }
  made->thread_ = std::thread([adapt = made.get()] { adapt->work(); });
  return made;
}

void BackgroundAdapt::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

BackgroundAdapt::~BackgroundAdapt() {
  stop();
  options_.share->leave();
}

// Null while it is not loaded.
std::shared_ptr<ServedModel> BackgroundAdapt::model() const {
  for (const auto& [name, model] : server_.models())
    if (name == options_.model) return model;
  return nullptr;
}

bool BackgroundAdapt::somebody_waits() const {
  const auto models = server_.models();
  return std::any_of(models.begin(), models.end(), [](const auto& one) { return one.second->waiting() > 0; });
}

Result<std::unique_ptr<FollowedModel>> BackgroundAdapt::follow(const std::shared_ptr<ServedModel>& model) {
  return FollowedModel::create(model, options_.source, settings_);
}

// False when all is over.
bool BackgroundAdapt::rest(double seconds) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return stop_; });
}

bool BackgroundAdapt::wait_for_turn() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stop_ || turn_ || !wish_.learning; });
  return !stop_;
}

void BackgroundAdapt::count_learning(double seconds) {
  const std::lock_guard lock(mutex_);
  if (wish_.learning) wish_.learnt_s += seconds;
}

bool BackgroundAdapt::go_on() {
  const double used = thread_cpu_seconds();
  const double more = (used - std::exchange(used_, used)) * settings_.threads;
  count_learning(more);
  if (!rest(options_.share->use(more, now_seconds()))) return false;
  while (true) {
    if (options_.by_turns && !wait_for_turn()) return false;
    if (!somebody_waits()) return true;
    if (!rest(kQueue_s)) return false;
  }
}

BackgroundAdapt::Wish BackgroundAdapt::wish() const {
  const std::lock_guard lock(mutex_);
  return wish_;
}

void BackgroundAdapt::give_turn(bool turn) {
  {
    const std::lock_guard lock(mutex_);
    turn_ = turn;
  }
  changed_.notify_all();
}

void BackgroundAdapt::wish_for(const Wish& wish) {
  bool news = false;
  {
    const std::lock_guard lock(mutex_);
    news = wish.adapts != wish_.adapts || wish.due != wish_.due || wish.learning != wish_.learning;
    wish_ = wish;
  }
  if (news && options_.changed) options_.changed();
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
    control_.note(NoteKind::kWarning, fmt::format("{} adapts no more: {}", options_.model, status.message()));
    if (followed != nullptr) followed->give_up(status);
    given_up = served;
    wish_for({.adapts = false});
  }
}

Status BackgroundAdapt::run(std::unique_ptr<FollowedModel>& followed,
                            const std::shared_ptr<ServedModel>& model, bool& studied) {
  if (followed == nullptr || !followed->is(model)) {
    wish_for({});
    LIMBER_ASSIGN(followed, follow(model));
  }
  if (!studied) {
    LIMBER_ASSIGN(studied, followed->study());
    return {};
  }
  const bool learns = followed->due() && may_learn();
  if (learns) wish_for({.due = true, .learning = true, .learning_s = followed->learning_cost()});
  LIMBER_ASSIGN(const bool worked, followed->step(learns));
  wish_for({.due = followed->due(), .learning_s = followed->learning_cost()});
  followed->set_interval(followed->cost() * options_.share->users() / options_.share->cores());
  if (!worked) (void)rest(kNothing_s);
  return {};
}

bool BackgroundAdapt::may_learn() const {
  const std::lock_guard lock(mutex_);
  return !options_.by_turns || turn_;
}

}  // namespace limber
