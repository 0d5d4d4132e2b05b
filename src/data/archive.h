// Images inside a .tar or .zip, without unpacking it to disk.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace limber {

bool is_archive_name(std::string_view path);  // .zip, .tar, and .tar.gz and the like

struct Member {
  std::string path;  // inside the archive, without a leading "./"
  std::span<const std::byte> bytes;
};

// The images of an archive in its order, each at hand at any time: in the mapped file where it is stored as
// it is (.tar, .zip without compression), in memory otherwise. Never changes; any thread may read.
struct Archive {
  std::vector<Member> images;
  std::shared_ptr<const void> owner;  // of their bytes
};

// Untrusted: damage, and what unpacks to more than the limits, is a Status that starts with the path. Names
// with a part that begins with '.' or is "__MACOSX" are passed over.
Result<Archive> read_archive(const std::string& path);
// The same of bytes at hand. REQUIRES: they outlive what is returned
Result<Archive> parse_archive(std::span<const std::byte> bytes);

}  // namespace limber
