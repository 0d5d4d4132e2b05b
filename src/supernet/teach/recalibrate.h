// Statistics of normalisation for a variant as a whole.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/parameters.h"
#include "runtime/backend.h"
#include "tensor/tensor.h"

namespace limber {

// Parameters of `graph` with the running statistics of every BatchNorm measured anew on these batches of
// images, which need no labels: where blocks were replaced, later layers see other data than they were
// trained with. Everything else is a copy; `params` stays as it is. Batches have one size.
// kInvalidArgument when there is no batch or nothing to measure.
Result<std::shared_ptr<Parameters>> recalibrate(const Graph& graph, const Parameters& params,
                                                const std::vector<std::shared_ptr<Backend>>& backends,
                                                std::span<const Tensor> batches, int threads);

// Images that recalibrate() with few batches runs through the graph, some of them several times.
double recalibration_images(int64_t batch);

}  // namespace limber
