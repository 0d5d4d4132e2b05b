#include "serve/stats.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace limber {
namespace {

std::optional<double> quantile(std::vector<float>& values, double share) {
  if (values.empty()) return {};
  const auto at = static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

template <typename T>
void push_bounded(std::deque<T>& queue, T value, size_t most) {
  queue.push_back(std::move(value));
  if (queue.size() > most) queue.pop_front();
}

}  // namespace

uint64_t ServeStats::Totals::all_refused() const {
  return std::accumulate(refused.begin(), refused.end(), uint64_t{0});
}

ServeStats::Totals& ServeStats::Totals::operator+=(const Totals& other) {
  requests += other.requests;
  answered += other.answered;
  late += other.late;
  rescued += other.rescued;
  rows += other.rows;
  switches += other.switches;
  for (size_t i = 0; i < refused.size(); ++i) refused[i] += other.refused[i];
  for (size_t i = 0; i < latency.size(); ++i) latency[i] += other.latency[i];
  latency_sum_s += other.latency_sum_s;
  queue_sum_s += other.queue_sum_s;
  compute_sum_s += other.compute_sum_s;
  switch_sum_s += other.switch_sum_s;
  busy_sum_s += other.busy_sum_s;
  return *this;
}

void ServeStats::arrived(double now) {
  const std::lock_guard lock(mutex_);
  ++totals_.requests;
  ++current_.arrived;
  if (began_ == 0) began_ = now;
}

void ServeStats::done(const Done& request) {
  const std::lock_guard lock(mutex_);
  ++totals_.answered;
  totals_.rows += static_cast<uint64_t>(request.rows);
  totals_.late += request.late ? 1 : 0;
  totals_.rescued += request.rescued ? 1 : 0;
  totals_.latency_sum_s += request.latency_s;
  totals_.queue_sum_s += request.queue_s;
  totals_.compute_sum_s += request.compute_s;
  totals_.busy_sum_s += request.busy_s;
  const auto bucket =
      std::lower_bound(kBuckets.begin(), kBuckets.end(), request.latency_s) - kBuckets.begin();
  ++totals_.latency[static_cast<size_t>(bucket)];
  current_.late += request.late ? 1 : 0;
  // Reservoir sampling: every request of the second is as likely to be in it.
  const auto latency = static_cast<float>(request.latency_s);
  ++current_.seen;
  if (++current_.answered <= kSample) {
    current_.latencies.push_back(latency);
    return;
  }
  random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
  const uint64_t at = (random_ >> 33) % current_.answered;
  if (at < kSample) current_.latencies[at] = latency;
}

void ServeStats::refused(Refusal why) {
  const std::lock_guard lock(mutex_);
  ++totals_.refused[static_cast<size_t>(why)];
  // What comes too late has missed its deadline as much as what is late.
  if (why == Refusal::kTooLate || why == Refusal::kOverloaded) {
    ++current_.late;
    ++current_.seen;
  }
}

void ServeStats::switched(SwitchEvent event, double seconds) {
  const std::lock_guard lock(mutex_);
  ++totals_.switches;
  totals_.switch_sum_s += seconds;
  push_bounded(switches_, std::move(event), kSwitches);
}

void ServeStats::tick(double now, double unix_now, double load, double forecast, const std::string& variant) {
  const std::lock_guard lock(mutex_);
  if (began_ == 0) began_ = now;
  const double length = now - began_;
  // Of a second that has just begun little is known: the last one speaks for what is missing of it.
  const auto count = static_cast<double>(current_.arrived);
  const double before =
      recent_.empty() ? count : static_cast<double>(recent_.back().arrived) / recent_.back().length_s;
  rate_ = count + before * std::max(0.0, 1 - length);
  if (length < 1) return;
  current_.length_s = length;
  ServedSecond second{
      .time = unix_now, .rate = count / length, .load = load, .forecast = forecast, .variant = variant};
  std::vector<float> sorted = current_.latencies;
  second.p50_s = quantile(sorted, 0.5);
  second.p95_s = quantile(sorted, 0.95);
  push_bounded(history_, std::move(second), kHistory);
  push_bounded(recent_, std::exchange(current_, Second{}), kWindow);
  began_ = now;
}

double ServeStats::rate() const {
  const std::lock_guard lock(mutex_);
  return rate_;
}

ServeStats::Totals ServeStats::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

ServeStats::Window ServeStats::window() const {
  const std::lock_guard lock(mutex_);
  Window window;
  std::vector<float> all;
  double seen = 0, late = 0, arrived = 0, length = 0;
  for (const Second& second : recent_) {
    all.insert(all.end(), second.latencies.begin(), second.latencies.end());
    seen += static_cast<double>(second.seen);
    late += static_cast<double>(second.late);
    arrived += static_cast<double>(second.arrived);
    length += second.length_s;
  }
  window.p50_s = quantile(all, 0.5);
  window.p95_s = quantile(all, 0.95);
  window.p99_s = quantile(all, 0.99);
  if (seen > 0) window.miss_share = late / seen;
  if (length > 0) window.rate = arrived / length;
  return window;
}

std::vector<ServedSecond> ServeStats::history() const {
  const std::lock_guard lock(mutex_);
  return {history_.begin(), history_.end()};
}

std::vector<SwitchEvent> ServeStats::switches() const {
  const std::lock_guard lock(mutex_);
  return {switches_.begin(), switches_.end()};
}

}  // namespace limber
