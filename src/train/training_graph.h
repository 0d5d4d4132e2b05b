// One training step as a graph: forward, loss, backward and updates.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/parameters.h"
#include "train/loss.h"
#include "train/optimizer.h"

namespace limber {

enum class BatchNormMode : uint8_t {
  kBatch,   // statistics of the batch; running ones are updated
  kFrozen,  // running statistics as they are; parts that are not trained compile as inference
  kAuto,    // kBatch from the first layer on that training changes, kFrozen below it, where nothing changes
};

std::string_view batch_norm_name(BatchNormMode mode);  // "batch", "frozen", "auto"

// What a step does with its gradients.
enum class Phase : uint8_t {
  kUpdate,      // applies them
  kStart,       // of several micro-batches the first: starts sums, kept as state
  kAccumulate,  // adds to the sums
  kFinish,      // the last: adds the sums and applies
  kMeasure,     // gives them, as outputs "gradient/<parameter>"; nothing is updated, no statistics either
};

// By parameter: which of its output channels are trained, ascending. One that is not named is trained whole.
using TrainedChannels = std::map<std::string, std::vector<int64_t>, std::less<>>;

struct StepOptions {
  int64_t batch = 1;
  LossOptions loss;
  bool soft_targets = false;
  OptimizerOptions optimizer;
  BatchNormMode batch_norm = BatchNormMode::kBatch;
  int micro_batches = 1;  // gradients of so many steps make one update
  // An output of the model, f32[], that is added to the loss as it is; empty: none. Not the first.
  std::string penalty;
};

// The model ready to be trained: batch size bound, constants folded, spelled-out operators recognised,
// normalisation in the mode asked for. Its symbolic dimension must be the batch and nothing else. What it
// computes is what the model computes.
Result<Graph> prepare_model(const Graph& model, const StepOptions& options);

// Names of the parameters the loss depends on and that have a gradient, in the order the model reads them.
std::vector<std::string> trainable_parameters(const Graph& prepared);

// The axis of a parameter along which the output channels of what reads it lie. kUnsupported when readers do
// not agree, or are no convolution (grouped ones included), matrix product or batch normalisation.
Result<int> channel_axis(const Graph& graph, ValueId parameter);

// The step that trains exactly `trained`. Outputs: "loss" f32[], "logits" (the model's first output), then
// updates. Inputs: those of the model, those of the loss, and "rate" f32[] where something is applied.
// Of what `channels` names only these channels are trained: their gradients and their state are all there is,
// and the work for them shrinks with their number (see narrow_gradients). The others stay to the bit.
Result<Graph> training_step(const Graph& prepared, std::span<const std::string> trained,
                            const StepOptions& options, Phase phase, const TrainedChannels& channels = {});

// The model as it runs in training, with nothing trained: outputs "logits", by the statistics of the batch,
// then the updates of running statistics, which keep the share `kept` of what they were. REQUIRES: prepared
// with BatchNormMode::kBatch
Result<Graph> statistics_step(const Graph& prepared, double kept);

// Adds to `params`, as zeros, what the optimiser or micro-batches of `step` keep and is not there yet.
Status add_missing_state(const Graph& step, Parameters& params);

// A step needs less memory when activations are made again for the backward pass instead of being kept. The
// first `cheap` of them cost no time that could be measured (what is made again is in the cache when it is
// needed), the others up to a layer each.
struct RecomputableActivations {
  size_t cheap = 0, all = 0;
};
RecomputableActivations recomputable_activations(const Graph& step);
// The step with `count` of them made twice.
Result<Graph> recompute_activations(const Graph& step, size_t count);
// All of them made twice but those between the first and the last layer that reads one of `names`.
Result<Graph> recompute_beyond(const Graph& step, std::span<const std::string> names);

}  // namespace limber
