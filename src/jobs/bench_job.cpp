#include "jobs/bench_job.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/clock.h"
#include "base/memory.h"
#include "jobs/measured_step.h"
#include "runtime/timing.h"

namespace limber {
namespace {

int64_t batch_of(const Plan& plan) {
  if (plan.graph.inputs().empty()) return 1;
  const Shape& shape = plan.graph.type(plan.graph.inputs()[0]).shape;
  return shape.rank() > 0 ? shape.dim(0) : 1;
}

}  // namespace

Status check(const BenchJobOptions& options) {
  for (const auto& [name, count] : {std::pair("last", options.last), std::pair("runs", options.runs),
                                    std::pair("warm_up", options.warm_up)}) {
    if (count < 0) return invalid("{} is {}; expected 0 or more", name, count);
  }
  if (!(options.seconds >= 0)) return invalid("seconds is {}; expected 0 or more", options.seconds);
  return {};
}

Result<BenchModel> BenchModel::open(const BenchJobOptions& options) {
  LIMBER_TRY(check(options));
  BenchModel made;
  made.worker_.idle_bytes = process_memory().resident;
  LIMBER_ASSIGN(const Model model, load(options));
  const double start = now_seconds();
  if (options.train || options.last > 0) {
    LIMBER_ASSIGN(made.training_, build_training(model, options, options.last));
    made.worker_.training = made.training_.get();
    made.worker_.run = [session = made.training_.get()] { return session->step().status(); };
    LIMBER_ASSIGN(made.worker_.plan, made.training_->plan());
    made.compile_seconds_ = now_seconds() - start;
  } else {
    LIMBER_ASSIGN(made.plan_, build(model, options, true));
    made.compile_seconds_ = now_seconds() - start;
    LIMBER_ASSIGN(made.session_, Session::create(made.plan_));
    fill_random(*made.session_, options.seed);
    made.worker_.session = made.session_.get();
    made.worker_.run = [session = made.session_.get()] { return session->run(); };
    made.worker_.plan = made.plan_.get();
  }
  for (int i = 0; i < options.warm_up; ++i) LIMBER_TRY(made.worker_.run());
  return made;
}

double BenchResult::percentile(double share) const {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(seconds.size())));
  return seconds[std::clamp<size_t>(rank, 1, seconds.size()) - 1];
}

Result<BenchResult> measure(const BenchModel& model, const BenchJobOptions& options) {
  LIMBER_TRY(check(options));
  const Plan& plan = *model.worker().plan;
  const auto runs = static_cast<size_t>(options.runs);
  BenchResult result{.batch = batch_of(plan),
                     .threads = plan.threads,
                     .arena_bytes = plan.arena_bytes,
                     .planned_bytes = plan.memory_bytes(),
                     .compile_seconds = model.compile_seconds()};
  LIMBER_ASSIGN(result.seconds, runs > 0 ? time_each(model.worker().run, 0, runs, runs)
                                         : time_each(model.worker().run, options.seconds, 1));
  std::sort(result.seconds.begin(), result.seconds.end());
  result.mean = std::accumulate(result.seconds.begin(), result.seconds.end(), 0.0) /
                static_cast<double>(result.seconds.size());
  return result;
}

}  // namespace limber
