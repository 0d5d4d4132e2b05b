// A disk that gets full.
#pragma once

#include "base/file.h"

namespace limber::test {

// Takes so many bytes; then writes fail half way as on a full disk.
class FullDisk : public FileSystem {
 public:
  explicit FullDisk(size_t bytes) : left_(bytes) {}
  Result<std::shared_ptr<const MappedFile>> map(const std::string& path) const override {
    return os_files().map(path);
  }
  Result<std::string> read(const std::string& path, size_t limit) const override {
    return os_files().read(path, limit);
  }
  using FileSystem::write;
  Status write(const std::string& path, std::span<const std::string_view> parts) const override {
    size_t bytes = 0;
    for (const std::string_view part : parts) bytes += part.size();
    if (bytes > left_) return error(Code::kIo, "{}: cannot write: No space left on device", path);
    left_ -= bytes;
    return os_files().write(path, parts);
  }
  void make_room(size_t bytes) { left_ = bytes; }

 private:
  mutable size_t left_;
};

}  // namespace limber::test
