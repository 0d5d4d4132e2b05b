#include "sched/baselines.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "sched/schedule.h"

namespace limber::sched {
namespace {

constexpr int kStealingRounds = 3;
constexpr double kProfiled = 5.0 / 30 * 0.1;

std::vector<size_t> whole_options(const Application& application) {
  std::vector<size_t> options;
  const double size = largest_size(application);
  for (size_t i = 0; i < application.options.size(); ++i)
    if (application.options[i].size == size && keeps_latency(application, application.options[i]))
      options.push_back(i);
  return options;
}

double retraining_seconds(const Option& option, const Window& window) {
  return option.seconds.empty() ? 0 : 1 / speed(option, window.threads);
}

double answering_factor(double share, double load) {
  return share >= load ? 1 : skipping_factor(load / std::max(share, 1e-9));
}

class Thief {
 public:
  Thief(std::span<const Application> found, const Window& window, double delay_s)
      : applications_(found), window_(window), delay_s_(delay_s), plans_(found.size()) {
    const double share = 0.5 / static_cast<double>(found.size());
    for (size_t i = 0; i < found.size(); ++i) {
      plans_[i] = {fixed_option(found[i]), false, share, share};
      options_.push_back(whole_options(found[i]));
      choose_option(i);
    }
  }
  std::vector<Allotment> run() {
    for (int round = 0; round < kStealingRounds; ++round)
      for (size_t job = 0; job < 2 * plans_.size(); ++job)
        for (size_t victim = 0; victim < 2 * plans_.size(); ++victim)
          if (job != victim) steal(job, victim);
    return plans_;
  }

 private:
  double& share(size_t job) {
    Allotment& plan = plans_[job / 2];
    return job % 2 == 0 ? plan.answering : plan.retraining;
  }
  double value() const {
    return weighted_mean(applications_, accuracies_of(applications_, window_, plans_, delay_s_));
  }
  // The best for what it has.
  void choose_option(size_t i) {
    Allotment best = plans_[i];
    double most = -1;
    for (const size_t option : options_[i])
      for (const bool retrain : {false, true}) {
        if (retrain && applications_[i].options[option].seconds.empty()) continue;
        plans_[i].option = option;
        plans_[i].retrain = retrain;
        if (const double now = alone(i); now > most) most = now, best = plans_[i];
      }
    plans_[i] = best;
  }
  // As if nobody else ever gave anything back.
  double alone(size_t i) const {
    const Allotment& plan = plans_[i];
    const Option& option = applications_[i].options[plan.option];
    const double early = option.before * answering_factor(plan.answering, option.load);
    const double threads = plan.retraining * window_.threads;
    if (!plan.retrain || threads <= 0) return early;
    const double end = (delay_s_ + 1 / speed(option, threads)) / window_.seconds;
    if (end >= 1) return early;
    const double late = option.after * answering_factor(plan.answering + plan.retraining, option.load);
    return end * early + (1 - end) * late;
  }
  // A tenth of what the victim has, two tenths, .. or nothing: what is best.
  void steal(size_t job, size_t victim) {
    const double mine = share(job), theirs = share(victim);
    if (theirs <= 0) return;
    const Allotment thief = plans_[job / 2], robbed = plans_[victim / 2];
    Allotment best_thief = thief, best_robbed = robbed;
    double best = value();
    for (int tenths = 1; tenths <= 10; ++tenths) {
      share(job) = mine + tenths / 10.0 * theirs;
      share(victim) = (1 - tenths / 10.0) * theirs;
      choose_option(job / 2);
      choose_option(victim / 2);
      if (const double now = value(); now > best + 1e-12)
        best = now, best_thief = plans_[job / 2], best_robbed = plans_[victim / 2];
    }
    plans_[job / 2] = best_thief;
    plans_[victim / 2] = best_robbed;
  }

  std::span<const Application> applications_;
  const Window& window_;
  const double delay_s_;
  std::vector<Allotment> plans_;
  std::vector<std::vector<size_t>> options_;  // of the whole model, by application
};

}  // namespace

double skipping_factor(double every) {
  constexpr std::array<std::pair<double, double>, 7> kFigures = {
      {{1, 1}, {2, .78}, {3, .64}, {4, .60}, {5, .44}, {10, .15}, {20, .04}}};
  if (every <= 1) return 1;
  for (size_t i = 1; i < kFigures.size(); ++i) {
    const auto [x0, y0] = kFigures[i - 1];
    const auto [x1, y1] = kFigures[i];
    if (every <= x1) return y0 + (y1 - y0) * (every - x0) / (x1 - x0);
  }
  return 0.04 * 20 / every;
}

std::vector<double> ends_of(std::span<const Application> applications, const Window& window,
                            std::span<const Allotment> allotments, double delay_s) {
  std::vector<double> ends;
  for (size_t i = 0; i < applications.size(); ++i) {
    const Allotment& plan = allotments[i];
    const Option& option = applications[i].options[plan.option];
    const double threads = plan.retraining * window.threads;
    const bool trains = plan.retrain && !option.seconds.empty() && threads > 0;
    ends.push_back(trains ? delay_s + 1 / speed(option, threads) : 2 * window.seconds);
  }
  return ends;
}

std::vector<double> accuracies_of(std::span<const Application> applications, const Window& window,
                                  std::span<const Allotment> allotments, double delay_s) {
  const std::vector<double> ends = ends_of(applications, window, allotments, delay_s);
  std::vector<size_t> by_end(ends.size());
  std::iota(by_end.begin(), by_end.end(), size_t{0});
  std::sort(by_end.begin(), by_end.end(), [&](size_t a, size_t b) { return ends[a] < ends[b]; });
  std::vector<double> sums(ends.size(), 0.0);
  double now = 0, given_back = 0;
  const auto count = static_cast<double>(applications.size());
  // Between two ends nothing changes.
  for (size_t next = 0; next <= by_end.size() && now < window.seconds; ++next) {
    const double until = next < by_end.size() ? std::min(ends[by_end[next]], window.seconds) : window.seconds;
    for (size_t i = 0; until > now && i < applications.size(); ++i) {
      const Option& option = applications[i].options[allotments[i].option];
      const double share = allotments[i].answering + given_back / count;
      const double accuracy = ends[i] <= now ? option.after : option.before;
      sums[i] += (until - now) * accuracy * answering_factor(share, option.load);
    }
    now = std::max(now, until);
    if (next < by_end.size()) given_back += allotments[by_end[next]].retraining;
  }
  for (double& sum : sums) sum /= window.seconds;
  return sums;
}

size_t fixed_option(const Application& application) {
  const std::vector<size_t> options = whole_options(application);
  LIMBER_ASSERT(!options.empty());
  const auto seconds = [&](size_t i) {
    const Option& option = application.options[i];
    return option.seconds.empty() ? 0 : option.seconds.front();
  };
  return *std::max_element(options.begin(), options.end(),
                           [&](size_t a, size_t b) { return seconds(a) < seconds(b); });
}

std::vector<Allotment> no_retraining(std::span<const Application> applications) {
  std::vector<Allotment> allotments;
  for (const Application& application : applications)
    allotments.push_back(
        {fixed_option(application), false, 1.0 / static_cast<double>(applications.size()), 0});
  return allotments;
}

std::vector<Allotment> uniform(std::span<const Application> applications) {
  std::vector<Allotment> allotments;
  const double share = 1.0 / static_cast<double>(applications.size());
  for (const Application& application : applications) {
    const size_t option = fixed_option(application);
    const double answering = std::min(share, application.options[option].load);
    allotments.push_back({option, true, answering, share - answering});
  }
  return allotments;
}

std::vector<Allotment> thief(std::span<const Application> found, const Window& window, double delay_s) {
  return Thief(found, window, delay_s).run();
}

double profiling_seconds(std::span<const Application> applications, const Window& window) {
  double seconds = 0;
  for (const Application& application : applications) {
    const std::vector<size_t> options = whole_options(application);
    double longest = 0;
    for (const size_t option : options)
      longest = std::max(longest, retraining_seconds(application.options[option], window));
    seconds += kProfiled * longest * static_cast<double>(options.size());
  }
  return seconds;
}

}  // namespace limber::sched
