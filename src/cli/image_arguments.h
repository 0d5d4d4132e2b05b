// How images are read and their pixels become a network's input: --mean, --std, --size, --crop, --workers.
#pragma once

#include "cli/arguments.h"
#include "jobs/source.h"

namespace limber {

void add_image_arguments(Arguments& arguments, ImageOptions& options);
// --workers; leave kAutoWorkers in it for the default.
void add_workers_argument(Arguments& arguments, int& workers);

}  // namespace limber
