#include "variant/measure.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/clock.h"
#include "base/median.h"
#include "base/random.h"
#include "ops/op_def.h"
#include "runtime/compile.h"

namespace limber {
namespace {

constexpr int kRunsPerTurn = 3;

void fill_with_noise(Tensor input, Random& random) {
  if (input.dtype() != DType::kF32) {
    std::memset(input.raw(), 0, input.bytes());
    return;
  }
  for (float& x : input.data<float>()) x = static_cast<float>(random.uniform(-1, 1));
}

Result<std::unique_ptr<Session>> make_session(const Graph& graph, std::shared_ptr<Parameters> params,
                                              const std::vector<std::shared_ptr<Backend>>& backends,
                                              const MeasureOptions& options) {
  if (options.threads < 1) return invalid("{} threads, expected 1 or more", options.threads);
  const CompileSettings compiling = batch_settings(graph, 1, options.threads);
  LIMBER_ASSIGN(auto plan, compile(graph, std::move(params), backends, compiling));
  LIMBER_ASSIGN(auto session, Session::create(std::move(plan)));
  Random random(1);
  for (size_t i = 0; i < graph.inputs().size(); ++i) fill_with_noise(session->input(i), random);
  constexpr int kWarmUp = 2;
  for (int i = 0; i < kWarmUp; ++i) LIMBER_TRY(session->run());
  return session;
}

// What the quickest tenth stays within. REQUIRES: not empty
double quick(std::vector<double> times) {
  const auto tenth = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 10);
  std::nth_element(times.begin(), tenth, times.end());
  return *tenth;
}

}  // namespace

Result<double> measure_latency(const Graph& graph, std::shared_ptr<Parameters> params,
                               const std::vector<std::shared_ptr<Backend>>& backends,
                               const MeasureOptions& options) {
  LIMBER_ASSIGN(const auto session, make_session(graph, std::move(params), backends, options));
  std::vector<double> times;
  double total = 0;
  for (int i = 0; i < options.max_runs && (i < options.min_runs || total < options.seconds); ++i) {
    const double start = now_seconds();
    LIMBER_TRY(session->run());
    times.push_back(now_seconds() - start);
    total += times.back();
  }
  return quick(std::move(times));
}

Status TurnMeter::add(const Graph& graph) {
  LIMBER_ASSIGN(auto session, make_session(graph, params_, backends_, options_));
  const size_t steps = session->plan().steps.size();
  entries_.push_back({std::move(session), {}, std::vector<std::vector<double>>(steps)});
  return {};
}

// One run that brings its weights back into the caches, then some that count.
Status TurnMeter::turn(Entry& entry) {
  LIMBER_TRY(entry.session->run());
  std::vector<double> steps, quickest;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRunsPerTurn; ++i) {
    const double start = now_seconds();
    LIMBER_TRY(entry.session->run_timed(steps));
    const double seconds = now_seconds() - start;
    if (seconds >= least) continue;
    least = seconds;
    quickest = steps;
  }
  entry.turns.push_back(least);
  for (size_t k = 0; k < quickest.size(); ++k) entry.steps[k].push_back(quickest[k]);
  return {};
}

Status TurnMeter::run(const std::atomic<bool>* stop) {
  const auto enough = static_cast<double>(entries_.size()) * options_.seconds;
  double total = 0;
  for (int runs = 0; runs < options_.max_runs && (runs < options_.min_runs || total < enough);
       runs += kRunsPerTurn) {
    for (Entry& entry : entries_) {
      if (stop != nullptr && stop->load())
        return error(Code::kResourceExhausted, "stopped while timing {} graphs", entries_.size());
      LIMBER_TRY(turn(entry));
      total += kRunsPerTurn * entry.turns.back();
    }
  }
  compare_rounds();
  return {};
}

void TurnMeter::compare_rounds() {
  const size_t rounds = entries_.empty() ? 0 : entries_[0].turns.size();
  for (size_t r = 0; r < rounds; ++r) {
    std::vector<double> ratios;
    for (const Entry& entry : entries_) ratios.push_back(entry.turns[r] / median(entry.turns));
    slowness_.push_back(median(ratios));
  }
  if (slowness_.empty()) return;
  const double least = quick(slowness_);
  for (double& slowness : slowness_) slowness /= least;
}

double TurnMeter::typical(const std::vector<double>& by_round) const {
  std::vector<double> scaled;
  for (size_t r = 0; r < by_round.size(); ++r) scaled.push_back(by_round[r] / slowness_[r]);
  // What others on the machine do only adds: the quicker rounds say more.
  const auto quarter = scaled.begin() + static_cast<std::ptrdiff_t>(scaled.size() / 4);
  std::nth_element(scaled.begin(), quarter, scaled.end());
  return *quarter;
}

double TurnMeter::seconds(size_t graph) const { return typical(entries_[graph].turns); }

std::vector<double> TurnMeter::step_seconds(size_t graph) const {
  std::vector<double> seconds;
  for (const auto& by_round : entries_[graph].steps) seconds.push_back(typical(by_round));
  return seconds;
}

}  // namespace limber
