// A smaller network from a larger one by the size of its weights alone: what anybody would try first.
#pragma once

#include "ir/model.h"

namespace limber {

// Of every group of channels the same share, those with the largest weights: as many as leave at most `share`
// of the operations, and at least one each. Nothing is trained, so its accuracy is poor until it is.
// kInvalidArgument when `share` is not above 0 and at most 1, when no channel can be taken out, and when even
// one channel of each group is more than that.
Result<Model> prune_to(const Model& model, double share);

}  // namespace limber
