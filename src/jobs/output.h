// Where jobs may write.
#pragma once

#include <string>

#include "base/status.h"

namespace limber {

// May a file be written there? Its folder must exist, it must not be a folder, nor `source`, which is read,
// nor part of a checkpoint or an elastic model.
Status check_output_file(const std::string& path, const std::string& source);
// May a folder be made there, or be used? Its parent must exist.
Status check_output_folder(const std::string& path);

}  // namespace limber
