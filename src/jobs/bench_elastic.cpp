#include "jobs/bench_elastic.h"

#include <algorithm>

#include "base/median.h"
#include "jobs/json.h"

namespace limber {
namespace {

constexpr int kProbes = 2;    // steps that importance is summed over
constexpr int kTurns = 4;     // of full training and a choice
constexpr int kObserved = 3;  // steps after a choice that correct its times, before the second one

}  // namespace

Result<std::string> ElasticAnswers::survey(int runs) {
  TrainingSession& session = *worker_.training;
  LIMBER_ASSIGN(costs_, make_step_costs(session, session.trainable()));
  session.set_timed(true);
  for (const TensorMask& part : survey_parts(session.trainable().size())) {
    LIMBER_TRY(session.set_trained(names_of(*costs_, part), Thrift::kOthers));
    LIMBER_TRY(worker_.run());
    for (int i = 0; i < runs; ++i) {
      LIMBER_TRY(worker_.run());
      costs_->survey(session.timed_plan(), session.step_seconds());
    }
  }
  costs_->end_survey();
  session.set_timed(false);
  return Json::object({{"tensors", costs_->tensors().size()},
                       {"complete", costs_->complete()},
                       {"full_ms", 1e3 * costs_->full()},
                       {"forward_ms", 1e3 * costs_->forward()}})
      .line();
}

Result<std::string> ElasticAnswers::random_mask(double share, int runs) {
  if (costs_ == nullptr) return invalid("'survey RUNS' comes first");
  TensorMask mask(costs_->tensors().size(), false);
  mask[random_.below(mask.size())] = true;
  for (size_t k = 0; k < mask.size(); ++k) mask[k] = mask[k] || random_.uniform() < share;
  const double predicted = costs_->predict(mask);
  LIMBER_TRY(observe(mask));  // as a training does, for predictions to come
  return compare(mask, predicted, runs);
}

Result<std::vector<double>> ElasticAnswers::importance(double rho) {
  TrainingSession& session = *worker_.training;
  const TensorMask reachable = reachable_tensors(*costs_, rho * costs_->full());
  std::vector<double> gains(reachable.size(), 0);
  const std::vector<std::string> names = names_of(*costs_, reachable);
  if (names.empty()) return gains;
  LIMBER_TRY(session.set_trained(names));
  for (int i = 0; i < kProbes; ++i) {
    LIMBER_TRY(worker_.run());
    const std::vector<Effect> effects = session.effects();
    for (size_t k = 0, at = 0; k < gains.size(); ++k) {
      if (reachable[k]) gains[k] += effects[at++].gain;
    }
  }
  return gains;
}

Result<std::string> ElasticAnswers::share(double rho, int runs) {
  if (costs_ == nullptr) return invalid("'survey RUNS' comes first");
  SelectionRequest request;
  LIMBER_ASSIGN(request.importance, importance(rho));
  request.seconds = rho * costs_->full();
  Selection selection = select_tensors(*costs_, request);
  LIMBER_TRY(observe(selection.mask));  // then a second choice, as a training makes
  request.seconds = rho * costs_->full();
  selection = select_tensors(*costs_, request);
  return compare(selection.mask, selection.seconds, runs);
}

Status ElasticAnswers::observe(const TensorMask& mask) {
  TrainingSession& session = *worker_.training;
  LIMBER_TRY(session.set_trained(names_of(*costs_, mask)));
  LIMBER_TRY(worker_.run());
  session.set_timed(true);
  for (int i = 0; i < kObserved; ++i) {
    LIMBER_TRY(worker_.run());
    costs_->observe(session.timed_plan(), session.step_seconds());
  }
  session.set_timed(false);
  return {};
}

// In turns with full training, since the machine gets faster and slower. The first step after a change is
// left out: its memory is new. Ends with the choice trained.
Result<std::string> ElasticAnswers::compare(const TensorMask& mask, double predicted, int runs) {
  TrainingSession& session = *worker_.training;
  const std::vector<std::string> chosen = names_of(*costs_, mask), all = costs_->tensors();
  std::vector<double> measured, full, ratios;
  for (int turn = 0; turn < kTurns; ++turn) {
    std::vector<double> here, all_here;
    for (const auto& [names, times] : {std::pair(&all, &all_here), std::pair(&chosen, &here)}) {
      LIMBER_TRY(session.set_trained(*names));
      LIMBER_TRY(worker_.run());
      for (int i = 0; i < runs; ++i) {
        LIMBER_TRY(worker_.run());
        times->push_back(session.last_seconds());
      }
    }
    full.push_back(median(all_here));
    measured.push_back(median(here));
    ratios.push_back(measured.back() / full.back());
  }
  return Json::object({{"tensors", chosen.size()},
                       {"predicted_ms", 1e3 * predicted},
                       {"predicted_full_ms", 1e3 * costs_->full()},
                       {"measured_ms", 1e3 * median(measured)},
                       {"full_ms", 1e3 * median(full)},
                       {"ratio", median(ratios)}})
      .line();
}

}  // namespace limber
