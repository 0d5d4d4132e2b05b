// What the commands about elastic models share.
#pragma once

#include "base/interval.h"
#include "cli/arguments.h"
#include "jobs/elastic_work.h"
#include "jobs/json.h"

namespace limber {

// --data, --split, --labels, --images, --workers.
void add_image_source(Arguments& arguments, ImageSource& source, Arguments::Need data);

// As [low, high].
Json interval_json(const Interval& interval);

}  // namespace limber
