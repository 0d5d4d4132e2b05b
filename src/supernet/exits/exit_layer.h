// The linear layer of an exit: features it does without while it learns, weights it does without for good.
#pragma once

#include <span>
#include <string_view>

#include "base/random.h"
#include "variant/elastic_model.h"

namespace limber {

inline constexpr std::string_view kDropoutInput = "dropout";

// The exit with a second input, "dropout" f32[N, features], which multiplies what its linear layer reads:
// with ones it is the exit. kInvalidArgument when it is no exit of make_exit().
Result<Graph> with_dropout(const Graph& exit);
// Each element is 0 with this probability, else 1 / (1 - share): on average features are what they were.
// REQUIRES: 0 <= share < 1
void draw_dropout(Random& random, double share, std::span<float> mask);

// How many of `width` features a class reads in a linear layer that keeps this share of its weights.
int64_t features_read(int64_t width, double kept);

// From now on each class reads only so many features, those it has the largest weights for: weights
// [classes, read] and the numbers of the features, i32, instead of [classes, features]. What optimisers kept
// for the weights goes. kInvalidArgument as above, also when the layer is sparse already.
Status make_sparse(ElasticModel& model, Exit& exit, double kept);

}  // namespace limber
