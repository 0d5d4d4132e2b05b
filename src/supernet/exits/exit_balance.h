// One confidence for all exits, made to suit each of them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "supernet/exits/exit_judge.h"

namespace limber {

// For each exit the factor of its logits with which calibrate_exits() finds the least mean time: an exit that
// is too sure of itself gets one below 1. Classes that exits choose stay the same. `logits` are by exit,
// image and class; `outcomes` has the exits, the model's end and the seconds.
std::vector<double> balance_factors(std::span<const std::vector<float>> logits, size_t classes,
                                    ExitOutcomes outcomes, double least_accuracy);

// Multiplies the classifiers of all exits by their factors, as found on this set. `blocks` says which variant
// passes them.
Status balance_exits(ElasticModel& model, const Variant& blocks, const EvaluationSet& set,
                     const std::vector<std::shared_ptr<Backend>>& backends, const MeasureOptions& timing,
                     double max_drop);

}  // namespace limber
