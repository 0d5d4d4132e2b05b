#include "sched/turns.h"

#include <algorithm>

#include "base/show.h"
#include "sched/optimise.h"

namespace limber::sched {
namespace {

// Of what a domain has cost: what a method that was never tried is guessed to bring back.
constexpr double kRecovered = 0.5;
// Another domain counts little: how alike two are, nobody says here.
constexpr double kOtherDomain = 1;
// Below this share of what it may take, learning would not get far.
constexpr double kLeastPart = 0.05;
constexpr double kLeast_s = 1e-3;
constexpr double kAhead = 2;  // times the longest learning, so that whoever is next is planned, too

double clamped(double share) { return std::clamp(share, 0.0, 1.0); }

double seconds_left(const Learner& learner, double cores) {
  const double left = learner.learning_s - (learner.learning ? learner.learnt_s : 0);
  return std::max({kLeast_s, left / cores, learner.learning_s * 0.05 / cores});
}

bool is_known(const Learner& learner) { return learner.estimate || learner.source_accuracy; }

bool may_learn(const Learner& learner) { return learner.adapts && (learner.due || learner.learning); }

Application application_of(const Learner& learner, const Expected& expected, double cores) {
  Application made{learner.name, learner.importance, 0, clamped(learner.minimum_accuracy), {}};
  made.options.push_back({.name = "as it is", .before = expected.before, .after = expected.before});
  if (may_learn(learner))
    made.options.push_back({.name = "learns",
                            .before = expected.before,
                            .after = std::max(expected.before, expected.after),
                            .seconds = {seconds_left(learner, cores)}});
  return made;
}

std::string nothing_to_do(const Learner& learner) {
  if (!learner.adapts) return "does not adapt";
  if (!is_known(learner)) return "looks at the images of the source first";
  return learner.domain == 0 ? "nothing new: as where it was trained" : "has seen too little to learn from";
}

std::string gain_text(const Turn& turn) {
  return fmt::format("{} to {}", show_percent(turn.expected.before), show_percent(turn.expected.after));
}

// The one that learns now, else the one that is to learn first; their number where nobody is.
size_t first_of(std::span<const Turn> turns) {
  size_t first = turns.size();
  for (size_t i = 0; i < turns.size(); ++i)
    if (turns[i].end_s > 0 && (first == turns.size() || turns[i].start_s < turns[first].start_s)) first = i;
  return first;
}

void say_why(std::span<const Learner> learners, std::vector<Turn>& turns) {
  const size_t first = first_of(turns);
  for (size_t i = 0; i < turns.size(); ++i) {
    Turn& turn = turns[i];
    if (turn.learns) {
      turn.why = fmt::format("learns: {} expected after {}", gain_text(turn), show_seconds(turn.end_s));
    } else if (turn.end_s > 0) {
      turn.why = fmt::format("learns in {}, after '{}': {} expected", show_seconds(turn.start_s),
                             learners[first].name, gain_text(turn));
    } else if (!may_learn(learners[i])) {
      turn.why = nothing_to_do(learners[i]);
    } else if (first < turns.size()) {
      turn.why = fmt::format("'{}' gains more", learners[first].name);
    }
  }
}

}  // namespace

Expected TurnPlanner::expect(const Learner& learner) {
  const double source = learner.source_accuracy.value_or(learner.estimate.value_or(0.5));
  Expected guess;
  guess.before = clamped(learner.estimate.value_or(source));
  guess.after = clamped(guess.before + kRecovered * std::max(0.0, source - guess.before));
  Known& known = known_[learner.name];
  if (!learner.learning) known.guess = guess;
  const auto distance = [&](int64_t domain) { return domain == learner.domain ? 0.0 : kOtherDomain; };
  return {guess.before, known.expectations.expect(0, guess, distance).after};
}

void TurnPlanner::learnt(const std::string& name, int64_t domain, std::optional<double> accuracy) {
  const auto known = known_.find(name);
  if (known == known_.end() || !accuracy) return;
  known->second.expectations.happened(domain, 0, known->second.guess, std::nullopt, clamped(*accuracy));
}

// Who is expected to gain nothing may be expected wrongly: with time that nobody else can use it is tried.
void TurnPlanner::use_what_is_left(std::span<const Learner> learners, std::vector<Turn>& turns) const {
  const auto planned = [](const Turn& turn) { return turn.end_s > 0; };
  if (std::any_of(turns.begin(), turns.end(), planned)) return;
  size_t best = turns.size();
  const auto rank = [&](size_t i) {
    return std::pair(learners[i].learning, turns[i].expected.after - turns[i].expected.before);
  };
  for (size_t i = 0; i < turns.size(); ++i)
    if (may_learn(learners[i]) && (best == turns.size() || rank(i) > rank(best))) best = i;
  if (best == turns.size()) return;
  turns[best].learns = true;
  turns[best].why = "learns: nobody else wants the time";
  for (size_t i = 0; i < turns.size(); ++i)
    if (i != best && may_learn(learners[i]))
      turns[i].why = fmt::format("'{}' is tried first", learners[best].name);
}

std::vector<Turn> TurnPlanner::plan(std::span<const Learner> learners) {
  std::vector<Turn> turns(learners.size());
  double busy = 0;
  for (const Learner& learner : learners) busy += std::max(0.0, learner.busy_cores);
  const double free = std::min(options_.share, options_.cores - busy);
  if (learners.empty()) return turns;
  for (size_t i = 0; i < learners.size(); ++i) turns[i].expected = expect(learners[i]);
  if (free < kLeastPart * options_.share) {
    for (size_t i = 0; i < learners.size(); ++i)
      turns[i].why = may_learn(learners[i])
                         ? fmt::format("answering takes {:.1f} of {:.0f} cores", busy, options_.cores)
                         : nothing_to_do(learners[i]);
    return turns;
  }
  std::vector<Application> applications;
  Window window{options_.window_s, 1};
  for (size_t i = 0; i < learners.size(); ++i) {
    applications.push_back(application_of(learners[i], turns[i].expected, free));
    if (may_learn(learners[i]))
      window.seconds = std::max(window.seconds, kAhead * seconds_left(learners[i], free));
  }
  const auto schedule = optimise(applications, window);
  if (!schedule.ok()) {
    for (Turn& turn : turns) turn.why = schedule.status().message();
    return turns;
  }
  for (size_t i = 0; i < learners.size(); ++i) {
    const Decision& decision = schedule->decisions[i];
    if (decision.threads == 0) continue;
    turns[i].start_s = decision.start_s;
    turns[i].end_s = decision.end_s;
    turns[i].learns = decision.start_s <= 0;
  }
  say_why(learners, turns);
  use_what_is_left(learners, turns);
  for (size_t i = 0; i < turns.size(); ++i) {
    turns[i].cores = turns[i].learns ? free : 0;
    if (!is_known(learners[i])) turns[i].expected = {};  // a guess that was good enough to plan by
  }
  return turns;
}

}  // namespace limber::sched
