#include "serve/loadgen/summary.h"

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

// The smallest value that at least this share does not exceed. REQUIRES: sorted, not empty
double percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size()) - 1e-9));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

bool in_time(const LoadRecord& record, double deadline) {
  return record.good() && (deadline <= 0 || record.latency() <= deadline);
}

// 1: right, 0: wrong, -1: nobody knows
int judge(const LoadLog& log, const LoadRecord& record) {
  const int64_t label = log.labels.empty() ? -1 : log.labels[static_cast<size_t>(record.row)];
  if (!record.good() || label < 0 || record.predicted < 0) return -1;
  return record.predicted == label ? 1 : 0;
}

LoadSecond second_of(const LoadLog& log, const std::vector<const LoadRecord*>& records, double deadline) {
  LoadSecond second;
  std::vector<double> latencies;
  std::vector<int64_t> variants(log.variants.size(), 0);
  for (const LoadRecord* record : records) {
    ++second.requests;
    second.missed += in_time(*record, deadline) ? 0 : 1;
    const int right = judge(log, *record);
    second.judged += right >= 0 ? 1 : 0;
    second.right += right == 1 ? 1 : 0;
    if (!record->good()) continue;
    ++second.good;
    latencies.push_back(record->latency());
    if (record->variant >= 0) ++variants[static_cast<size_t>(record->variant)];
  }
  const LatencySummary latency = summarize(std::move(latencies));
  second.mean = latency.mean;
  second.p50 = latency.p50;
  second.p90 = latency.p90;
  second.max = latency.max;
  const auto most = std::max_element(variants.begin(), variants.end());
  if (most != variants.end() && *most > 0) second.variant = static_cast<int>(most - variants.begin());
  return second;
}

std::vector<LoadSecond> seconds_of(const LoadLog& log, double deadline) {
  std::vector<std::vector<const LoadRecord*>> by_second;
  for (const LoadRecord& record : log.records) {
    if (record.malformed) continue;
    const auto second = static_cast<size_t>(std::max(0.0, record.due));
    if (by_second.size() <= second) by_second.resize(second + 1);
    by_second[second].push_back(&record);
  }
  std::vector<LoadSecond> seconds;
  for (const auto& records : by_second) seconds.push_back(second_of(log, records, deadline));
  return seconds;
}

int64_t count_switches(const LoadLog& log) {
  std::vector<const LoadRecord*> answered;
  for (const LoadRecord& record : log.records) {
    if (record.good() && record.variant >= 0) answered.push_back(&record);
  }
  std::sort(answered.begin(), answered.end(),
            [](const LoadRecord* a, const LoadRecord* b) { return a->done < b->done; });
  int64_t switches = 0;
  for (size_t i = 1; i < answered.size(); ++i)
    switches += answered[i]->variant != answered[i - 1]->variant ? 1 : 0;
  return switches;
}

void count_malformed(const LoadRecord& record, LoadSummary& out) {
  if (record.sent == LoadRecord::kNever) return;
  ++out.malformed;
  out.malformed_refused += record.status >= 400 && record.status < 500 ? 1 : 0;
}

void count(const LoadLog& log, const LoadRecord& record, double deadline, LoadSummary& out) {
  ++out.requests;
  out.missed += in_time(record, deadline) ? 0 : 1;
  if (record.status > 0) ++out.statuses[record.status];
  if (record.sent == LoadRecord::kNever) {
    ++out.unsent;
  } else if (record.status == 0) {
    ++out.lost;
  } else if (!record.good()) {
    ++out.refused;
  } else {
    ++out.good;
    out.late += in_time(record, deadline) ? 0 : 1;
    if (record.variant >= 0) ++out.variants[static_cast<size_t>(record.variant)];
    const int right = judge(log, record);
    out.judged += right >= 0 ? 1 : 0;
    out.right += right == 1 ? 1 : 0;
  }
}

}  // namespace

LatencySummary summarize(std::vector<double> seconds) {
  LatencySummary out;
  if (seconds.empty()) return out;
  std::sort(seconds.begin(), seconds.end());
  out.count = static_cast<int64_t>(seconds.size());
  for (const double value : seconds) out.mean += value / static_cast<double>(seconds.size());
  out.p50 = percentile(seconds, 0.5);
  out.p90 = percentile(seconds, 0.9);
  out.p95 = percentile(seconds, 0.95);
  out.p99 = percentile(seconds, 0.99);
  out.p999 = percentile(seconds, 0.999);
  out.max = seconds.back();
  return out;
}

double LoadSummary::missed_share() const {
  return requests > 0 ? static_cast<double>(missed) / static_cast<double>(requests) : 0;
}

std::optional<double> LoadSummary::accuracy() const {
  if (judged == 0) return std::nullopt;
  return static_cast<double>(right) / static_cast<double>(judged);
}

LoadSummary summarize(const LoadLog& log, double deadline) {
  LoadSummary out;
  out.variants.resize(log.variants.size(), 0);
  std::vector<double> latencies, lags;
  for (const LoadRecord& record : log.records) {
    if (record.sent != LoadRecord::kNever) lags.push_back(record.sent - record.due);
    if (record.malformed) {
      count_malformed(record, out);
      continue;
    }
    count(log, record, deadline, out);
    if (record.good()) latencies.push_back(record.latency());
  }
  out.latency = summarize(std::move(latencies));
  out.lag = summarize(std::move(lags));
  out.throughput = log.seconds > 0 ? static_cast<double>(out.good) / log.seconds : 0;
  out.switches = count_switches(log);
  out.seconds = seconds_of(log, deadline);
  return out;
}

}  // namespace limber
