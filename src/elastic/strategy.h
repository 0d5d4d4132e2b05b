// Fixed choices of tensors to compare with.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "train/trainer.h"

namespace limber {

// Of `tensors`, those of the last layer: all that are read by the last node with a weight matrix or after it.
std::vector<std::string> last_layer(const Graph& graph, const std::vector<std::string>& tensors);

// Trains everything in the first half; then tensors stop one after another, from the input upwards, the last
// but one at the end (as FreezeOut does with its linear schedule).
class FreezeTrainer : public TrainerHook {
 public:
  Status on_begin(TrainingSession& session, const TrainingState& state,
                  const TrainingLength& length) override;
  Status on_step_begin(TrainingSession& session, const TrainingState& state) override;

 private:
  const TrainingLength* length_ = nullptr;
  std::vector<std::string> tensors_;  // from input to loss
};

// Scales and shifts of normalisations, biases, and the last layer.
std::vector<std::string> norms_and_biases(const Graph& graph, const std::vector<std::string>& tensors);

}  // namespace limber
