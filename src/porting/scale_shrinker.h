// Sparse normalisation scales: what is worth nothing to the loss goes to zero.
#pragma once

#include <vector>

#include "passes/channel_groups.h"
#include "train/trainer.h"

namespace limber {

// A few times in a training, scales go towards zero by the same amount for all of a group, and stay there
// unless the loss brings them back: a proximal step, which no optimiser distorts.
class ScaleShrinker : public TrainerHook {
 public:
  // `penalties`: by group, 0..1. A group of penalty 1 loses `share` of its mean scale in all. `params` are
  // those that are trained.
  static Result<ScaleShrinker> make(const Graph& graph, const ChannelGroups& groups,
                                    std::span<const double> penalties, double share,
                                    std::shared_ptr<Parameters> params);

  Status on_begin(TrainingSession& session, const TrainingState& state,
                  const TrainingLength& length) override;
  Status on_step_end(TrainingSession& session, const StepReport& report) override;

 private:
  struct Scales {
    std::string name;
    std::vector<int64_t> indices;
    double amount = 0;  // in all
  };
  Status shrink() const;

  std::vector<Scales> scales_;
  std::shared_ptr<Parameters> params_;
  int64_t every_ = 1;
  double part_ = 1;  // of the amount that goes at a time
};

}  // namespace limber
