// Training within a share of the time of full training: decides, again and again, what is trained.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elastic/gains.h"
#include "elastic/select.h"
#include "train/trainer.h"

namespace limber {

enum class ImportanceKind : uint8_t {
  kGain,          // gradient times update: how far a step on this tensor lowers the loss
  kGradientNorm,  // of the tensor's gradient
  kMagnitude,     // norm of the tensor itself
};
std::string_view importance_name(ImportanceKind kind);

struct ElasticOptions {
  // Time of the whole training, as a share of training everything; nothing: whatever lowers the loss fastest,
  // of all or of some tensors, for as long as the training is.
  std::optional<double> rho = 0.5;
  double interval_epochs = 3;  // from one choice to the next; without rho, a share of the training
  int64_t interval_steps = 0;  // instead, where above 0
  ImportanceKind importance = ImportanceKind::kGain;
  // Patterns, see train/select.h: what may be trained at all, and of this what is part of every choice.
  std::vector<std::string> train, freeze, always;
  // In the course of the training the share falls from (1 + early) to (1 - early) times rho, or less steeply
  // where the end would lack time for a forward pass or the beginning has enough for all: early steps change
  // more.
  double early = 0.5;
  // What is not chosen never comes back: how training by pruning works, to compare with.
  bool one_way = false;
};

// By the names of the command's options.
OptionTexts describe(const ElasticOptions& options);

// The costs of training parts of `tensors`, without times yet.
Result<std::unique_ptr<StepCosts>> make_step_costs(const TrainingSession& session,
                                                   std::vector<std::string> tensors);
// The parts that a survey trains in turn, with Thrift::kOthers. Together they are all tensors; those of a
// part lie side by side, so that each is seen with the activations kept that it reads, as in later steps, and
// none needs the memory of all. The last is the last tensor alone, for the time of a forward pass of which
// nothing is kept.
std::vector<TensorMask> survey_parts(size_t tensors);
// Without a budget of time or memory: everything, and the last tensor alone.
std::vector<TensorMask> whole_survey_parts(size_t tensors);
std::vector<std::string> names_of(const StepCosts& costs, const TensorMask& mask);

// A training begins with a survey: a few steps that train parts of the tensors in turn and are timed, so
// that the time of any choice is known; parts, and every activation twice that can be computed
// twice, since training everything at once would need the memory that the choice is to save. Then, for each
// interval, a few steps on all tensors within reach of the budget show what each is worth, and the best
// choice is trained until the next interval; its first steps show whether it takes as long as it should, and
// if not, there is a second choice. Every one of these steps trains: no gradient is computed for
// measuring alone. What surveys and probes take beyond the budget is saved in the steps that follow. When the
// machine turns out to be another one than in the survey (something else began or stopped running on it), the
// next interval begins with a new survey.
//
// Without rho there is no budget. Survey and probes train everything, so that nothing is lost where that is
// best; what is chosen is the set that lowers the loss fastest by the clock (gains.h, select_by_rate()), and
// everything unless a smaller set is clearly faster.
class ElasticTrainer : public TrainerHook {
 public:
  // `note`: what save() wrote under "elastic" when a training goes on, else empty.
  static Result<std::unique_ptr<ElasticTrainer>> create(const ElasticOptions& options, std::string_view note);

  bool by_rate() const { return !options_.rho; }
  // From the next step on. Thread-safe. REQUIRES: 0 < rho <= 1, not by_rate()
  void set_rho(double rho) { asked_rho_ = rho; }

  Status on_begin(TrainingSession& session, const TrainingState& state,
                  const TrainingLength& length) override;
  Status on_step_begin(TrainingSession& session, const TrainingState& state) override;
  Status on_step_end(TrainingSession& session, const StepReport& report) override;
  void save(OptionTexts& notes) const override;
  std::vector<std::string> take_lines() override { return std::exchange(lines_, {}); }

  // Null before on_begin().
  const StepCosts* costs() const { return costs_.get(); }
  const Selection& selection() const { return selection_; }
  double rho() const { return rho_; }
  int64_t left() const;      // how often a tensor left the choice
  int64_t returned() const;  // and how often one came back
  // Seconds that choosing took so far: measuring importance (beyond what these steps train), selecting,
  // compiling. The survey is not part of it.
  double overhead() const { return overhead_; }
  // One line for people about the present choice; empty before the first.
  std::string summary() const;

 private:
  enum class Stage : uint8_t { kSurvey, kProbe, kTrain };

  explicit ElasticTrainer(const ElasticOptions& options)
      : options_(options), asked_rho_(options.rho.value_or(1)), rho_(options.rho.value_or(1)) {}
  Status restore();
  Status advance(TrainingSession& session, int64_t step);
  bool survey_is_stale(int64_t step) const;
  Status begin_survey(TrainingSession& session, int64_t step);
  Status end_survey(TrainingSession& session, int64_t step);
  Status survey_part(TrainingSession& session);
  Status begin_probe(TrainingSession& session, int64_t step);
  Status choose(TrainingSession& session, int64_t step);
  Status reconsider(TrainingSession& session, int64_t step);
  Selection choose_from(const SelectionRequest& request);
  bool probes_what_it_trains() const;
  void take_effects(TrainingSession& session, const StepReport& report);
  Status select(TrainingSession& session, int64_t step);
  Status fit_memory(TrainingSession& session, SelectionRequest& request);
  Status train_mask(TrainingSession& session, TensorMask mask, Thrift thrift);
  Status train_what_fits(TrainingSession& session, TensorMask mask, Thrift thrift);
  double budget(int64_t step) const;
  double share_from(int64_t step) const;
  double full_seconds() const { return bias_ * costs_->full(); }
  void learn_bias();
  int64_t interval() const;
  std::vector<double> importance() const;
  void count_changes(int by);
  void end_choice(int64_t step);
  Status record_choice(TrainingSession& session, int64_t step);

  const ElasticOptions options_;
  std::atomic<double> asked_rho_;
  double rho_;
  const TrainingLength* length_ = nullptr;
  std::unique_ptr<StepCosts> costs_;
  TensorMask always_;

  // Saved with a checkpoint.
  Stage stage_ = Stage::kSurvey;
  int64_t stage_steps_ = 0;  // done in this stage
  int64_t stage_end_ = 0;    // kTrain: the update at which the next probe begins
  double debt_ = 0;          // seconds spent beyond the budget by surveys, probes and choosing
  double survey_seconds_ = 0;
  int64_t surveyed_at_ = 0;      // the update at which the last survey began
  double surveyed_full_ = 0;     // full_seconds() before it; 0 if it is the first
  double correction_ = 1;        // measured by predicted time of the last choice, in units of bias_
  double bias_ = 1;              // the same for probes: what steps take beyond the medians of their nodes
  std::vector<Effect> effects_;  // of the last probe
  std::optional<Gains> gains_;   // by_rate()
  Selection selection_;
  TensorMask before_;                     // the choice of the interval before; empty in the first
  TensorMask trained_;                    // now, whatever the stage
  std::vector<size_t> trained_indices_;   // of them, in the session's order
  std::vector<int64_t> left_, returned_;  // by tensor: how often
  std::string restored_;                  // the note, until on_begin()

  std::string reason_;  // of the last choice, for people
  double overhead_ = 0;
  std::vector<double> measured_;  // seconds of timed steps since the choice or the beginning of the probe
  std::vector<double> slower_;    // how much slower than in the survey the machine was in them
  std::vector<std::string> lines_;
};

}  // namespace limber
