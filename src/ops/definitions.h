// Declares the definition of every operator; the family files define them with constinit, so that
// op_def() works before main() and a missing definition does not link. Internal to ops/.
#pragma once

#include "ops/op_def.h"

namespace limber {

#define LIMBER_OP(name) extern const OpDef k##name##Op;
#include "ir/op_list.inc"
#undef LIMBER_OP

}  // namespace limber
