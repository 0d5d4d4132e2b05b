#include "io/model_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"

namespace limber {
namespace {

constexpr std::string_view kNotFinite = "is not finite";

bool all_finite(const Tensor& tensor) {
  if (tensor.dtype() != DType::kF32) return true;
  float sum = 0;  // of zeros, unless something is not finite
  for (const float x : tensor.data<float>()) sum += x * 0.F;
  return sum == 0.F;
}

uint64_t xxh3(std::span<const std::string_view> parts) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  LIMBER_ASSERT(state != nullptr);
  XXH3_64bits_reset(state.get());
  for (const std::string_view part : parts) XXH3_64bits_update(state.get(), part.data(), part.size());
  return XXH3_64bits_digest(state.get());
}

uint64_t fnv(std::span<const std::string_view> parts, uint64_t bytes) {
  Hasher hasher;
  for (const std::string_view part : parts) hasher.add_part(part);
  return hasher.add(bytes).digest();
}

}  // namespace

FileRecord record_of(std::span<const std::string_view> parts, FileRecord::Sum sum) {
  FileRecord record{.sum = sum};
  for (const std::string_view part : parts) record.bytes += part.size();
  record.hash = sum == FileRecord::Sum::kXxh3 ? xxh3(parts) : fnv(parts, record.bytes);
  return record;
}

Result<FileRecord> record_of(const std::string& path) {
  LIMBER_ASSIGN(const auto file, os_files().map(path));
  const std::string_view text = text_of(*file);
  return record_of({&text, 1});
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Result<std::shared_ptr<const MappedFile>> map_checked(const std::string& path, const FileRecord& record) {
  LIMBER_ASSIGN(auto file, os_files().map(path));
  const std::string_view text = text_of(*file);
  if (text.size() != record.bytes)
    return corrupt("{}: {} bytes, the manifest says {}", path, text.size(), record.bytes);
  const bool same = record_of({&text, 1}, record.sum) == record;
  page_out(text.data(), text.size());
  if (!same) return corrupt("{}: its bytes are not those the manifest was written for", path);
  return file;
}

Status sync_folder(const std::string& path) {
  const auto failure = [&](const char* what) {
    return error(Code::kIo, "{}: cannot {}: {}", path, what, std::strerror(errno));
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failure("open");
  // Some file systems cannot sync folders, and need not.
  Status status = ::fsync(fd) == 0 || errno == EINVAL ? Status() : failure("sync");
  ::close(fd);
  return status;
}

Result<FolderLock> FolderLock::take(const std::string& folder, std::string_view busy) {
  const std::string file = folder + "/.lock";
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return error(Code::kIo, "{}: cannot open: {}", file, std::strerror(errno));
  FolderLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
  return error(Code::kIo, "{}: another process {}; wait for it or use another folder", folder, busy);
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}
FolderLock::FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Status check_finite(std::string_view name, const Tensor& tensor) {
  return all_finite(tensor) ? Status() : error(Code::kInternal, "parameter '{}' {}", name, kNotFinite);
}

bool is_divergence(const Status& status) {
  return status.code() == Code::kInternal && status.message().ends_with(kNotFinite);
}

}  // namespace limber
