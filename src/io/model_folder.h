// What folders that hold a model share: files that are checked against a record, locks, syncing.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "tensor/tensor.h"

namespace limber {

// What a manifest says about another file. The sum finds damage; it does not stop someone who means harm.
struct FileRecord {
  enum class Sum : uint8_t { kXxh3, kFnv };  // FNV: in folders of 0.1, which are read

  uint64_t bytes = 0, hash = 0;
  Sum sum = Sum::kXxh3;
  bool operator==(const FileRecord&) const = default;
};
FileRecord record_of(std::span<const std::string_view> parts, FileRecord::Sum sum = FileRecord::Sum::kXxh3);
Result<FileRecord> record_of(const std::string& path);

std::string_view text_of(const MappedFile& file);
// The file, known to hold what the record says; otherwise kCorrupt naming it. Its pages need not be in
// memory.
Result<std::shared_ptr<const MappedFile>> map_checked(const std::string& path, const FileRecord& record);

// Names in the folder survive a crash from now on.
Status sync_folder(const std::string& path);

// Held by one process at a time, as long as this lives.
class FolderLock {
 public:
  // Fails at once when another process has it; `busy` says what it is doing: "is training there".
  static Result<FolderLock> take(const std::string& folder, std::string_view busy);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;
};

// Weights that are NaN or infinite are not worth keeping. kInternal naming the parameter.
Status check_finite(std::string_view name, const Tensor& tensor);
bool is_divergence(const Status& status);  // is it a failure of check_finite?

}  // namespace limber
