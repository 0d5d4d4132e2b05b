#include "sched/simulate.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/clock.h"
#include "base/random.h"
#include "sched/baselines.h"
#include "sched/optimise.h"
#include "sched/study.h"

namespace limber::sched {
namespace {

constexpr int kPlans = 4;                   // at most in a window
constexpr double kLeastRest = 0.02;         // of a window that is worth another
constexpr double kMedianOfNormal = 0.6745;  // half of all draws are nearer to the mean, in deviations

// Where each application is in each window, the same for all policies.
using Domains = std::vector<std::vector<size_t>>;

Domains draw_domains(const Profiles& profiles, const SimulateOptions& options, size_t count) {
  Random random(options.seed);
  Domains domains;
  for (int window = 0; window < options.windows; ++window) {
    std::vector<size_t> here;
    for (size_t i = 0; i < count; ++i) {
      const size_t known = profiles.applications[i % profiles.applications.size()].domains.size();
      const bool stays = random.uniform() < options.stay && window > 0;
      const size_t drawn = random.below(known);
      here.push_back(stays ? domains.back()[i] : drawn);
    }
    domains.push_back(std::move(here));
  }
  return domains;
}

// One application under one policy.
struct Living {
  const ApplicationProfile* profile = nullptr;
  size_t domain = 0;
  std::optional<size_t> learnt;  // option that was retrained in this domain
  size_t begun = 0;              // option whose retraining did not end
  double done = 0;               // of that
  std::vector<bool> tried;       // options that were retrained in this domain
  Expectations expectations;

  explicit Living(const ApplicationProfile& of)
      : profile(&of), tried(of.application.options.size()), expectations(of.application.options.size()) {}

  void enter(size_t next) {
    if (next == domain) return;
    domain = next;
    learnt.reset();
    tried.assign(tried.size(), false);
    done = 0;
  }
  bool has_learnt(const Option& option) const {
    return learnt && profile->application.options[*learnt].size == option.size;
  }
};

class World {
 public:
  World(const Profiles& profiles, const SimulateOptions& options, const Domains& domains, Policy policy)
      : options_(options), domains_(domains), window_(profiles.window), random_(options.seed + 1) {
    const size_t count = domains[0].size();
    const double more = static_cast<double>(count) / static_cast<double>(profiles.applications.size());
    machine_ = options.machine > 0 ? options.machine : more;
    for (size_t i = 0; i < count; ++i)
      living_.emplace_back(profiles.applications[i % profiles.applications.size()]);
    outcome_.policy = policy;
  }

  // Nothing when `go_on` says so.
  Result<std::optional<Simulated>> run(const std::function<bool(size_t windows)>& go_on) {
    for (size_t window = 0; window < domains_.size(); ++window) {
      if (!go_on(window)) return std::optional<Simulated>();
      for (size_t i = 0; i < living_.size(); ++i) {
        if (window == 0) living_[i].domain = domains_[0][i];
        living_[i].enter(domains_[window][i]);
      }
      LIMBER_ASSIGN(const double accuracy, live());
      outcome_.accuracy += accuracy / static_cast<double>(domains_.size());
    }
    if (guesses_ > 0) outcome_.estimate_error /= static_cast<double>(guesses_);
    return std::optional(outcome_);
  }

 private:
  // What is, with what was learnt in this domain.
  Application truth(const Living& living) const {
    Application application = in_domain(*living.profile, living.domain);
    for (size_t i = 0; i < application.options.size(); ++i) {
      Option& option = application.options[i];
      option.load /= machine_;
      option.latency_s /= machine_;
      for (double& seconds : option.seconds) seconds *= (living.begun == i ? 1 - living.done : 1) / machine_;
      if (!living.has_learnt(option)) continue;
      option.before = living.profile->domains[living.domain].after[*living.learnt];
      option.after = std::max(option.after, option.before);
    }
    application.latency_budget_s /= machine_;
    return application;
  }
  std::vector<Application> truths() const {
    std::vector<Application> all;
    for (const Living& living : living_) all.push_back(truth(living));
    return all;
  }

  // What the optimiser is told: nothing of this domain but what was seen in it.
  Application expected(const Living& living) const {
    Application application = truth(living);
    const auto far = [&](int64_t domain) {
      return distance(living.profile->domains[living.domain],
                      living.profile->domains[static_cast<size_t>(domain)]);
    };
    for (size_t i = 0; i < application.options.size(); ++i) {
      Option& option = application.options[i];
      if (living.tried[i]) continue;  // known
      const Expected guess = study_elsewhere(*living.profile, living.domain, i);
      const Expected found = living.expectations.expect(i, guess, far);
      if (!living.has_learnt(option)) option.before = found.before;
      option.after = living.has_learnt(option) ? std::max(option.before, found.after) : found.after;
    }
    if (outcome_.policy == Policy::kOptimisedWhole) leave_whole(application);
    return application;
  }
  // Places of options stay.
  static void leave_whole(Application& application) {
    const double largest = largest_size(application);
    for (Option& option : application.options)
      if (option.size != largest) option.before = option.after = 0, option.seconds.clear();
  }

  Result<double> live() {
    switch (outcome_.policy) {
      case Policy::kOptimised:
      case Policy::kOptimisedWhole:
        return optimised();
      case Policy::kThief: {
        const std::vector<Application> real = truths();
        const double delay = std::min(profiling_seconds(real, window_), window_.seconds);
        return allotted(thief(profiled(real), window_, delay), delay);
      }
      case Policy::kUniform:
        return allotted(uniform(truths()), 0);
      case Policy::kNone:
        return allotted(no_retraining(truths()), 0);
    }
    return Status(Code::kInternal, "no such policy");
  }

  std::vector<Application> profiled(std::vector<Application> real) {
    const double deviation = options_.error / kMedianOfNormal;
    for (size_t i = 0; i < real.size(); ++i)
      for (Option& option : real[i].options)
        if (!living_[i].has_learnt(option))
          option.after = std::clamp(option.after + deviation * random_.normal(), 0.0, 1.0);
    return real;
  }

  // When all retrainings have ended, what is left of the window is planned anew, knowing more.
  Result<double> optimised() {
    Window rest = window_;
    double sum = 0;
    for (int plans = 0; plans < kPlans && rest.seconds > kLeastRest * window_.seconds; ++plans) {
      LIMBER_ASSIGN(const Schedule schedule, plan(rest));
      std::vector<Choice> choices;
      double until = 0;
      for (const Decision& decision : schedule.decisions) {
        choices.push_back({decision.option, decision.threads});
        until = std::max(until, decision.end_s);
      }
      const bool last = until == 0 || plans + 1 == kPlans;
      const Window part{last ? rest.seconds : until, window_.threads};
      const Schedule happened = lay_out(truths(), part, choices, retraining_order(schedule));
      for (size_t i = 0; i < living_.size(); ++i)
        learn(living_[i], happened.decisions[i], told_[i].options[happened.decisions[i].option]);
      sum += part.seconds * happened.accuracy;
      rest.seconds -= part.seconds;
      if (last) break;
    }
    return sum / (window_.seconds - std::max(0.0, rest.seconds));
  }

  Result<Schedule> plan(const Window& window) {
    told_.clear();
    for (const Living& living : living_) told_.push_back(expected(living));
    const double begin = now_seconds();
    LIMBER_ASSIGN(Schedule schedule, optimise(told_, window));
    outcome_.schedule_seconds = std::max(outcome_.schedule_seconds, now_seconds() - begin);
    outcome_.optimum_share = std::min(outcome_.optimum_share, schedule.optimum_share());
    return schedule;
  }

  void learn(Living& living, const Decision& decision, const Option& told) {
    const DomainProfile& here = living.profile->domains[living.domain];
    const size_t option = decision.option;
    const bool fresh = !living.has_learnt(told), retrained = decision.threads > 0;
    std::optional<double> before, after;
    if (fresh) before = here.before[option], count_error(told.before, *before);
    if (retrained) after = here.after[option];
    if (retrained && fresh) count_error(told.after, *after);
    happened(living, option, before, after);
    if (!retrained) return;
    living.tried[option] = true;
    ++outcome_.retrainings;
    if (fresh || here.after[option] > here.after[*living.learnt]) living.learnt = option;
  }
  // Options of one size are the same before they are retrained.
  void happened(Living& living, size_t option, std::optional<double> before, std::optional<double> after) {
    const auto& options = living.profile->application.options;
    for (size_t i = 0; i < options.size(); ++i)
      if (options[i].size == options[option].size)
        living.expectations.happened(static_cast<int64_t>(living.domain), i,
                                     study_elsewhere(*living.profile, living.domain, i), before,
                                     i == option ? after : std::nullopt);
  }
  void count_error(double told, double real) {
    outcome_.estimate_error += std::abs(told - real);
    ++guesses_;
  }

  double allotted(const std::vector<Allotment>& allotments, double delay_s) {
    const std::vector<Application> real = truths();
    const std::vector<double> accuracies = accuracies_of(real, window_, allotments, delay_s);
    const std::vector<double> ends = ends_of(real, window_, allotments, delay_s);
    for (size_t i = 0; i < living_.size(); ++i) go_on(living_[i], real[i], allotments[i], ends[i], delay_s);
    return weighted_mean(real, accuracies);
  }

  void go_on(Living& living, const Application& real, const Allotment& plan, double end, double delay_s) {
    const Option& option = real.options[plan.option];
    if (!plan.retrain || option.seconds.empty() || plan.retraining <= 0) return;
    if (end <= window_.seconds) {
      ++outcome_.retrainings;
      living.learnt = plan.option;
      living.done = 0;
      return;
    }
    if (living.begun != plan.option) living.done = 0;
    const double worked = (window_.seconds - delay_s) / std::max(end - delay_s, 1e-9);
    living.begun = plan.option;
    living.done += (1 - living.done) * std::clamp(worked, 0.0, 0.999);
  }

  const SimulateOptions& options_;
  const Domains& domains_;
  const Window window_;
  Random random_;
  double machine_ = 1;
  std::vector<Living> living_;
  std::vector<Application> told_;  // what the last plan was made of
  Simulated outcome_;
  int64_t guesses_ = 0;
};

}  // namespace

const char* policy_name(Policy policy) {
  switch (policy) {
    case Policy::kOptimised:
      return "optimised";
    case Policy::kOptimisedWhole:
      return "optimised, whole models";
    case Policy::kThief:
      return "ekya";
    case Policy::kUniform:
      return "uniform";
    case Policy::kNone:
      return "none";
  }
  return "";
}

Status check(const SimulateOptions& options) {
  if (options.applications > kMaxApplications)
    return invalid("{} applications; expected at most {}", options.applications, kMaxApplications);
  if (options.windows < 1 || options.windows > 100000)
    return invalid("{} windows; expected 1 to 100000", options.windows);
  if (!(options.stay >= 0 && options.stay <= 1)) return invalid("stay {} must be in 0..1", options.stay);
  if (!(options.error >= 0 && options.error <= 1)) return invalid("error {} must be in 0..1", options.error);
  if (!(options.machine >= 0 && options.machine <= 1e6))
    return invalid("machine {} must be in 0..1e6", options.machine);
  return {};
}

Result<std::vector<Simulated>> simulate(const Profiles& profiles, const SimulateOptions& options,
                                        const std::function<bool(double done)>& go_on) {
  LIMBER_TRY(check(options));
  const size_t recorded = profiles.applications.size();
  const Domains domains =
      draw_domains(profiles, options, options.applications > 0 ? options.applications : recorded);
  std::vector<Simulated> outcomes;
  const auto all = static_cast<double>(std::size(kPolicies) * domains.size());
  for (const Policy policy : kPolicies) {
    const size_t before = outcomes.size() * domains.size();
    LIMBER_ASSIGN(const auto outcome, World(profiles, options, domains, policy).run([&](size_t windows) {
      return go_on == nullptr || go_on(static_cast<double>(before + windows) / all);
    }));
    if (!outcome) return std::vector<Simulated>();
    outcomes.push_back(*outcome);
  }
  return outcomes;
}

}  // namespace limber::sched
