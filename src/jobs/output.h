// Where jobs may write.
#pragma once

#include <string>

#include "base/status.h"

namespace limber {

// Folders are not made on the way to an output: a path that was mistyped would become one. kNotFound when the
// folder that `path` lies in is not there.
Status check_output_parent(const std::string& path);
// May a file be written there? Its folder must exist, it must not be a folder, nor `source`, which is read,
// nor part of a checkpoint or an elastic model.
Status check_output_file(const std::string& path, const std::string& source);
// May a folder be made there, or be used? Its parent must exist.
Status check_output_folder(const std::string& path);

}  // namespace limber
