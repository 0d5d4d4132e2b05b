// --mean, --std, --size and --crop: how pixels become a network's input.
#pragma once

#include "cli/arguments.h"
#include "cli/inputs.h"

namespace limber {

void add_image_arguments(Arguments& arguments, ImageOptions& options);

}  // namespace limber
