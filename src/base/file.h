// Files behind an interface, so that tests can inject faults (a full disk, a short read).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace limber {

// Read-only bytes of a file, mapped; unmapped when the last owner goes. Pages nobody touches cost
// no memory.
class MappedFile {
 public:
  virtual ~MappedFile() = default;
  virtual std::span<const std::byte> bytes() const = 0;
};

// A file that only grows. Use from one thread.
class AppendFile {
 public:
  virtual ~AppendFile() = default;
  // With one write, so that a killed process leaves all of it or nothing. When the disk is full, the file is
  // as before.
  virtual Status append(std::string_view bytes) = 0;
  // What was appended survives the machine's crash, not only the program's.
  virtual Status sync() = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual Result<std::shared_ptr<const MappedFile>> map(const std::string& path) const = 0;
  // Fails with kResourceExhausted when the file is larger than `limit` bytes.
  virtual Result<std::string> read(const std::string& path, size_t limit) const = 0;
  // All or nothing: writes a temporary file beside `path`, syncs it and renames it. A crash leaves
  // the old file or the new one. Missing parent folders are created.
  Status write(const std::string& path, std::string_view bytes) const { return write(path, {&bytes, 1}); }
  // The same with the bytes in several parts, written one after the other.
  virtual Status write(const std::string& path, std::span<const std::string_view> parts) const = 0;
  // Keeps the first `keep` bytes of a file that is there and goes on after them. Missing parent folders are
  // created.
  virtual Result<std::unique_ptr<AppendFile>> append_to(const std::string& path, size_t keep) const = 0;
};

// The operating system's files. Never destroyed.
const FileSystem& os_files();

}  // namespace limber
