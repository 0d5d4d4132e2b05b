#include "elastic/elastic_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"
#include "base/median.h"
#include "record/record_file.h"
#include "train/select.h"

namespace limber {
namespace {

// Steps are updates; ratios are of times.
constexpr int64_t kSurveyParts =
    4;  // each trains a quarter of the tensors, so that none needs the memory of all
constexpr int64_t kSurveySteps = 4;       // for each part; the first is not timed, its memory is new
constexpr int64_t kWholeSurveySteps = 6;  // for everything: also what the clock is set by (train/pace.h)
constexpr int64_t kSurveyLength = (kSurveyParts + 1) * kSurveySteps;  // 1: the last tensor alone
constexpr double kOtherMachine = 1.3;  // so much slower or faster than in the survey, its times mean little
constexpr int64_t kProbeSteps = 4;     // gradients of one batch alone say little
// Without rho: gains change over a good part of a training, and probes, which train everything, take at most
// this share of the time.
constexpr int64_t kChoices = 12;
constexpr double kProbeShare = 0.08;
// Gains are estimates, and the best of many is partly luck: a smaller set has to be faster than everything by
// this, another set than the present one by that.
constexpr double kClearlyFaster = 1.1, kFaster = 1.03;
constexpr int64_t kRefreshEvery = 64;    // steps from one look at the times to the next: timing is not free
constexpr int64_t kReconsiderAfter = 4;  // steps of a choice: their median bears one that something disturbed
constexpr double kWorthReconsidering = 0.03;  // off the prediction; compiling another choice costs some steps
// Predictions are off by a few percent; more than this is the machine, not the choice, and corrects nothing.
constexpr double kLargestCorrection = 1.12;
constexpr int kMemoryRounds = 12;   // each takes a fifth off: down to 7 % of what the first choice keeps
constexpr double kLeastMore = 1.1;  // times the least that a step can take: what the end of a training has

constexpr std::array<std::string_view, 3> kImportances = {"gain", "gradient-norm", "magnitude"};

size_t size_of(const TensorMask& mask) {
  return static_cast<size_t>(std::count(mask.begin(), mask.end(), true));
}

}  // namespace

std::string_view importance_name(ImportanceKind kind) { return kImportances[static_cast<size_t>(kind)]; }

OptionTexts describe(const ElasticOptions& options) {
  OptionTexts texts = {{"strategy", options.one_way ? "prune" : "elastic"},
                       {"always", fmt::format("{}", fmt::join(options.always, " "))}};
  if (options.rho) {
    texts["rho"] = fmt::format("{}", *options.rho);
    texts["early"] = fmt::format("{}", options.early);
    texts["importance"] = importance_name(options.importance);
    texts["interval"] = fmt::format("{} epochs", options.interval_epochs);
  }
  if (options.interval_steps > 0) texts["interval"] = fmt::format("{} steps", options.interval_steps);
  return texts;
}

Result<std::unique_ptr<StepCosts>> make_step_costs(const TrainingSession& session,
                                                   std::vector<std::string> tensors) {
  StepOptions step = session.options().step;
  step.optimizer.clip_norm = 0;
  const Phase phase = step.micro_batches > 1 ? Phase::kFinish : Phase::kUpdate;
  LIMBER_ASSIGN(Graph full, training_step(session.prepared(), tensors, step, phase));
  LIMBER_ASSIGN(full, recompute_activations(full, recomputable_activations(full).cheap));  // as sessions do
  return std::make_unique<StepCosts>(full, std::move(tensors));
}

std::vector<TensorMask> survey_parts(size_t tensors) {
  const size_t count = std::min<size_t>(kSurveyParts, tensors);
  std::vector<TensorMask> parts(count + 1, TensorMask(tensors, false));
  for (size_t k = 0; k < tensors; ++k) parts[k * count / tensors][k] = true;
  parts.back().back() = true;
  return parts;
}

std::vector<TensorMask> whole_survey_parts(size_t tensors) {
  std::vector<TensorMask> parts(2, TensorMask(tensors, true));
  parts.back().assign(tensors, false);
  parts.back().back() = true;
  return parts;
}

std::vector<std::string> names_of(const StepCosts& costs, const TensorMask& mask) {
  std::vector<std::string> names;
  for (size_t k : indices_of(mask)) names.push_back(costs.tensors()[k]);
  return names;
}

Result<std::unique_ptr<ElasticTrainer>> ElasticTrainer::create(const ElasticOptions& options,
                                                               std::string_view note) {
  if (options.rho && !(*options.rho > 0 && *options.rho <= 1))
    return invalid("rho is {}; it should be above 0 and at most 1", *options.rho);
  std::unique_ptr<ElasticTrainer> made(new ElasticTrainer(options));
  made->restored_ = note;
  return made;
}

// --- state -------------------------------------------------------------------------------------------------

Status ElasticTrainer::on_begin(TrainingSession& session, const TrainingState& /*state*/,
                                const TrainingLength& length) {
  length_ = &length;
  if (!session.options().step.optimizer.effects)
    return invalid("elastic training needs an optimiser that reports what each update does (effects)");
  LIMBER_ASSIGN(auto tensors, select_parameters(session.trainable(), options_.train, options_.freeze));
  LIMBER_ASSIGN(costs_, make_step_costs(session, tensors));
  effects_.resize(tensors.size());
  if (by_rate()) gains_.emplace(tensors.size(), session.options().step.optimizer);
  left_.resize(tensors.size());
  returned_.resize(tensors.size());
  always_.assign(tensors.size(), false);
  if (!options_.always.empty()) {
    LIMBER_ASSIGN(const auto always, select_parameters(tensors, options_.always, {}));
    for (size_t k = 0; k < tensors.size(); ++k)
      always_[k] = std::find(always.begin(), always.end(), tensors[k]) != always.end();
  }
  if (restored_.empty()) {
    lines_.push_back(record_line(TensorsRecord{.names = tensors}));
    return {};
  }
  LIMBER_TRY(restore());
  const Thrift thrift = stage_ == Stage::kTrain || by_rate() ? Thrift::kTime : Thrift::kMemory;
  return trained_.empty() ? Status() : train_mask(session, trained_, thrift);
}

// --- the loop ----------------------------------------------------------------------------------------------

Status ElasticTrainer::on_step_begin(TrainingSession& session, const TrainingState& state) {
  const double start = now_seconds();
  const bool surveyed = stage_ != Stage::kSurvey;
  LIMBER_TRY(advance(session, state.step));
  const double spent = now_seconds() - start;
  if (surveyed) overhead_ += spent;
  debt_ += spent;
  const int64_t since = stage_steps_ % kRefreshEvery;
  session.set_timed(stage_ != Stage::kTrain || (since > 0 && since < 4));
  return {};
}

Status ElasticTrainer::advance(TrainingSession& session, int64_t step) {
  const double asked = asked_rho_;
  const bool changed = asked != rho_;
  rho_ = asked;
  if (stage_ == Stage::kSurvey) {
    const int64_t length = by_rate() ? kWholeSurveySteps + kSurveySteps - 1 : kSurveyLength;
    return stage_steps_ < length ? survey_part(session) : end_survey(session, step);
  }
  if (stage_ == Stage::kProbe) {
    if (changed) return begin_probe(session, step);
    return stage_steps_ < kProbeSteps ? Status() : choose(session, step);
  }
  if (!changed && step < stage_end_)
    return stage_steps_ == kReconsiderAfter ? reconsider(session, step) : Status();
  const bool stale = !changed && survey_is_stale(step);  // who asks for another share gets it at once
  end_choice(step);
  if (stale) return begin_survey(session, step);
  return probes_what_it_trains() ? choose(session, step) : begin_probe(session, step);
}

// A choice of everything knows what everything is worth.
bool ElasticTrainer::probes_what_it_trains() const {
  return by_rate() && size_of(selection_.mask) == selection_.mask.size();
}

// A survey costs time, so that a machine that changes all the time is not surveyed again and again.
bool ElasticTrainer::survey_is_stale(int64_t step) const {
  if (slower_.empty()) return false;
  const auto far = [](double ratio, double limit) { return ratio > limit || ratio < 1 / limit; };
  const bool changed = far(median(slower_), kOtherMachine) ||
                       far(median(measured_) / selection_.seconds / bias_, kLargestCorrection);
  // Surveys are then a tenth of the steps at most, however often the machine changes.
  return changed && (!selection_.within || step - surveyed_at_ >= 10 * kSurveyLength);
}

Status ElasticTrainer::begin_survey(TrainingSession& session, int64_t step) {
  surveyed_full_ = full_seconds();
  surveyed_at_ = step;
  survey_seconds_ = 0;
  stage_ = Stage::kSurvey;
  stage_steps_ = 0;
  costs_->begin_survey();
  return survey_part(session);
}

// From here on seconds are those of the machine as it is now.
Status ElasticTrainer::end_survey(TrainingSession& session, int64_t step) {
  costs_->end_survey();
  lines_.push_back(record_line(SurveyRecord{
      .step = step, .seconds = survey_seconds_, .full_s = costs_->full(), .forward_s = costs_->forward()}));
  bias_ = correction_ = 1;
  if (by_rate()) return choose(session, step);
  if (surveyed_full_ > 0) debt_ *= full_seconds() / surveyed_full_;
  debt_ += survey_seconds_ - static_cast<double>(stage_steps_) * rho_ * full_seconds();
  return begin_probe(session, step);
}

Status ElasticTrainer::survey_part(TrainingSession& session) {
  if (by_rate()) {
    const std::vector<TensorMask> parts = whole_survey_parts(costs_->tensors().size());
    return train_what_fits(session, parts[stage_steps_ < kWholeSurveySteps ? 0 : 1], Thrift::kTime);
  }
  const std::vector<TensorMask> parts = survey_parts(costs_->tensors().size());
  const size_t part = static_cast<size_t>(stage_steps_ / kSurveySteps) % parts.size();
  return train_what_fits(session, parts[part], Thrift::kOthers);
}

// Under a memory limit: as many as fit of those nearest the loss.
Status ElasticTrainer::train_what_fits(TrainingSession& session, TensorMask mask, Thrift thrift) {
  for (;;) {
    const Status status = train_mask(session, mask, thrift);
    const std::vector<size_t> members = indices_of(mask);
    if (status.code() != Code::kResourceExhausted || members.size() < 2) return status;
    for (size_t i = 0; i < members.size() / 2; ++i) mask[members[i]] = false;
  }
}

Status ElasticTrainer::begin_probe(TrainingSession& session, int64_t step) {
  stage_ = Stage::kProbe;
  stage_steps_ = 0;
  measured_.clear();
  std::fill(effects_.begin(), effects_.end(), Effect());
  if (by_rate()) return train_what_fits(session, TensorMask(costs_->tensors().size(), true), Thrift::kTime);
  TensorMask mask = reachable_tensors(*costs_, share_from(step) * costs_->full());
  for (size_t k = 0; k < mask.size(); ++k) {
    if (options_.one_way && !selection_.mask.empty()) mask[k] = mask[k] && selection_.mask[k];
    mask[k] = mask[k] || always_[k];
  }
  if (size_of(mask) == 0) mask.back() = true;
  return train_what_fits(session, std::move(mask), Thrift::kMemory);
}

Status ElasticTrainer::choose(TrainingSession& session, int64_t step) {
  learn_bias();
  before_ = selection_.mask;
  stage_ = Stage::kTrain;
  stage_steps_ = 0;
  LIMBER_TRY(select(session, step));
  stage_end_ = step + interval() - kProbeSteps;
  return {};
}

// Times of gradients that were only seen in surveys and probes are better known now.
Status ElasticTrainer::reconsider(TrainingSession& session, int64_t step) {
  if (probes_what_it_trains()) return {};
  if (options_.one_way) return {};  // a second choice might take back what the first left out
  const double now = costs_->predict(selection_.mask) / selection_.seconds;
  if (std::abs(now - 1) < kWorthReconsidering) return {};
  count_changes(-1);
  return select(session, step);
}

// The best choice by what is known of effects and times.
Status ElasticTrainer::select(TrainingSession& session, int64_t step) {
  SelectionRequest request{.importance = importance(), .always = always_};
  if (!by_rate()) request.seconds = budget(step);
  if (options_.one_way) {
    for (const bool chosen : before_) request.never.push_back(!chosen);
  }
  selection_ = choose_from(request);
  if (session.options().memory_limit > 0) LIMBER_TRY(fit_memory(session, request));
  count_changes(+1);
  LIMBER_TRY(train_mask(session, selection_.mask, Thrift::kTime));
  measured_.clear();
  slower_.clear();
  return record_choice(session, step);
}

// Chooses again with fewer activations kept until the plan fits as it is: making more of them twice would
// cost time that the choice does not count.
Status ElasticTrainer::fit_memory(TrainingSession& session, SelectionRequest& request) {
  for (int round = 0; round < kMemoryRounds; ++round) {
    LIMBER_ASSIGN(const size_t needed, session.needed_bytes(names_of(*costs_, selection_.mask)));
    if (needed <= session.options().memory_limit) return {};
    request.kept_bytes = 0.8 * costs_->kept_bytes(selection_.mask);
    selection_ = choose_from(request);
  }
  return {};
}

Selection ElasticTrainer::choose_from(const SelectionRequest& request) {
  if (!by_rate()) return select_tensors(*costs_, request);
  const auto rate = [](const Selection& one) { return one.importance / one.seconds; };
  const Selection best = select_by_rate(*costs_, request);
  const Selection all = describe(*costs_, request, TensorMask(costs_->tensors().size(), true));
  const bool all_fit = costs_->kept_bytes(all.mask) <= request.kept_bytes;
  const double better = rate(all) > 0 ? rate(best) / rate(all) : 1;
  reason_ = fmt::format("worth {:.2f} times as much for their time as all", better);
  if (all_fit && better < kClearlyFaster) {
    reason_ = fmt::format("no smaller choice is worth clearly more for its time ({:.2f} times)", better);
    return all;
  }
  if (before_.empty() || before_ == all.mask) return best;
  const Selection old = describe(*costs_, request, before_);
  return rate(best) < kFaster * rate(old) && costs_->kept_bytes(before_) <= request.kept_bytes ? old : best;
}

Status ElasticTrainer::on_step_end(TrainingSession& session, const StepReport& report) {
  int64_t since = stage_steps_;
  if (stage_ == Stage::kSurvey) {
    since = !by_rate() ? since % kSurveySteps : since < kWholeSurveySteps ? since : since - kWholeSurveySteps;
  }
  const bool settled = session.timed() && since > 0;
  double slower = 1, twice = 0;
  if (settled && stage_ == Stage::kSurvey)
    costs_->survey(session.timed_plan(), session.step_seconds());
  else if (settled)
    slower = costs_->observe(session.timed_plan(), session.step_seconds());
  if (settled && stage_ == Stage::kProbe)
    twice = costs_->spent_twice(session.timed_plan(), session.step_seconds());
  const double seconds = session.last_seconds() / slower;
  if (stage_ == Stage::kTrain) {
    if (settled) {
      measured_.push_back(seconds);
      slower_.push_back(slower);
    }
    if (report.last) end_choice(report.state.step);
  } else if (stage_ == Stage::kSurvey) {
    survey_seconds_ += seconds;
  } else {
    if (settled) measured_.push_back(seconds - twice / slower);
    if (!by_rate()) {
      const double beyond = seconds - share_from(report.state.step) * full_seconds();
      debt_ += beyond;
      overhead_ += std::max(beyond, 0.0);
    }
  }
  take_effects(session, report);
  ++stage_steps_;
  return {};
}

void ElasticTrainer::take_effects(TrainingSession& session, const StepReport& report) {
  if (by_rate()) {
    gains_->add(trained_indices_, session.effects(), report.rate);
  } else if (stage_ == Stage::kProbe) {
    const std::vector<Effect> effects = session.effects();
    for (size_t i = 0; i < effects.size(); ++i) {
      Effect& sum = effects_[trained_indices_[i]];
      sum.gain += effects[i].gain;
      sum.gradient_squares += effects[i].gradient_squares;
      sum.weight_squares += effects[i].weight_squares;
    }
  }
}

// --- budget and importance ---------------------------------------------------------------------------------

// The mean over the interval that begins with `step`.
double ElasticTrainer::share_from(int64_t step) const {
  TensorMask last(costs_->tensors().size(), false);
  last.back() = true;
  const double least = kLeastMore * costs_->predict(last) / costs_->full();
  const double early = std::clamp(std::min(1 - least / rho_, 1 / rho_ - 1), 0.0, options_.early);
  const auto total = static_cast<double>(std::max<int64_t>(1, length_->total));
  const double end = std::min(static_cast<double>(step + interval()), total);
  const double done = std::min(1.0, 0.5 * (static_cast<double>(step) + end) / total);
  return rho_ * (1 + early * (1 - 2 * done));
}

// Seconds a step may take so that the whole training keeps its share.
double ElasticTrainer::budget(int64_t step) const {
  const double share = share_from(step) * costs_->full(), debt = debt_ / bias_;
  const double left = static_cast<double>(std::max<int64_t>(1, length_->total - step));
  return std::max(share - debt / left, 0.85 * share) / correction_;
}

void ElasticTrainer::learn_bias() {
  if (measured_.empty()) return;
  const double ratio = median(measured_) / costs_->predict(trained_);
  bias_ = bias_ == 1 ? ratio : 0.5 * (bias_ + ratio);
}

int64_t ElasticTrainer::interval() const {
  const auto epochs = static_cast<int64_t>(options_.interval_epochs * static_cast<double>(length_->epoch));
  int64_t steps = options_.interval_steps > 0 ? options_.interval_steps : epochs;
  if (by_rate() && options_.interval_steps == 0) {
    const double probe = static_cast<double>(kProbeSteps) / std::max(selection_.share, 1e-3);
    steps = std::max(length_->total / kChoices, static_cast<int64_t>(probe / kProbeShare));
  }
  return std::max(steps, 2 * kProbeSteps);
}

std::vector<double> ElasticTrainer::importance() const {
  if (by_rate()) return gains_->worth();
  std::vector<double> importance;
  for (const Effect& e : effects_) {
    switch (options_.importance) {
      case ImportanceKind::kGain:
        importance.push_back(e.gain);
        break;
      case ImportanceKind::kGradientNorm:
        importance.push_back(std::sqrt(e.gradient_squares));
        break;
      case ImportanceKind::kMagnitude:
        importance.push_back(std::sqrt(e.weight_squares));
        break;
    }
  }
  return importance;
}

// --- what is trained, and what is said about it ---------------------------------------------------------

Status ElasticTrainer::train_mask(TrainingSession& session, TensorMask mask, Thrift thrift) {
  LIMBER_TRY(session.set_trained(names_of(*costs_, mask), thrift));
  trained_ = std::move(mask);
  trained_indices_.clear();
  std::map<std::string_view, size_t> index;
  for (size_t k = 0; k < costs_->tensors().size(); ++k) index[costs_->tensors()[k]] = k;
  for (const std::string& name : session.trained()) trained_indices_.push_back(index.at(name));
  return {};
}

// From the interval before to this one; by -1 to take it back.
void ElasticTrainer::count_changes(int by) {
  const TensorMask& after = selection_.mask;
  for (size_t k = 0; k < before_.size(); ++k) {
    if (before_[k] && !after[k]) left_[k] += by;
    if (!before_[k] && after[k] && left_[k] > 0) returned_[k] += by;
  }
}

int64_t ElasticTrainer::left() const {
  int64_t total = 0;
  for (int64_t count : left_) total += count;
  return total;
}

int64_t ElasticTrainer::returned() const {
  int64_t total = 0;
  for (int64_t count : returned_) total += count;
  return total;
}

Status ElasticTrainer::record_choice(TrainingSession& session, int64_t step) {
  LIMBER_ASSIGN(const Plan* const plan,
                session.plan(session.options().step.micro_batches > 1 ? Phase::kFinish : Phase::kUpdate));
  SelectionRecord record{.step = step, .chosen = indices_of(selection_.mask)};
  if (!by_rate()) record.rho = rho_;
  record.importance = importance();
  record.predicted_s = selection_.seconds;
  if (!by_rate()) record.budget_s = budget(step);
  record.reason = reason_;
  record.share = selection_.share;
  record.full_s = costs_->full();
  record.forward_s = costs_->forward();
  record.within = selection_.within;
  record.arena_bytes = static_cast<int64_t>(plan->arena_bytes);
  record.left = left();
  record.returned = returned();
  lines_.push_back(record_line(record));
  return {};
}

// How long its steps took in truth, on the machine as it was at first; the next choice makes up for the
// difference.
void ElasticTrainer::end_choice(int64_t step) {
  if (measured_.empty()) return;
  const double seconds = median(measured_), ratio = seconds / selection_.seconds / bias_;
  if (ratio < kLargestCorrection && ratio > 1 / kLargestCorrection) correction_ = ratio;
  lines_.push_back(record_line(ChoiceRecord{.step = step,
                                            .steps = static_cast<int64_t>(measured_.size()),
                                            .predicted_s = selection_.seconds * bias_,
                                            .measured_s = seconds,
                                            .full_s = full_seconds(),
                                            .overhead_s = overhead_}));
  measured_.clear();
}

std::string ElasticTrainer::summary() const {
  if (stage_ != Stage::kTrain) return "";
  const std::string why = reason_.empty() ? "" : "; " + reason_;
  return fmt::format("training {} of {} tensors, {:.0f} % of the time of all{}", size_of(selection_.mask),
                     costs_->tensors().size(), 100 * selection_.share, why);
}

}  // namespace limber
