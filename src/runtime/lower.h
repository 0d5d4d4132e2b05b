// From a graph and the choices made for it to slots and steps. Internal to compile().
#pragma once

#include "runtime/choice.h"
#include "runtime/plan.h"

namespace limber {

// Fills plan.slots, statics, steps, input_slots, output_slots and row_slots. Reorders and copies become
// steps of their own, with the reason.
Status lower(Plan& plan, const std::vector<bool>& statics, const Assignment& assignment);

// Shares memory where that is legal (in-place results) and gives arena slots their offsets.
Status lay_out_memory(Plan& plan, const Assignment& assignment, size_t max_bytes);

}  // namespace limber
