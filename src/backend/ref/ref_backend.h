// Slow, obvious kernels for every operator: the oracle of all tests, and the fallback for operators a
// faster backend does not have.
#pragma once

#include <memory>

#include "runtime/backend.h"

namespace limber {

std::unique_ptr<Backend> make_ref_backend();

}  // namespace limber
