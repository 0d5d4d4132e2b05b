// What elastic training keeps in a checkpoint.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "elastic/elastic_trainer.h"

namespace limber {
namespace {

using nlohmann::json;

// No mask where there are none.
TensorMask mask_of(const std::vector<size_t>& indices, size_t tensors) {
  TensorMask mask(indices.empty() ? 0 : tensors, false);
  for (size_t k : indices) mask[k] = true;
  return mask;
}

}  // namespace

void ElasticTrainer::save(OptionTexts& notes) const {
  json effects = json::array();
  for (const Effect& e : effects_) effects.push_back({e.gain, e.gradient_squares, e.weight_squares});
  const json note = {{"stage", static_cast<int>(stage_)},
                     {"stage_steps", stage_steps_},
                     {"stage_end", stage_end_},
                     {"rho", rho_},
                     {"debt", debt_},
                     {"survey_seconds", survey_seconds_},
                     {"surveyed_at", surveyed_at_},
                     {"surveyed_full", surveyed_full_},
                     {"correction", correction_},
                     {"bias", bias_},
                     {"overhead", overhead_},
                     {"effects", effects},
                     {"chosen", indices_of(selection_.mask)},
                     {"chosen_before", indices_of(before_)},
                     {"trained", indices_of(trained_)},
                     {"chosen_seconds", selection_.seconds},
                     {"chosen_importance", selection_.importance},
                     {"chosen_share", selection_.share},
                     {"within", selection_.within},
                     {"left", left_},
                     {"returned", returned_},
                     {"times", costs_->times()},
                     {"thrifty_times", costs_->thrifty_times()}};
  notes["elastic"] = note.dump();
}

Status ElasticTrainer::restore() {
  const size_t tensors = costs_->tensors().size();
  try {
    const json note = json::parse(restored_);
    const int stage = note.at("stage");
    stage_steps_ = note.at("stage_steps");
    stage_end_ = note.at("stage_end");
    rho_ = note.at("rho");
    asked_rho_ = rho_;
    debt_ = note.at("debt");
    survey_seconds_ = note.at("survey_seconds");
    surveyed_at_ = note.value("surveyed_at", int64_t{0});  // older versions knew one survey only
    surveyed_full_ = note.value("surveyed_full", 0.0);
    correction_ = note.at("correction");
    bias_ = note.at("bias");
    overhead_ = note.at("overhead");
    selection_.seconds = note.at("chosen_seconds");
    selection_.importance = note.at("chosen_importance");
    selection_.share = note.at("chosen_share");
    selection_.within = note.at("within");
    left_ = note.at("left").get<std::vector<int64_t>>();
    returned_ = note.at("returned").get<std::vector<int64_t>>();
    auto times = note.at("times").get<StepCosts::Times>();
    auto thrifty_times = note.value("thrifty_times", StepCosts::Times());
    const auto has_any = [](const auto& entry) { return !entry.second.empty(); };
    const bool timed = std::all_of(times.begin(), times.end(), has_any) &&
                       std::all_of(thrifty_times.begin(), thrifty_times.end(), has_any);
    const auto effects = note.at("effects").get<std::vector<std::array<double, 3>>>();
    const auto chosen = note.at("chosen").get<std::vector<size_t>>();
    const auto before = note.value("chosen_before", std::vector<size_t>());
    const auto trained = note.at("trained").get<std::vector<size_t>>();
    const auto known = [&](size_t k) { return k < tensors; };
    const bool sizes = left_.size() == tensors && returned_.size() == tensors && effects.size() == tensors &&
                       std::all_of(chosen.begin(), chosen.end(), known) &&
                       std::all_of(before.begin(), before.end(), known) &&
                       std::all_of(trained.begin(), trained.end(), known);
    if (!sizes || !timed || stage < 0 || stage > static_cast<int>(Stage::kTrain) ||
        !(rho_ > 0 && rho_ <= 1) || stage_steps_ < 0 ||
        (stage == static_cast<int>(Stage::kTrain) && chosen.empty()))
      return error(Code::kCorrupt,
                   "the note about elastic training in the checkpoint does not fit the model");
    stage_ = static_cast<Stage>(stage);
    costs_->set_times(std::move(times), std::move(thrifty_times));
    for (size_t k = 0; k < tensors; ++k) effects_[k] = {effects[k][0], effects[k][1], effects[k][2]};
    selection_.mask = mask_of(chosen, tensors);
    before_ = mask_of(before, tensors);
    trained_ = mask_of(trained, tensors);
  } catch (const json::exception& problem) {
    return error(Code::kCorrupt, "the note about elastic training in the checkpoint cannot be read: {}",
                 problem.what());
  }
  restored_.clear();
  return {};
}

}  // namespace limber
