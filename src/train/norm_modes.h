// Which statistics the normalisations of a step use: those of the batch, or the running ones.
#pragma once

#include <span>
#include <string>

#include "ir/graph.h"

namespace limber {

// Every BatchNorm uses the statistics of the batch; the running ones are updated. Statistics that are
// computed, or that anything else uses too, cannot be kept up to date: such layers stay as they are.
void use_batch_statistics(Graph& graph);

// BatchNormTraining followed by nothing but a Relu does both.
Status fuse_batch_norm_relu(Graph& graph);

// Normalisations whose result training `names` does not change use the running statistics and leave them as
// they are.
Status freeze_unchanged_norms(Graph& graph, std::span<const std::string> names);

}  // namespace limber
