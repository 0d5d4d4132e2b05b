#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace limber {

// Bytes and whatever keeps them alive.
struct FileBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

// Fails with kResourceExhausted when the file, plain or inflated, is larger than `limit` bytes, and before
// anything of that size is allocated. Plain files are mapped. The message of a failure starts with the path.
Result<FileBytes> read_plain_or_gzip(const std::string& path, size_t limit);

}  // namespace limber
