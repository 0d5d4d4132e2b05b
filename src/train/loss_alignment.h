// Losses that pull features back to where the classifier learnt to read them.
#pragma once

#include "train/loss.h"

namespace limber {

// REQUIRES: kind is kMoments, kCovariance or kKernel; see add_loss
Result<ValueId> add_alignment(Graph& graph, ValueId logits, const LossOptions& options);

}  // namespace limber
