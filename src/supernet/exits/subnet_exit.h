// A whole subnet as an exit: images that it is sure of leave, the others start again with the model.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "supernet/exits/exits.h"
#include "variant/measure.h"

namespace limber {

// The variant as an exit before the first block, with the parameters it has; the exit itself is not added.
Result<Exit> make_subnet_exit(const ElasticModel& model, const Variant& variant);

// Of these subnets the one becomes the model's only exit (what it had goes) that makes the mean time least
// with at most `max_drop` of the accuracy lost, on the images held. Nothing is taught. kInvalidArgument when
// there is none to choose from or the model is no classifier; on failure it has no exits.
Result<ExitReport> add_subnet_exit(ElasticModel& model, std::span<const Variant> subnets,
                                   const EvaluationSet& held,
                                   const std::vector<std::shared_ptr<Backend>>& backends,
                                   const MeasureOptions& timing, double max_drop);

}  // namespace limber
