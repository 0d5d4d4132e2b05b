// Which model it is.
#pragma once

#include <string>

#include "ir/model.h"

namespace limber {

// Equal for models of the same structure with the same weights, whatever file they came from.
std::string identity_of(const Model& model);

}  // namespace limber
