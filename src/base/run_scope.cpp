#include "base/run_scope.h"

namespace limber {
namespace {
thread_local int depth = 0;
}

RunScope::RunScope() { ++depth; }
RunScope::~RunScope() { --depth; }
bool running_plan() { return depth > 0; }

}  // namespace limber
