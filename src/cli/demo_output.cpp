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
  Json variants = Json::array();
  for (const auto& [variant, answers] : p.variants)
    variants.push(Json::object({{"variant", variant}, {"answers", answers}}));
  Json out = Json::object({{"busy", p.busy},
                           {"from_s", p.from_s},
                           {"to_s", p.to_s},
                           {"requests", p.requests},
                           {"answered", p.answered},
                           {"refused", p.refused},
                           {"within", p.share_within()},
                           {"p50_s", p.p50_s},
                           {"p95_s", p.p95_s},
                           {"accuracy", p.accuracy},
                           {"switches", p.switches}});
  out.set("variants", std::move(variants));
  return out;
}

Json serving_json(const DemoServing& serving) {
  Json runs = Json::array();
  for (const DemoServed& run : serving.runs) {
    Json phases = Json::array();
    for (const DemoPhase& phase : run.phases) phases.push(phase_json(phase));
    Json one = Json::object({{"name", run.name}, {"kept_busy", run.kept(true)}});
    one.set("phases", std::move(phases));
    runs.push(std::move(one));
  }
  Json out = Json::object({{"budget_s", serving.budget_s},
                           {"idle_p90_s", serving.idle_p90_s},
                           {"rate", serving.rate},
                           {"images_per_request", serving.batch},
                           {"workers", serving.workers},
                           {"neighbours", serving.neighbours}});
  out.set("runs", std::move(runs));
  return out;
}

}  // namespace

Json demo_json(const DemoReport& report) {
  Json trainings = Json::array(), budgets = Json::array();
  for (const DemoTraining& t : report.trainings) trainings.push(training_json(report, t));
  for (const DemoBudget& b : report.budgets) budgets.push(budget_json(report, b));
  Json out = Json::object({{"folder", report.folder},
                           {"report", report.folder + "/report.html"},
                           {"seed", report.seed},
                           {"threads", report.threads},
                           {"seconds", report.seconds},
                           {"base_accuracy", report.base_accuracy},
                           {"base_accuracy_shifted", report.base_shifted},
                           {"elastic_faster", report.speedup()},
                           {"elastic_points_lost", report.points_lost()},
                           {"equal_time_points_gained", report.points_gained()}});
  out.set("trainings", std::move(trainings));
  out.set("original", Json::object({{"measured_s", report.original_s},
                                    {"accuracy", report.original_accuracy},
                                    {"parameters", report.original_parameters}}));
  out.set("budgets", std::move(budgets));
  Json unreachable = Json::array();
  for (const double share : report.unreachable) unreachable.push(share);
  out.set("unreachable", std::move(unreachable));
  out.set("serving", serving_json(report.serving));
  return out;
}

}  // namespace limber
