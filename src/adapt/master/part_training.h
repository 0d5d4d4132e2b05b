// Training steps of networks that are cut from a master and train its weights.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "adapt/master/master.h"
#include "train/training_session.h"

namespace limber::adapt {

struct PartOptions {
  int64_t batch = 128;
  OptimizerOptions optimizer{.kind = OptimizerKind::kAdamW};
  double sparsity = 0;  // the mean of the gates of all layers, by this, is added to the loss
};

// A step takes the kept units' part of every tensor (and of what the optimiser knows of it), runs the small
// network over them, normalised by the batch, and puts them back: what is dropped stays to the bit, and a
// step costs what the small network costs. Cuts of one size share a plan. Use from one thread.
class PartTraining {
 public:
  // Weights, and the state of the optimiser beside them, are those of `model`, whose graph is the master's.
  static Result<std::unique_ptr<PartTraining>> create(const AdaptedModel& model, const Master& master,
                                                      const PartOptions& options);

  // `units`: one list for each of the master's groups. `targets` f32[batch, classes]: what the answers should
  // be, rows sum to 1. Only a step that keeps all units moves running statistics. Returns the loss before.
  // REQUIRES: images and targets of the batch
  Result<float> step(std::span<const std::vector<int64_t>> units, const Tensor& images, const Tensor& targets,
                     double rate);

  size_t compiled() const { return parts_.size(); }

 private:
  struct Part {
    uint64_t key = 0;  // of its graph
    std::shared_ptr<Parameters> params;
    std::unique_ptr<TrainingSession> training;
  };
  PartTraining(const AdaptedModel& model, const Master& master, const PartOptions& options)
      : model_(model), master_(master), options_(options) {}
  Result<Part*> part_for(const SlicedGraph& sliced);
  Result<std::unique_ptr<TrainingSession>> make_training(const Graph& graph,
                                                         std::shared_ptr<Parameters> params) const;
  Status take_all(const SlicedGraph& sliced, Part& part);
  Status put_all(const SlicedGraph& sliced, const Part& part, bool statistics);

  AdaptedModel model_;
  Master master_;
  PartOptions options_;
  std::shared_ptr<WorkArena> memory_;
  std::list<Part> parts_;  // the one used last first
};

}  // namespace limber::adapt
