// A first order among filters whose gates are all open.
#pragma once

#include "adapt/master/master.h"

namespace limber::adapt {

// Each gate becomes how large its filter's unit is beside the others of its group (unit_scores, 1 for the
// average one), and the layer in front of it is divided by that: the graph computes what it did, up to
// rounding, and its units have an order to begin with. `params` are the master's; gates must be as
// open_gates() leaves them. Layers whose weights are not their own keep a gate of 1.
Status spread_gates(const Master& master, Parameters& params);

}  // namespace limber::adapt
