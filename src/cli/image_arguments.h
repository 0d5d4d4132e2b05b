// How images are read and their pixels become a network's input: --preprocess, --mean,
// --std, --size, --crop, --workers.
#pragma once

#include "cli/arguments.h"
#include "data/loader.h"
#include "jobs/source.h"

namespace limber {

void add_image_arguments(Arguments& arguments, ImageOptions& options);
// --bad-images
void add_bad_images_argument(Arguments& arguments, OnBadImage& to);
// --workers; leave kAutoWorkers in it for the default.
void add_workers_argument(Arguments& arguments, int& workers);

}  // namespace limber
