#include "jobs/output.h"

#include <filesystem>

namespace limber {
namespace {

namespace fs = std::filesystem;

}  // namespace

Status check_output_parent(const std::string& path) {
  std::error_code ignored;
  fs::path full = fs::absolute(path, ignored);
  if (!full.has_filename()) full = full.parent_path();  // "out/"
  const fs::path parent = full.parent_path();
  if (fs::is_directory(parent, ignored)) return {};
  return error(Code::kNotFound, "{}: there is no folder {}; make it first", path, parent.string());
}

Status check_output_file(const std::string& path, const std::string& source) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return invalid("{} is a folder; give the name of a file", path);
  if (fs::exists(path, ignored) && fs::equivalent(path, source, ignored))
    return invalid("{} is what is read; write to another file", path);
  const fs::path folder = fs::absolute(path, ignored).parent_path();
  if (fs::exists(folder / "manifest.json", ignored))
    return invalid("{} is a checkpoint or an elastic model, which files are not added to; write elsewhere",
                   folder.string());
  return check_output_parent(path);
}

Status check_output_folder(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return {};
  if (fs::exists(path, ignored)) return invalid("{} is a file; give the name of a folder", path);
  return check_output_parent(path);
}

}  // namespace limber
