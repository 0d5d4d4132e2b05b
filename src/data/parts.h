// Train and test parts of a data set, by the names people give to folders.
#pragma once

#include <optional>
#include <string>

#include "data/dataset.h"
#include "data/listing.h"

namespace limber {

// The sub-folder that is the part asked for, in a folder that has one for each.
std::optional<std::string> part_folder(const Listing& listing, Split split);
bool has_parts(const Listing& listing);
// kNotFound: what a source without this part is answered.
Status no_split(const std::string& spec, Split split);
// Are the folders of classes found those that are expected? `root` is where they were looked for.
Status check_class_folders(const std::string& root, const ClassNames& found, const ClassNames& expected);

}  // namespace limber
