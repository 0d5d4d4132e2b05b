// Training steps of networks that are cut from a master and train its weights.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "adapt/master/master.h"
#include "passes/slice_channels.h"
#include "train/training_session.h"

namespace limber::adapt {

struct PartOptions {
  int64_t batch = 128;
  OptimizerOptions optimizer{.kind = OptimizerKind::kAdamW};
  double sparsity = 0;  // the mean of the gates of all layers, by this, is added to the loss
};

// A step takes the kept units' part of every tensor (and of what the optimiser knows of it), runs the small
// network over them, normalised by the batch, and puts them back: what is dropped stays to the bit, and a
// step costs what the small network costs. Numbers of channels that kernels are slow for are filled up with
// channels of zeros, which change nothing. Cuts of one size share a plan. Use from one thread.
//
// A step that keeps all units is not like the others: it normalises by the running statistics, which no step
// moves, and what its optimiser knows is its own. So the whole is trained as what answers with all filters
// on.
class PartTraining {
 public:
  // Weights, and the state of the optimiser beside them, are those of `model`, whose graph is the master's.
  static Result<std::unique_ptr<PartTraining>> create(const AdaptedModel& model, const Master& master,
                                                      const PartOptions& options);

  // `units`: one list for each of the master's groups. `targets` f32[batch, classes]: what the answers should
  // be, rows sum to 1. Returns the loss before.
  // REQUIRES: images and targets of the batch
  Result<float> step(std::span<const std::vector<int64_t>> units, const Tensor& images, const Tensor& targets,
                     double rate);

  size_t compiled() const { return parts_.size(); }

 private:
  struct Part {
    uint64_t key = 0;    // of its graph
    bool whole = false;  // it keeps all units
    std::shared_ptr<Parameters> params;
    std::unique_ptr<TrainingSession> training;
  };
  PartTraining(const AdaptedModel& model, const Master& master, const PartOptions& options)
      : model_(model), master_(master), options_(options) {}
  struct Cut {
    SlicedGraph kept, filled;  // the units, and these with others whose place zeros take
  };
  Result<Cut> make_cut(std::span<const std::vector<int64_t>> units) const;
  Result<Part*> part_for(const Cut& cut);
  Result<std::unique_ptr<TrainingSession>> make_training(const Graph& graph, bool whole,
                                                         std::shared_ptr<Parameters> params) const;
  Status take_all(const Cut& cut, Part& part);
  Status put_all(const Cut& cut, const Part& part);

  AdaptedModel model_;
  Master master_;
  PartOptions options_;
  std::shared_ptr<WorkArena> memory_;
  std::list<Part> parts_;  // the one used last first
};

}  // namespace limber::adapt
