#pragma once

#include "passes/rewriter.h"

namespace limber {

// Arithmetic with scalar constants that can be written shorter or cheaper with the same result.
Status simplify_arithmetic(Rewriter& rewriter, NodeId node);

}  // namespace limber
