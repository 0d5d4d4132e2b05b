#include "supernet/exits/subnet_exit.h"

#include "supernet/exits/exit_judge.h"

namespace limber {
namespace {

// The mean time over the images with the model's exits, at the confidence that is best.
Result<double> mean_time(const ElasticModel& model, const EvaluationSet& held,
                         const std::vector<std::shared_ptr<Backend>>& backends, const MeasureOptions& timing,
                         double max_drop) {
  const Variant original = original_variant(model);
  const int64_t batch = held.images[0].shape().dim(0);
  LIMBER_ASSIGN(const auto runner,
                ExitRunner::create(model, original, backends, {.batch = batch, .threads = timing.threads}));
  LIMBER_ASSIGN(ExitOutcomes outcomes, judge_exits(*runner, held));
  LIMBER_TRY(time_exits(model, original, *runner, backends, timing, outcomes));
  return calibrate_exits(outcomes, share_correct(outcomes.endings.back()) - max_drop).seconds;
}

}  // namespace

Result<Exit> make_subnet_exit(const ElasticModel& model, const Variant& variant) {
  if (variant.exit >= 0 || variant.confidence > 0)
    return invalid("variant '{}' has exits of its own, expected one that runs to the end",
                   print(model, variant));
  Exit exit{"subnet", 0, {}};
  LIMBER_ASSIGN(exit.graph, materialize(model, variant));
  return exit;
}

Result<ExitReport> add_subnet_exit(ElasticModel& model, std::span<const Variant> subnets,
                                   const EvaluationSet& held,
                                   const std::vector<std::shared_ptr<Backend>>& backends,
                                   const MeasureOptions& timing, double max_drop) {
  remove_exits(model);
  if (held.images.empty()) return invalid("no images to find a confidence with");
  ExitReport report{.variant = original_variant(model)};
  LIMBER_ASSIGN(report.full_seconds, measure_latency(model.base, model.params, backends, timing));
  std::vector<Exit> best;
  double least = 0;
  for (const Variant& subnet : subnets) {
    LIMBER_ASSIGN(Exit exit, make_subnet_exit(model, subnet));
    model.exits = {std::move(exit)};
    const auto seconds = mean_time(model, held, backends, timing, max_drop);
    if (seconds.ok() && (best.empty() || *seconds < least)) best = model.exits, least = *seconds;
    model.exits.clear();
    if (!seconds.ok()) return seconds.status();
  }
  if (best.empty()) return invalid("there is no subnet to make an exit of");
  model.exits = std::move(best);
  return report;
}

}  // namespace limber
