// Which model it is.
#pragma once

#include <string>

#include "ir/model.h"

namespace limber {

// SHA-256 of structure and weights: equal for the same model, whatever file it came from.
Result<std::string> identity_of(const Model& model);

}  // namespace limber
