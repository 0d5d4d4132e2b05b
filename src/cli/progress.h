// How far long work is: a bar on a terminal, lines in a log. On stderr.
#pragma once

#include <string>

#include "train/trainer.h"

namespace limber {

// "[######..................]"
std::string progress_bar(double share);

// A line that is written over on a terminal, and comes now and then in a log.
class ProgressLine {
 public:
  ProgressLine();
  void show(const std::string& text);
  void clear();  // before something else is printed

 private:
  const bool terminal_;
  double shown_;          // when
  bool visible_ = false;  // a line is on the screen
};

enum class TrainingTalk : uint8_t {
  kAll,  // a bar for each epoch and a line at its end
  kBar,  // one bar for the whole training
};

class Progress : public TrainerHook {
 public:
  // `name`: said before each bar, where several trainings take turns.
  explicit Progress(int64_t epochs, TrainingTalk talk = TrainingTalk::kAll, const std::string& name = "");
  Status on_step_end(TrainingSession& session, const StepReport& report) override;
  Status on_epoch_end(const EpochReport& report) override;
  void clear();  // the bar, before something else is printed

 private:
  void show(const StepReport& report, double now);

  const int64_t epochs_;
  const TrainingTalk talk_;
  const std::string name_;
  const bool terminal_;
  const double start_;
  double shown_;          // when
  bool visible_ = false;  // a bar is on the screen
};

}  // namespace limber
