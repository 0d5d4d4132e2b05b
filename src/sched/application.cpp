#include "sched/application.h"

#include <algorithm>
#include <cmath>

namespace limber::sched {
namespace {

bool is_share(double x) { return x >= 0 && x <= 1; }
bool is_positive(double x) { return x > 0 && std::isfinite(x); }

Status check_option(const Option& option) {
  if (!is_share(option.before) || !is_share(option.after))
    return invalid("accuracies {} and {} of option '{}' must be in 0..1", option.before, option.after,
                   option.name);
  if (!is_share(option.size))
    return invalid("size {} of option '{}' must be in 0..1", option.size, option.name);
  if (!(option.load >= 0) || !std::isfinite(option.load) || !(option.latency_s >= 0))
    return invalid("load {} and latency {} of option '{}' must not be negative", option.load,
                   option.latency_s, option.name);
  if (!std::all_of(option.seconds.begin(), option.seconds.end(), is_positive))
    return invalid("each of the seconds of option '{}' must be above 0", option.name);
  return {};
}

Status check_application(const Application& application) {
  if (!is_positive(application.importance))
    return invalid("importance {} must be above 0", application.importance);
  if (!is_share(application.minimum_accuracy))
    return invalid("minimum accuracy {} must be in 0..1", application.minimum_accuracy);
  if (!(application.latency_budget_s >= 0))
    return invalid("latency budget {} must not be negative", application.latency_budget_s);
  if (application.options.empty() || application.options.size() > kMaxOptions)
    return invalid("{} options; expected 1 to {}", application.options.size(), kMaxOptions);
  for (const Option& option : application.options) LIMBER_TRY(check_option(option));
  const auto keeps = [&](const Option& option) { return keeps_latency(application, option); };
  if (!std::any_of(application.options.begin(), application.options.end(), keeps))
    return invalid("none of its {} options answers within {} s; allow more, or add a smaller one",
                   application.options.size(), application.latency_budget_s);
  return {};
}

}  // namespace

Status check(std::span<const Application> applications, const Window& window) {
  if (!is_positive(window.seconds)) return invalid("a window of {} s; expected more than 0", window.seconds);
  if (window.threads < 1 || window.threads > kMaxThreads)
    return invalid("{} threads; expected 1 to {}", window.threads, kMaxThreads);
  if (applications.empty() || applications.size() > kMaxApplications)
    return invalid("{} applications; expected 1 to {}", applications.size(), kMaxApplications);
  for (const Application& application : applications)
    if (const Status wrong = check_application(application); !wrong.ok())
      return wrong.in(fmt::format("application '{}'", application.name));
  return {};
}

double worth(const Application& application, double accuracy) {
  return accuracy - kShortfall * std::max(0.0, application.minimum_accuracy - accuracy);
}

bool keeps_latency(const Application& application, const Option& option) {
  return application.latency_budget_s == 0 || option.latency_s <= application.latency_budget_s;
}

double largest_size(const Application& application) {
  double largest = 0;
  for (const Option& option : application.options)
    if (keeps_latency(application, option)) largest = std::max(largest, option.size);
  return largest;
}

double speed(const Option& option, double threads) {
  const std::vector<double>& seconds = option.seconds;
  LIMBER_ASSERT(!seconds.empty());
  const auto whole = std::min(static_cast<size_t>(std::max(0.0, threads)), seconds.size());
  const double below = whole == 0 ? 0 : 1 / seconds[whole - 1];
  if (whole == seconds.size()) return below;
  return below + (threads - static_cast<double>(whole)) * (1 / seconds[whole] - below);
}

}  // namespace limber::sched
