// How much each constraint matters at the moment, as it is met more or less.
#pragma once

#include "porting/goals.h"

namespace limber {

// By constraint 0..1: the share of the way from `start` to the limit that is left at `now`. 0 where there is
// no limit or it is kept, also where it was never missed; more than at the start counts as all of the way.
// All are 0 exactly when the limits are kept.
Figures loss_weights(const Figures& start, const Figures& now, const Figures& limits);

bool all_zero(const Figures& weights);

}  // namespace limber
