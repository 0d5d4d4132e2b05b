// Pictures of domains, for people.
#pragma once

#include <string>

#include "base/status.h"

namespace limber {

// One image of each class, those of `above` over those of `below`, as PNG.
// REQUIRES: data sets of the same classes, with images of one size that begin with one of each class
Result<std::string> draw_samples(const std::string& above, const std::string& below);

}  // namespace limber
