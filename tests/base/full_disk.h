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
  Result<std::unique_ptr<AppendFile>> append_to(const std::string& path, size_t keep) const override {
    LIMBER_ASSIGN(auto file, os_files().append_to(path, keep));
    return std::unique_ptr<AppendFile>(std::make_unique<Append>(*this, path, std::move(file)));
  }
  void make_room(size_t bytes) { left_ = bytes; }

 private:
  class Append : public AppendFile {
   public:
    Append(const FullDisk& disk, std::string path, std::unique_ptr<AppendFile> file)
        : disk_(disk), path_(std::move(path)), file_(std::move(file)) {}
    Status append(std::string_view bytes) override {
      if (bytes.size() > disk_.left_)
        return error(Code::kIo, "{}: cannot write: No space left on device", path_);
      disk_.left_ -= bytes.size();
      return file_->append(bytes);
    }
    Status sync() override { return file_->sync(); }

   private:
    const FullDisk& disk_;
    const std::string path_;
    const std::unique_ptr<AppendFile> file_;
  };

  mutable size_t left_;
};

}  // namespace limber::test
