// What the commands about elastic models share.
#pragma once

#include "cli/arguments.h"
#include "jobs/elastic_work.h"
#include "jobs/json.h"

namespace limber {

// --data, --split, --labels, --images, --workers.
void add_image_source(Arguments& arguments, ImageSource& source, Arguments::Need data);
// --bad-images
void add_bad_images(Arguments& arguments, OnBadImage& to);

// The 95 % interval of an accuracy, as [low, high].
Json interval_json(double accuracy, int64_t images);

}  // namespace limber
