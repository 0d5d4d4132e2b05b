// What elastic training keeps in a checkpoint.
#include <algorithm>

#include "elastic/elastic_trainer.h"
#include "record/fields.h"

namespace limber {
namespace {

struct ElasticNote {
  int64_t stage = 0, stage_steps = 0, stage_end = 0;
  double rho = 1, debt = 0, survey_seconds = 0;
  int64_t surveyed_at = 0;
  double surveyed_full = 0, correction = 1, bias = 1, overhead = 0;
  std::vector<std::vector<double>> effects;              // by tensor: gain, squares of gradient and weight
  std::vector<uint64_t> chosen, chosen_before, trained;  // tensors
  double chosen_seconds = 0, chosen_importance = 0, chosen_share = 1;
  bool within = true;
  std::vector<int64_t> left, returned;  // by tensor
  StepCosts::Times times, thrifty_times;
  std::vector<std::vector<double>> gains;  // by tensor; none where there is a share
  std::string reason;

  // What is optional is missing in notes of versions that knew one survey only.
  static void fields(auto& self, auto& field) {
    field("stage", self.stage);
    field("stage_steps", self.stage_steps);
    field("stage_end", self.stage_end);
    field("rho", self.rho);
    field("debt", self.debt);
    field("survey_seconds", self.survey_seconds);
    field("surveyed_at", self.surveyed_at, Need::kOptional);
    field("surveyed_full", self.surveyed_full, Need::kOptional);
    field("correction", self.correction);
    field("bias", self.bias);
    field("overhead", self.overhead);
    field("effects", self.effects);
    field("chosen", self.chosen);
    field("chosen_before", self.chosen_before, Need::kOptional);
    field("trained", self.trained);
    field("chosen_seconds", self.chosen_seconds);
    field("chosen_importance", self.chosen_importance);
    field("chosen_share", self.chosen_share);
    field("within", self.within);
    field("left", self.left);
    field("returned", self.returned);
    field("times", self.times);
    field("thrifty_times", self.thrifty_times, Need::kOptional);
    field("gains", self.gains, Need::kOptional);
    field("reason", self.reason, Need::kOptional);
  }
};

// No mask where there are none.
TensorMask mask_of(const std::vector<uint64_t>& indices, size_t tensors) {
  TensorMask mask(indices.empty() ? 0 : tensors, false);
  for (size_t k : indices) mask[k] = true;
  return mask;
}

bool fits(const ElasticNote& note, size_t tensors) {
  const auto known = [&](const std::vector<uint64_t>& list) {
    return std::all_of(list.begin(), list.end(), [&](uint64_t k) { return k < tensors; });
  };
  const auto timed = [](const StepCosts::Times& times) {
    return std::all_of(times.begin(), times.end(), [](const auto& entry) { return !entry.second.empty(); });
  };
  const auto possible = [](const std::vector<double>& gain) { return Gains::is_state(gain); };
  const auto three = [](const std::vector<double>& effect) { return effect.size() == 3; };
  return note.left.size() == tensors && note.returned.size() == tensors && note.effects.size() == tensors &&
         std::all_of(note.effects.begin(), note.effects.end(), three) && known(note.chosen) &&
         known(note.chosen_before) && known(note.trained) && timed(note.times) && timed(note.thrifty_times) &&
         (note.gains.empty() || note.gains.size() == tensors) &&
         std::all_of(note.gains.begin(), note.gains.end(), possible) && note.rho > 0 && note.rho <= 1;
}

}  // namespace

void ElasticTrainer::save(OptionTexts& notes) const {
  ElasticNote note{
      .stage = static_cast<int64_t>(stage_), .stage_steps = stage_steps_, .stage_end = stage_end_};
  note.rho = rho_;
  note.debt = debt_;
  note.survey_seconds = survey_seconds_;
  note.surveyed_at = surveyed_at_;
  note.surveyed_full = surveyed_full_;
  note.correction = correction_;
  note.bias = bias_;
  note.overhead = overhead_;
  for (const Effect& e : effects_) note.effects.push_back({e.gain, e.gradient_squares, e.weight_squares});
  note.chosen = indices_of(selection_.mask);
  note.chosen_before = indices_of(before_);
  note.trained = indices_of(trained_);
  note.chosen_seconds = selection_.seconds;
  note.chosen_importance = selection_.importance;
  note.chosen_share = selection_.share;
  note.within = selection_.within;
  note.left = left_;
  note.returned = returned_;
  note.times = costs_->times();
  note.thrifty_times = costs_->thrifty_times();
  if (gains_) note.gains = gains_->state();
  note.reason = reason_;
  notes["elastic"] = format_fields(note);
}

Status ElasticTrainer::restore() {
  auto parsed = parse_fields<ElasticNote>(restored_);
  LIMBER_TRY(parsed.status().in("the note about elastic training in the checkpoint cannot be read"));
  ElasticNote& note = *parsed;
  const size_t tensors = costs_->tensors().size();
  const auto last = static_cast<int64_t>(Stage::kTrain);
  if (!fits(note, tensors) || note.stage > last || (note.stage == last && note.chosen.empty()))
    return corrupt("the note about elastic training in the checkpoint does not fit the model");
  stage_ = static_cast<Stage>(note.stage);
  stage_steps_ = note.stage_steps;
  stage_end_ = note.stage_end;
  rho_ = note.rho;
  asked_rho_ = rho_;
  debt_ = note.debt;
  survey_seconds_ = note.survey_seconds;
  surveyed_at_ = note.surveyed_at;
  surveyed_full_ = note.surveyed_full;
  correction_ = note.correction;
  bias_ = note.bias;
  overhead_ = note.overhead;
  for (size_t k = 0; k < tensors; ++k)
    effects_[k] = {note.effects[k][0], note.effects[k][1], note.effects[k][2]};
  selection_.mask = mask_of(note.chosen, tensors);
  before_ = mask_of(note.chosen_before, tensors);
  trained_ = mask_of(note.trained, tensors);
  selection_.seconds = note.chosen_seconds;
  selection_.importance = note.chosen_importance;
  selection_.share = note.chosen_share;
  selection_.within = note.within;
  left_ = std::move(note.left);
  returned_ = std::move(note.returned);
  if (gains_) gains_->set_state(note.gains);
  reason_ = std::move(note.reason);
  costs_->set_times(std::move(note.times), std::move(note.thrifty_times));
  restored_.clear();
  return {};
}

}  // namespace limber
