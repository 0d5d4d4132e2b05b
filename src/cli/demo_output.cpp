#include "cli/demo_output.h"

namespace limber {
namespace {

Json training_json(const DemoReport& report, const DemoTraining& t) {
  return Json::object({{"name", t.name},
                       {"train_s", t.seconds},
                       {"wall_s", t.wall_s},
                       {"faster", report.trainings[0].seconds / t.seconds},
                       {"accuracy", t.accuracy},
                       {"best_val_accuracy", t.val_best}});
}

Json budget_json(const DemoReport& report, const DemoBudget& b) {
  return Json::object({{"budget", b.share},
                       {"budget_s", b.share * report.original_s},
                       {"promised", b.promised_share},
                       {"promised_s", b.promised_s},
                       {"measured", report.measured_share(b)},
                       {"measured_s", b.measured_s},
                       {"within", report.within(b)},
                       {"accuracy", b.accuracy},
                       {"parameters", b.parameters},
                       {"variant", b.variant},
                       {"file", report.folder + "/" + b.file}});
}

Json phase_json(const DemoPhase& p) {
  const auto variant = [](const auto& of) {
    return Json::object({{"variant", of.first}, {"answers", of.second}});
  };
  return Json::object({{"busy", p.busy},
                       {"from_s", p.from_s},
                       {"to_s", p.to_s},
                       {"requests", p.requests},
                       {"answered", p.answered},
                       {"refused", p.refused},
                       {"within", p.share_within()},
                       {"p50_s", p.p50_s},
                       {"p95_s", p.p95_s},
                       {"accuracy", p.accuracy},
                       {"switches", p.switches},
                       {"variants", Json::list(p.variants, variant)}});
}

Json serving_json(const DemoServing& serving) {
  const auto run = [](const DemoServed& of) {
    return Json::object(
        {{"name", of.name}, {"kept_busy", of.kept(true)}, {"phases", Json::list(of.phases, phase_json)}});
  };
  return Json::object({{"budget_s", serving.budget_s},
                       {"idle_p90_s", serving.idle_p90_s},
                       {"rate", serving.rate},
                       {"images_per_request", serving.batch},
                       {"workers", serving.workers},
                       {"neighbours", serving.neighbours},
                       {"runs", Json::list(serving.runs, run)}});
}

}  // namespace

Json demo_json(const DemoReport& report) {
  const auto training = [&](const DemoTraining& of) { return training_json(report, of); };
  const auto budget = [&](const DemoBudget& of) { return budget_json(report, of); };
  return Json::object({{"folder", report.folder},
                       {"report", report.folder + "/report.html"},
                       {"seed", report.seed},
                       {"threads", report.threads},
                       {"seconds", report.seconds},
                       {"base_accuracy", report.base_accuracy},
                       {"base_accuracy_shifted", report.base_shifted},
                       {"elastic_faster", report.speedup()},
                       {"elastic_points_lost", report.points_lost()},
                       {"equal_time_points_gained", report.points_gained()},
                       {"trainings", Json::list(report.trainings, training)},
                       {"original", Json::object({{"measured_s", report.original_s},
                                                  {"accuracy", report.original_accuracy},
                                                  {"parameters", report.original_parameters}})},
                       {"budgets", Json::list(report.budgets, budget)},
                       {"unreachable", Json::list(report.unreachable)},
                       {"serving", serving_json(report.serving)}});
}

}  // namespace limber
