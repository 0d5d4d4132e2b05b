#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace limber {
namespace {

Status os_error(const std::string& path, const char* what) {
  const int err = errno;
  const Code code = err == ENOENT ? Code::kNotFound : Code::kIo;
  return error(code, "{}: cannot {}: {}", path, what, std::strerror(err));
}

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  int close() {
    const int rc = ::close(fd_);
    fd_ = -1;
    return rc;
  }

 private:
  int fd_;
};

class OsMapping : public MappedFile {
 public:
  OsMapping(void* data, size_t size) : data_(data), size_(size) {}
  ~OsMapping() override {
    if (size_ > 0) ::munmap(data_, size_);
  }
  std::span<const std::byte> bytes() const override { return {static_cast<const std::byte*>(data_), size_}; }

 private:
  void* data_;
  size_t size_;
};

// Opens a regular file and tells its size.
Result<size_t> regular_size(const Fd& fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return os_error(path, "stat");
  if (!S_ISREG(info.st_mode)) return invalid("{}: not a regular file", path);
  return static_cast<size_t>(info.st_size);
}

Status write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error(path, "write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Status make_parent(const std::string& path) {
  const std::filesystem::path target(path);
  std::error_code ec;
  if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), ec);
  if (ec) return error(Code::kIo, "{}: cannot create folder: {}", path, ec.message());
  return {};
}

class OsAppend : public AppendFile {
 public:
  OsAppend(std::string path, int fd, size_t size) : path_(std::move(path)), fd_(fd), size_(size) {}

  Status append(std::string_view bytes) override {
    const Status written = write_all(fd_.get(), bytes, path_);
    if (written.ok()) {
      size_ += bytes.size();
    } else if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) {
      return written.in("and half of a line stays");
    }
    return written;
  }

  Status sync() override { return ::fdatasync(fd_.get()) == 0 ? Status() : os_error(path_, "sync"); }

 private:
  const std::string path_;
  const Fd fd_;
  size_t size_;
};

class OsFiles : public FileSystem {
 public:
  Result<std::shared_ptr<const MappedFile>> map(const std::string& path) const override {
    Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0) return os_error(path, "open");
    LIMBER_ASSIGN(const size_t size, regular_size(fd, path));
    void* data = nullptr;
    if (size > 0) {
      data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
      if (data == MAP_FAILED) return os_error(path, "map");
    }
    return std::shared_ptr<const MappedFile>(std::make_shared<OsMapping>(data, size));
  }

  Result<std::string> read(const std::string& path, size_t limit) const override {
    Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0) return os_error(path, "open");
    LIMBER_ASSIGN(const size_t size, regular_size(fd, path));
    if (size > limit) {
      return error(Code::kResourceExhausted, "{}: {} bytes, at most {} are read", path, size, limit);
    }
    std::string bytes(size, '\0');
    size_t done = 0;
    while (done < size) {
      const ssize_t n = ::read(fd.get(), bytes.data() + done, size - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return os_error(path, "read");
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    bytes.resize(done);
    return bytes;
  }

  Status write(const std::string& path, std::span<const std::string_view> parts) const override {
    static std::atomic<unsigned> counter{0};
    LIMBER_TRY(make_parent(path));
    const std::string temporary = fmt::format("{}.{}.{}.tmp", path, ::getpid(), counter++);
    Status status = write_synced(temporary, parts);
    if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) status = os_error(path, "rename");
    if (!status.ok()) ::unlink(temporary.c_str());
    return status;
  }

  Result<std::unique_ptr<AppendFile>> append_to(const std::string& path, size_t keep) const override {
    LIMBER_TRY(make_parent(path));
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) return os_error(path, "open");
    auto file = std::make_unique<OsAppend>(path, fd, keep);
    if (::ftruncate(fd, static_cast<off_t>(keep)) != 0) return os_error(path, "cut");
    return std::unique_ptr<AppendFile>(std::move(file));
  }

 private:
  static Status write_synced(const std::string& path, std::span<const std::string_view> parts) {
    Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (fd.get() < 0) return os_error(path, "create");
    for (const std::string_view part : parts) LIMBER_TRY(write_all(fd.get(), part, path));
    if (::fsync(fd.get()) != 0) return os_error(path, "sync");
    if (fd.close() != 0) return os_error(path, "close");
    return {};
  }
};

}  // namespace

const FileSystem& os_files() {
  static const OsFiles* files = new OsFiles;
  return *files;
}

}  // namespace limber
