#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace limber {

// What a folder holds, without names that start with '.'. Links are followed.
struct Listing {
  std::vector<std::string> folders;  // by number when all are numbers, by name otherwise
  std::vector<std::string> files;    // by name
};
Result<Listing> list_folder(const std::string& path);

}  // namespace limber
