#include "jobs/conductor.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace limber {
namespace {

// What workers did in less time says little.
constexpr double kBusySpan_s = 1;

constexpr const char* kLearns = "learns";  // Known::told of who has a turn

bool is_lesson(const FollowedEvent& event) { return event.kind == "adapted" || event.kind == "rejected"; }

std::optional<double> known_only(double share) { return share > 0 ? std::optional(share) : std::nullopt; }

Scheduled scheduled(const sched::Turn& turn, double importance, double minimum_accuracy) {
  Scheduled told{.importance = importance,
                 .minimum_accuracy = minimum_accuracy,
                 .learns = turn.learns,
                 .why = turn.why,
                 .cores = turn.cores};
  told.before = known_only(turn.expected.before);
  if (turn.learns || turn.end_s > 0) told.after = known_only(turn.expected.after);
  if (turn.end_s > 0) {
    told.start_s = turn.start_s;
    told.end_s = turn.end_s;
  }
  return told;
}

}  // namespace

Conductor::Conductor(const sched::TurnOptions& options, int worker_threads, ModelServer& server, Tell tell)
    : server_(server),
      worker_threads_(worker_threads),
      tell_(std::move(tell)),
      window_s_(options.window_s),
      planner_(options),
      thread_([this] { work(); }) {}

Conductor::~Conductor() {
  {
    const std::lock_guard lock(wake_mutex_);
    stop_ = true;
  }
  woken_.notify_all();
  thread_.join();
}

void Conductor::set(const std::string& name, const Member& member) {
  {
    const std::lock_guard lock(mutex_);
    planner_.forget(name);
    known_[name] = Known{.member = member, .learnt_at = unix_seconds(), .told = {}};
  }
  wake();
}

void Conductor::weigh(const std::string& name, double importance, double minimum_accuracy) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(name);
    if (known == known_.end()) return;
    known->second.member.importance = importance;
    known->second.member.minimum_accuracy = minimum_accuracy;
  }
  wake();
}

void Conductor::remove(const std::string& name) {
  Known gone;  // ends after the lock
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(name);
    if (known == known_.end()) return;
    gone = std::move(known->second);
    known_.erase(known);
    planner_.forget(name);
    if (gone.told == kLearns && tell_) tell_({.model = name, .why = "its server ends"}, unix_seconds());
  }
  wake();
}

void Conductor::use_window(double seconds) {
  {
    const std::lock_guard lock(mutex_);
    window_s_ = seconds;
    planner_.use_window(seconds);
  }
  wake();
}

void Conductor::wake() {
  {
    const std::lock_guard lock(wake_mutex_);
    wake_ = true;
  }
  woken_.notify_all();
}

void Conductor::work() {
  while (true) {
    double window = 0;
    {
      const std::lock_guard lock(mutex_);
      decide(now_seconds());
      window = window_s_;
    }
    std::unique_lock lock(wake_mutex_);
    woken_.wait_for(lock, std::chrono::duration<double>(window), [&] { return stop_ || wake_; });
    if (stop_) return;
    wake_ = false;
  }
}

void Conductor::take_up(const std::string& name, Known& known, const Followed& followed) {
  for (const FollowedEvent& event : followed.events) {
    if (event.time <= known.learnt_at || !is_lesson(event)) continue;
    known.learnt_at = event.time;
    planner_.learnt(name, event.domain, event.estimate);
  }
}

sched::Learner Conductor::learner_of(const std::string& name, Known& known, const ServedModel* model,
                                     double now) {
  sched::Learner learner{
      .name = name, .importance = known.member.importance, .minimum_accuracy = known.member.minimum_accuracy};
  if (model == nullptr) return learner;
  if (now - known.busy_at >= kBusySpan_s) {
    const double busy = model->stats().totals().busy_sum_s;
    // A model that was loaded anew counts from nothing.
    if (known.busy_at > 0 && busy >= known.busy_s)
      known.busy_cores = (busy - known.busy_s) * worker_threads_ / (now - known.busy_at);
    known.busy_s = busy;
    known.busy_at = now;
  }
  learner.busy_cores = known.busy_cores;
  if (const auto followed = model->followed()) {
    take_up(name, known, *followed);
    learner.domain = followed->domain;
    learner.estimate = followed->estimate;
    learner.source_accuracy = followed->source_accuracy;
  }
  if (known.member.adapt == nullptr) return learner;
  const BackgroundAdapt::Wish wish = known.member.adapt->wish();
  learner.adapts = wish.adapts;
  learner.due = wish.due;
  learner.learning = wish.learning;
  learner.learning_s = wish.learning_s;
  learner.learnt_s = wish.learnt_s;
  return learner;
}

void Conductor::give(const std::string& name, Known& known, const sched::Turn& turn,
                     const sched::Learner& learner, const std::shared_ptr<ServedModel>& model) {
  const Scheduled told = scheduled(turn, known.member.importance, known.member.minimum_accuracy);
  if (model != nullptr) model->tell_scheduled(std::make_shared<const Scheduled>(told));
  // In words without times, which pass by themselves: who learns, who is to, and why not.
  const std::string what = turn.learns ? kLearns : turn.end_s > 0 ? "is next" : turn.why;
  if (what == std::exchange(known.told, what) || !tell_) return;
  tell_({name, turn.learns, turn.why, learner.estimate, told.after, told.cores, told.start_s, told.end_s},
        unix_seconds());
}

// REQUIRES: mutex_ is held
void Conductor::decide(double now) {
  std::map<std::string, std::shared_ptr<ServedModel>> models;
  for (const auto& [name, model] : server_.models()) models[name] = model;
  std::vector<sched::Learner> learners;
  for (auto& [name, known] : known_) learners.push_back(learner_of(name, known, models[name].get(), now));
  const std::vector<sched::Turn> turns = planner_.plan(learners);
  // Who had a turn loses it before another gets one.
  for (const bool learns : {false, true}) {
    size_t at = 0;
    for (auto& [name, known] : known_) {
      const size_t i = at++;
      if (turns[i].learns != learns) continue;
      if (known.member.adapt != nullptr) known.member.adapt->give_turn(learns);
      give(name, known, turns[i], learners[i], models[name]);
    }
  }
}

}  // namespace limber
