// What a training tells its observer.
#pragma once

#include "jobs/train_job.h"

namespace limber {

// Where it stands, after each update.
class ProgressTeller : public TrainerHook {
 public:
  ProgressTeller(const JobControl& control, const TrainerOptions& options);
  Status on_begin(TrainingSession& session, const TrainingState& state,
                  const TrainingLength& length) override;
  Status on_step_end(TrainingSession& session, const StepReport& report) override;

 private:
  const JobControl& control_;
  const TrainerOptions& options_;
  const double start_;
  const TrainingLength* length_ = nullptr;
  bool told_limit_ = false;
  double first_ = -1;  // share that was done when this process began
};

// What becomes of kept features.
class FeatureTeller : public TrainerHook {
 public:
  explicit FeatureTeller(const JobControl& control) : control_(control) {}
  Status on_step_end(TrainingSession& session, const StepReport& report) override;

 private:
  const JobControl& control_;
  FeatureState told_ = FeatureState::kOff;
};

// What is trained, whenever that changes; and takes a new share of the time from whoever watches.
class ElasticTeller : public TrainerHook {
 public:
  ElasticTeller(const JobControl& control, ElasticTrainer& elastic, const TrainWatch& watch)
      : control_(control), elastic_(elastic), watch_(watch) {}
  Status on_step_begin(TrainingSession& session, const TrainingState& state) override;
  Status on_step_end(TrainingSession& session, const StepReport& report) override;

 private:
  const JobControl& control_;
  ElasticTrainer& elastic_;
  const TrainWatch& watch_;
  std::string said_;
};

// "3/10", or "3" where nobody knows how many there will be (0).
std::string epoch_text(int64_t epoch, int64_t epochs);
// A choice whose steps take more of the time of all than was asked for; empty when they do not. That a
// choice is beyond the budget of its interval alone is no news: budgets fall in the course of a training.
std::string shortfall(const Selection& selection, double rho);
// Of a training that was over before its first choice.
std::string never_chose(int64_t updates, const ElasticTrainer& elastic);

}  // namespace limber
