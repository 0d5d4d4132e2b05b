#include "supernet/exits/exits.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "supernet/exits/exit_balance.h"
#include "supernet/exits/exit_judge.h"
#include "supernet/exits/exit_layer.h"
#include "supernet/exits/exit_tuning.h"
#include "supernet/operators/work.h"
#include "train/evaluate.h"
#include "train/optimizer.h"
#include "variant/measure.h"

namespace limber {
namespace {

constexpr double kWorthwhile = 0.01;  // of the model's time: what an exit must save
constexpr double kFrozenTrial = 0.3;  // of the trial: exits learn by themselves first
// Of the model's time: an exit later than this saves too little to ask, and tuning more blocks is too much.
constexpr double kMostTime = 0.85, kMostTuned = 0.7;
constexpr double kDense = 0.4;      // of teaching: exits have all their weights before the best are kept
constexpr int kStageRounds = 5;     // of a stage: after each its accuracy is looked at
constexpr double kLooking = 0.1;    // of the time of stages: what looking takes, at most
constexpr size_t kLeastLooked = 4;  // batches, however long they take
constexpr double kLeastTime = 0.2;  // what is known before is too little to leave with, and costs every image

ExitOutcomes outcomes_of(const ExitOutcomes& all, std::span<const ExitPlace> places,
                         std::vector<size_t> chosen, double full_seconds) {
  std::sort(chosen.begin(), chosen.end());
  ExitOutcomes some;
  double passed = 0;
  for (const size_t p : chosen) {
    passed += places[p].exit_seconds;
    some.endings.push_back(all.endings[p]);
    some.endings.back().seconds = places[p].seconds + passed;
  }
  some.endings.push_back(all.endings.back());
  some.endings.back().seconds = full_seconds + passed;
  return some;
}

void forget_exits(ElasticModel& model) {
  for (const Exit& exit : model.exits) forget_parameters(model, exit);
  model.exits.clear();
}

// A part of a teaching, between these shares of it.
struct TeachingPart {
  double from = 0, until = 1;
};

class ExitFinder {
 public:
  ExitFinder(ElasticModel& model, std::shared_ptr<const Dataset> data, const EvaluationSet& held,
             const std::vector<std::shared_ptr<Backend>>& backends, const ExitOptions& options)
      : model_(model), data_(std::move(data)), held_(held), backends_(backends), options_(options) {}

  Result<ExitReport> run() {
    LIMBER_ASSIGN(classes_, count_classes(model_.base));
    clear();
    LIMBER_TRY(find_places());
    const ExitTrainerOptions& how = options_.teaching.trainer;
    LIMBER_ASSIGN(targets_, ExitTargets::create(model_, backends_,
                                                {how.batch, how.threads, options_.distill, data_->size()}));
    LIMBER_TRY(probe());
    if (!stopped()) LIMBER_TRY(try_candidates());
    if (!stopped()) LIMBER_TRY(teach());
    report_.stopped = stopped();
    for (size_t e = 0; e < model_.exits.size(); ++e) LIMBER_TRY(keep_weights(e));
    forget_optimizer();
    if (!model_.exits.empty())
      LIMBER_TRY(balance_exits(model_, report_.variant, held_, backends_, measuring(), options_.max_drop));
    return report_;
  }

  void clear() {
    remove_exits(model_);
    report_.variant = original_variant(model_);
  }

 private:
  bool stopped() const { return options_.teaching.stop != nullptr && options_.teaching.stop->load(); }

  // What optimisers keep is of no use any more.
  void forget_optimizer() {
    for (const std::string& name : model_.params->names()) {
      if (name.starts_with("optimizer/")) model_.params->erase(name);
    }
  }

  double most_time() const { return (options_.tune ? kMostTuned : kMostTime) * report_.full_seconds; }
  // Seconds for each place: exits are compared with each other, by the quickest of some runs.
  MeasureOptions measuring() const { return {.threads = options_.teaching.trainer.threads, .seconds = 0.02}; }

  int64_t storage_of(size_t exits) const {
    const double all = options_.storage * static_cast<double>(parameter_elements(model_.base));
    return static_cast<int64_t>(all / static_cast<double>(exits));
  }

  // Where an exit of an equal share of the storage can be, early enough to save something.
  Status find_places() {
    LIMBER_ASSIGN(report_.full_seconds, measure_latency(model_.base, model_.params, backends_, measuring()));
    const Variant original = original_variant(model_);
    const int blocks = static_cast<int>(model_.blocks.size());
    const int64_t most = storage_of(static_cast<size_t>(options_.max_exits));
    for (int after = 1; after < blocks && !stopped(); ++after) {
      if (!design_exit(features_after(model_, after), classes_, most, options_.kept_weights)) continue;
      LIMBER_ASSIGN(const Graph before, materialize_blocks(model_, original, 0, after));
      LIMBER_ASSIGN(const double seconds, measure_latency(before, model_.params, backends_, measuring()));
      report_.probed.push_back({.after = after, .seconds = seconds});
      if (options_.progress)
        options_.progress(ExitPhase::kTiming, {static_cast<double>(after), static_cast<double>(blocks)});
    }
    drop_places();
    if (!report_.probed.empty() || stopped()) return {};
    return invalid(
        "no exit of at most {} parameters fits behind any of {} blocks; allow more (storage) or "
        "fewer exits",
        most, blocks);
  }

  // Those too early or too late, unless all are. Fewer blocks never take longer: whatever else the machine
  // did only adds to a time.
  void drop_places() {
    double least = report_.full_seconds;
    for (auto place = report_.probed.rbegin(); place != report_.probed.rend(); ++place)
      place->seconds = least = std::min(least, place->seconds);
    const auto outside = [&](const ExitPlace& place) {
      return place.seconds > most_time() || place.seconds < kLeastTime * report_.full_seconds;
    };
    const bool some = !std::all_of(report_.probed.begin(), report_.probed.end(), outside);
    if (some) std::erase_if(report_.probed, outside);
  }

  // Exits at these places, not taught yet.
  Status set_exits(std::vector<ExitPlace>& places,
                   const std::function<ExitDesign(const ExitPlace&)>& design) {
    forget_exits(model_);
    sparse_.assign(places.size(), false);
    for (ExitPlace& place : places) {
      LIMBER_ASSIGN(Exit exit, make_exit(model_, place.after, design(place),
                                         fmt::format("after{}", place.after), options_.teaching.seed));
      LIMBER_ASSIGN(place.exit_seconds, measure_latency(exit.graph, model_.params, backends_, measuring()));
      model_.exits.push_back(std::move(exit));
    }
    return {};
  }

  // Weights of a linear layer that are too small, unless they are gone.
  Status keep_weights(size_t exit) {
    if (options_.kept_weights >= 1 || sparse_[exit]) return {};
    sparse_[exit] = true;
    return make_sparse(model_, model_.exits[exit], options_.kept_weights);
  }

  ExitTrainerOptions trainer_options() const {
    ExitTrainerOptions how = options_.teaching.trainer;
    how.seed = options_.teaching.seed + phases_;
    return how;
  }

  Status teach_with(ExitTeacher& teacher, double share, double rate, ExitPhase phase,
                    const TeachingPart& part) {
    ExitTeachingOptions how = options_.teaching;
    how.seconds *= share * (part.until - part.from);
    how.rate = rate;
    how.from = part.from;
    how.until = part.until;
    how.seed += phases_++;  // other images first than before
    how.progress = [&](const ExitProgress& p) {
      if (options_.progress) options_.progress(phase, p);
    };
    return teach_exits(teacher, data_, how).status();
  }

  Status teach_frozen(double share, ExitPhase phase, const TeachingPart& part = {}) {
    LIMBER_ASSIGN(const auto teacher, make_exit_teacher(model_, targets_, backends_, trainer_options()));
    return teach_with(*teacher, share, options_.teaching.rate, phase, part);
  }

  Status tune(double share, ExitPhase phase, const TeachingPart& part = {}) {
    LIMBER_ASSIGN(const auto teacher,
                  make_exit_tuner(model_, report_.variant, targets_, backends_, trainer_options()));
    return teach_with(*teacher, share, options_.tuning_rate, phase, part);
  }

  Result<ExitOutcomes> judge(std::vector<ExitPlace>& places) {
    LIMBER_ASSIGN(ExitOutcomes outcomes, judge(held_));
    for (size_t p = 0; p < places.size(); ++p) places[p].accuracy = share_correct(outcomes.endings[p]);
    return outcomes;
  }

  Result<ExitOutcomes> judge(const EvaluationSet& set) {
    const int64_t batch = set.images.empty() ? 1 : set.images[0].shape().dim(0);
    LIMBER_ASSIGN(const auto runner,
                  ExitRunner::create(model_, report_.variant, backends_,
                                     {.batch = batch, .threads = options_.teaching.trainer.threads}));
    return judge_exits(*runner, set);
  }

  Status probe() {
    if (report_.probed.empty()) return {};
    LIMBER_TRY(set_exits(report_.probed, [](const ExitPlace&) { return ExitDesign{}; }));
    LIMBER_TRY(teach_frozen(options_.probe_share, ExitPhase::kProbing));
    LIMBER_ASSIGN(const ExitOutcomes outcomes, judge(report_.probed));
    accuracy_ = share_correct(outcomes.endings.back());
    forget_exits(model_);
    return {};
  }

  // Of places that lie close together in time the one with the best probe.
  std::vector<ExitPlace> candidates() const {
    std::vector<ExitPlace> best(static_cast<size_t>(std::max(1, options_.candidates)));
    for (const ExitPlace& place : report_.probed) {
      const double least = kLeastTime * report_.full_seconds;
      const double share = std::max(0.0, place.seconds - least) / (most_time() - least);
      const auto bin =
          std::min(best.size() - 1, static_cast<size_t>(share * static_cast<double>(best.size())));
      if (best[bin].after == 0 || place.accuracy > best[bin].accuracy) best[bin] = place;
    }
    std::erase_if(best, [](const ExitPlace& place) { return place.after == 0; });
    return best;
  }

  ExitDesign design(const ExitPlace& place, size_t exits) const {
    return design_exit(features_after(model_, place.after), classes_, storage_of(exits),
                       options_.kept_weights)
        .value_or(ExitDesign{});
  }

  Status try_candidates() {
    report_.tried = candidates();
    tuned_ = options_.tune ? report_.tried.back().after : 0;
    const auto most = static_cast<size_t>(options_.max_exits);
    LIMBER_TRY(set_exits(report_.tried, [&](const ExitPlace& place) { return design(place, most); }));
    const bool together = options_.tune && options_.order == TuningOrder::kTogether;
    const double frozen = together ? kFrozenTrial * options_.trial_share : options_.trial_share;
    LIMBER_TRY(teach_frozen(frozen, ExitPhase::kTrying));
    if (together) {
      LIMBER_ASSIGN(report_.variant, add_tuned_blocks(model_, tuned_));
      LIMBER_TRY(tune(options_.trial_share - frozen, ExitPhase::kTrying));
    }
    const double start = now_seconds();
    LIMBER_ASSIGN(const ExitOutcomes outcomes, judge(report_.tried));
    judging_s_ = now_seconds() - start;
    // Blocks that learn for one exit alone are of no use to those behind it, which learn in their turn: all
    // do.
    if (options_.tune && !together) tuned_ = static_cast<int>(model_.blocks.size()) - 1;
    return keep_best(outcomes, report_.tried);
  }

  // One at least, whether it pays or not: calibration may still find that it is never taken.
  Status keep_best(const ExitOutcomes& outcomes, const std::vector<ExitPlace>& places) {
    // Tuned blocks may have forgotten images that the model knows from its own training.
    const double least = std::min(accuracy_, share_correct(outcomes.endings.back())) - options_.max_drop;
    auto chosen = choose_places(outcomes, places, report_.full_seconds, options_.max_exits, least);
    if (chosen.empty()) chosen = {places.size() - 1};
    std::vector<Exit> kept;
    for (size_t p = 0; p < places.size(); ++p) {
      if (std::find(chosen.begin(), chosen.end(), p) == chosen.end()) {
        forget_parameters(model_, model_.exits[p]);
      } else {
        kept.push_back(std::move(model_.exits[p]));
      }
    }
    model_.exits = std::move(kept);
    sparse_.assign(model_.exits.size(), false);
    remove_tuned_blocks(model_, true);
    if (tuned_ == 0) return {};
    LIMBER_ASSIGN(report_.variant, add_tuned_blocks(model_, tuned_));
    return {};
  }

  // Without tuning, fewer exits than planned share the storage: they are made anew, larger.
  Status teach() {
    const double share = 1 - options_.probe_share - options_.trial_share;
    if (options_.tune && options_.order != TuningOrder::kTogether) return tune_in_stages(share);
    if (options_.tune) {
      return teach_in_parts([&](const TeachingPart& part) { return tune(share, ExitPhase::kTuning, part); });
    }
    if (model_.exits.size() < static_cast<size_t>(options_.max_exits)) {
      std::vector<ExitPlace> places;
      for (const Exit& exit : model_.exits) places.push_back({.after = exit.after});
      LIMBER_TRY(set_exits(places, [&](const ExitPlace& place) { return design(place, places.size()); }));
    }
    return teach_in_parts(
        [&](const TeachingPart& part) { return teach_frozen(share, ExitPhase::kTeaching, part); });
  }

  // With all weights before, and then with those that are kept.
  Status teach_in_parts(const std::function<Status(const TeachingPart&)>& teach) {
    if (options_.kept_weights >= 1) return teach({});
    LIMBER_TRY(teach({0, kDense}));
    for (size_t e = 0; e < model_.exits.size(); ++e) LIMBER_TRY(keep_weights(e));
    return stopped() ? Status() : teach({kDense, 1});
  }

  // --- stage after stage ----------------------------------------------------------------------------------

  // Exits are in the order of their places. What a stage does not need is left to those after it.
  Status tune_in_stages(double share) {
    const double end = now_seconds() + share * options_.teaching.seconds;
    const size_t endings = model_.exits.size() + 1;
    choose_looked_at(kLooking * share * options_.teaching.seconds /
                     static_cast<double>(endings * kStageRounds));
    for (size_t ending = 0; ending < endings && !stopped(); ++ending) {
      const double left = std::max(0.0, end - now_seconds()) / static_cast<double>(endings - ending);
      LIMBER_TRY(tune_stage(ending, left));
    }
    return {};
  }

  // In rounds, until it is as accurate as asked for. In the last one nothing before it changes any more, so
  // that what it learns fits what is there.
  Status tune_stage(size_t ending, double seconds) {
    const double start = now_seconds();
    ExitStage stage{.after = ending < model_.exits.size() ? model_.exits[ending].after
                                                          : static_cast<int>(model_.blocks.size())};
    for (int round = 0; round < kStageRounds && !stopped(); ++round) {
      if (round == kStageRounds / 2 && ending < model_.exits.size()) LIMBER_TRY(keep_weights(ending));
      const double left = std::max(0.0, start + seconds - now_seconds());
      const bool back = options_.order == TuningOrder::kStagesBack && ending > 0 && round + 1 < kStageRounds;
      LIMBER_ASSIGN(const bool kept, tune_round(ending, back, left / (kStageRounds - round), round));
      stage.taken_back += kept ? 0 : 1;
      stage.accuracy = last_[ending];
      const bool sparse = options_.kept_weights >= 1 || round >= kStageRounds / 2;
      if (sparse && !back && stage.accuracy >= accuracy_ - options_.max_drop) break;
    }
    stage.seconds = now_seconds() - start;
    report_.stages.push_back(stage);
    best_ = last_;
    return {};
  }

  // False when what it changed in blocks and exits before was taken back, as one of these got worse.
  Result<bool> tune_round(size_t ending, bool back, double seconds, int round) {
    LIMBER_ASSIGN(const StageParameters parameters, stage_parameters(model_, report_.variant, ending));
    std::map<std::string, Tensor> before;
    for (size_t i = 0; back && i < parameters.earlier.size(); ++i) {
      LIMBER_ASSIGN(const Tensor tensor, model_.params->get(parameters.earlier[i]));
      LIMBER_ASSIGN(before[parameters.earlier[i]], tensor.copy());
    }
    {
      LIMBER_ASSIGN(const auto teacher, make_exit_tuner(model_, report_.variant, targets_, backends_,
                                                        trainer_options(), TuningStage{ending, back}));
      if (teacher == nullptr) {
        LIMBER_ASSIGN(last_, accuracies());
        return true;
      }
      const TeachingPart part{static_cast<double>(round) / kStageRounds, (round + 1.0) / kStageRounds};
      const double share = seconds / options_.teaching.seconds / (part.until - part.from);
      LIMBER_TRY(teach_with(*teacher, share, options_.tuning_rate, ExitPhase::kTuning, part));
    }
    LIMBER_ASSIGN(last_, accuracies());
    if (!back) return true;
    const bool worse = !std::equal(best_.begin(), best_.begin() + static_cast<std::ptrdiff_t>(ending),
                                   last_.begin(), std::less_equal<>());
    if (!worse) {
      best_ = last_;
      return true;
    }
    for (const auto& [name, tensor] : before) {
      for (const std::string& state : optimizer_state(name)) model_.params->erase(state);
      model_.params->set(name, tensor);
    }
    return false;
  }

  // As many of the images held out as can be judged in so many seconds.
  void choose_looked_at(double seconds) {
    const auto all = held_.images.size();
    const auto affordable = static_cast<size_t>(static_cast<double>(all) * seconds / judging_s_);
    const size_t count = std::min(all, std::max(affordable, kLeastLooked));
    looked_at_.images.assign(held_.images.begin(), held_.images.begin() + static_cast<std::ptrdiff_t>(count));
    looked_at_.labels.assign(held_.labels.begin(), held_.labels.begin() + static_cast<std::ptrdiff_t>(count));
  }

  // Of exits, by their places, and the end of the model.
  Result<std::vector<double>> accuracies() {
    LIMBER_ASSIGN(const ExitOutcomes outcomes, judge(looked_at_));
    std::vector<double> shares;
    for (const ExitOutcomes::Ending& ending : outcomes.endings) shares.push_back(share_correct(ending));
    return shares;
  }

  ElasticModel& model_;
  const std::shared_ptr<const Dataset> data_;
  const EvaluationSet& held_;
  const std::vector<std::shared_ptr<Backend>>& backends_;
  const ExitOptions& options_;
  int64_t classes_ = 0;
  std::shared_ptr<ExitTargets> targets_;
  uint64_t phases_ = 0;
  int tuned_ = 0;             // so many blocks
  double accuracy_ = 0;       // of the model
  std::vector<bool> sparse_;  // by exit: only the weights that are kept are left
  // Of stages: images their accuracies are of, what judging all takes, and accuracies of the endings that the
  // stages before reached, and now.
  EvaluationSet looked_at_;
  double judging_s_ = 0;
  std::vector<double> best_, last_;
  ExitReport report_;
};

}  // namespace

std::string_view phase_name(ExitPhase phase) {
  switch (phase) {
    case ExitPhase::kTiming:
      return "timing blocks";
    case ExitPhase::kProbing:
      return "probing places";
    case ExitPhase::kTrying:
      return "trying exits";
    case ExitPhase::kTeaching:
      return "teaching exits";
    case ExitPhase::kTuning:
      return "tuning exits and blocks";
  }
  LIMBER_UNREACHABLE();
}

void remove_exits(ElasticModel& model) {
  forget_exits(model);
  remove_tuned_blocks(model, false);
}

std::vector<size_t> choose_places(const ExitOutcomes& outcomes, std::span<const ExitPlace> places,
                                  double full_seconds, int count, double least_accuracy) {
  std::vector<size_t> chosen;
  double least = full_seconds;
  while (static_cast<int>(chosen.size()) < count) {
    size_t best = places.size();
    double best_seconds = least - kWorthwhile * full_seconds;
    for (size_t p = 0; p < places.size(); ++p) {
      if (std::find(chosen.begin(), chosen.end(), p) != chosen.end()) continue;
      std::vector<size_t> with = chosen;
      with.push_back(p);
      const ExitPoint point =
          calibrate_exits(outcomes_of(outcomes, places, with, full_seconds), least_accuracy);
      if (point.seconds < best_seconds) best = p, best_seconds = point.seconds;
    }
    if (best == places.size()) break;
    chosen.push_back(best);
    least = best_seconds;
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

Result<ExitReport> add_exits(ElasticModel& model, const std::shared_ptr<const Dataset>& data,
                             const EvaluationSet& held, const std::vector<std::shared_ptr<Backend>>& backends,
                             const ExitOptions& options) {
  if (options.max_exits < 1) return invalid("{} exits, expected 1 or more", options.max_exits);
  if (!(options.kept_weights > 0 && options.kept_weights <= 1))
    return invalid("a share of {} of the weights is kept, expected above 0 and at most 1",
                   options.kept_weights);
  if (const double dropout = options.teaching.trainer.dropout; !(dropout >= 0 && dropout < 1))
    return invalid("a dropout of {}, expected 0 or more and less than 1", dropout);
  ExitFinder finder(model, data, held, backends, options);
  auto report = finder.run();
  if (!report.ok()) finder.clear();
  return report;
}

}  // namespace limber
