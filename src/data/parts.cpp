#include "data/parts.h"

#include <algorithm>
#include <array>
#include <vector>

#include "data/classes.h"

namespace limber {

// The sub-folder that is the part asked for, in a folder that has one for each.
std::optional<std::string> part_folder(const Listing& listing, Split split) {
  constexpr std::array kTrain{"train", "training"};
  constexpr std::array kTest{"test", "testing", "val", "valid", "validation"};
  const std::vector<const char*> names = split == Split::kTrain
                                             ? std::vector<const char*>(kTrain.begin(), kTrain.end())
                                             : std::vector<const char*>(kTest.begin(), kTest.end());
  for (const char* name : names) {
    if (std::find(listing.folders.begin(), listing.folders.end(), name) != listing.folders.end()) return name;
  }
  return std::nullopt;
}

bool has_parts(const Listing& listing) {
  const auto train = part_folder(listing, Split::kTrain), test = part_folder(listing, Split::kTest);
  return train && (test || listing.folders.size() == 1);
}

Status no_split(const std::string& spec, Split split) {
  return error(Code::kNotFound,
               "{}: no {} part; expected a {}/ folder or files with '{}' in their names; name the {} images "
               "separately",
               spec, split_name(split), split_name(split), split_name(split), split_name(split));
}

Status check_class_folders(const std::string& root, const ClassNames& found, const ClassNames& expected) {
  for (const std::string& name : expected) {
    if (std::find(found.begin(), found.end(), name) != found.end()) continue;
    return error(Code::kNotFound,
                 "{}: no folder for class '{}'; found {}. There must be one for each class that is known",
                 root, name, quote_some(found));
  }
  for (const std::string& name : found) {
    if (std::find(expected.begin(), expected.end(), name) != expected.end()) continue;
    return invalid("{}: folder '{}' is not one of the {} classes ({}); remove or rename it", root, name,
                   expected.size(), quote_some(expected));
  }
  return {};
}

}  // namespace limber
