// How far a training is: a bar on a terminal, lines in a log. On stderr.
#pragma once

#include "train/trainer.h"

namespace limber {

class Progress : public TrainerHook {
 public:
  explicit Progress(int64_t epochs);
  Status on_step_end(TrainingSession& session, const StepReport& report) override;
  Status on_epoch_end(const EpochReport& report) override;
  void clear();  // the bar, before something else is printed

 private:
  void show(const StepReport& report, double now);

  const int64_t epochs_;
  const bool terminal_;
  double shown_;          // when
  bool visible_ = false;  // a bar is on the screen
};

}  // namespace limber
