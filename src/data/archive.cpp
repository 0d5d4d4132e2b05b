#include "data/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>

#include <algorithm>
#include <deque>

#include "base/file.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/text.h"

namespace limber {
namespace {

constexpr size_t kMaxImageBytes = size_t{256} << 20;  // as of an image in a folder
// Images of a compressed archive stay in memory, as they are read in another order every epoch; names always
// do.
constexpr size_t kMaxHeldBytes = size_t{4} << 30;
// What a compressed archive may unpack to, images or not: a minute or two of work, where a bomb would take
// days.
constexpr int64_t kMaxUnpackedBytes = int64_t{32} << 30;
constexpr int64_t kMaxMembers = int64_t{1} << 24;  // as many as the largest image sets in use
constexpr size_t kMaxNameBytes = 1024;  // of a member: files have 255 at most, and a few folders above

struct Free {
  void operator()(archive* a) const { archive_read_free(a); }
};
using Handle = std::unique_ptr<archive, Free>;

// libarchive converts names to the characters of the locale and drops those that it has none for. Names are
// bytes in UTF-8 here, as in a folder, whatever the locale of the process is: for this thread, while in
// scope.
class Utf8Names {
 public:
  Utf8Names() : names_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{})) {
    if (names_ != locale_t{}) before_ = ::uselocale(names_);
  }
  ~Utf8Names() {
    if (names_ == locale_t{}) return;
    ::uselocale(before_);
    ::freelocale(names_);
  }
  Utf8Names(const Utf8Names&) = delete;
  Utf8Names& operator=(const Utf8Names&) = delete;

 private:
  locale_t names_, before_{};
};

// What an Archive's spans point into.
struct Storage {
  std::shared_ptr<const MappedFile> file;  // null: the bytes are someone else's
  std::span<const std::byte> bytes;
  std::deque<std::string> held;
};

bool is_passed_over(std::string_view path) {
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if ((part.starts_with('.') && part != ".") || part == "__MACOSX") return true;
    at = end + 1;
  }
  return false;
}

std::string_view without_dot(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  return path;
}

class ArchiveReader {
 public:
  explicit ArchiveReader(Storage& storage) : storage_(storage), handle_(archive_read_new()) {}

  Status run(std::vector<Member>& images) {
    LIMBER_TRY(open());
    for (int64_t members = 0;; ++members) {
      archive_entry* entry = nullptr;
      const int code = archive_read_next_header(handle_.get(), &entry);
      if (code == ARCHIVE_EOF) return {};
      if (code < ARCHIVE_WARN) return failure();
      if (members == kMaxMembers) return too_much("more than {} files", kMaxMembers);
      LIMBER_TRY(check_unpacked());
      LIMBER_TRY(visit(entry, images));
    }
  }

 private:
  // Not every filter that libarchive has: some start other programs.
  Status open() {
    archive* a = handle_.get();
    if (a == nullptr) return error(Code::kResourceExhausted, "libarchive has no memory");
    archive_read_support_format_tar(a);
    archive_read_support_format_zip(a);
    archive_read_support_filter_gzip(a);
    archive_read_support_filter_bzip2(a);
    archive_read_support_filter_xz(a);
    archive_read_support_filter_zstd(a);
    const auto bytes = storage_.bytes;
    return archive_read_open_memory(a, bytes.data(), bytes.size()) == ARCHIVE_OK ? Status() : failure();
  }

  Status failure() const {
    const char* message = archive_error_string(handle_.get());
    return corrupt("the archive cannot be read: {}", message == nullptr ? "damaged" : message);
  }
  template <typename... Args>
  static Status too_much(fmt::format_string<Args...> format, Args&&... args) {
    return error(Code::kResourceExhausted, "{}; unpack the archive and name the folder",
                 fmt::format(format, std::forward<Args>(args)...));
  }
  Status check_unpacked() const {
    if (archive_filter_bytes(handle_.get(), 0) <= kMaxUnpackedBytes) return {};
    return too_much("it unpacks to more than {} GiB", kMaxUnpackedBytes >> 30);
  }

  Status visit(archive_entry* entry, std::vector<Member>& images) {
    if (archive_entry_filetype(entry) != AE_IFREG) return {};
    const char* name = archive_entry_pathname(entry);
    if (name == nullptr)
      return unsupported("a file's name is not UTF-8; unpack the archive and name the folder");
    const std::string_view path = without_dot(name);
    if (path.size() > kMaxNameBytes) return corrupt("a name of {} bytes", path.size());
    if (!is_image_name(path) || is_passed_over(path)) return {};
    if (archive_entry_is_encrypted(entry) != 0)
      return unsupported("'{}' is encrypted; unpack the archive with its password", path);
    LIMBER_TRY(check_held(path.size()));
    held_bytes_ += path.size();
    Member member{std::string(path), {}};
    LIMBER_TRY(read(member).in(member.path));
    images.push_back(std::move(member));
    return {};
  }

  bool is_in_file(const void* data, size_t size) const {
    const auto bytes = storage_.bytes;
    const auto* at = static_cast<const std::byte*>(data);
    return std::less_equal<>()(bytes.data(), at) && std::less_equal<>()(at, bytes.data() + bytes.size()) &&
           size <= static_cast<size_t>(bytes.data() + bytes.size() - at);
  }

  // One block that libarchive hands out as it lies in the file is all there is to keep; anything else is
  // copied.
  Status read(Member& member) {
    std::string copy;
    bool in_file = true;
    for (;;) {
      const void* data = nullptr;
      size_t size = 0;
      la_int64_t offset = 0;
      const int code = archive_read_data_block(handle_.get(), &data, &size, &offset);
      if (code == ARCHIVE_EOF) break;
      if (code < ARCHIVE_WARN) return failure();
      if (size == 0) continue;
      if (member.bytes.empty() && in_file && offset == 0 && is_in_file(data, size)) {
        member.bytes = {static_cast<const std::byte*>(data), size};
        continue;
      }
      if (std::exchange(in_file, false))
        copy.assign(reinterpret_cast<const char*>(member.bytes.data()), member.bytes.size());
      LIMBER_TRY(append(static_cast<const char*>(data), size, offset, copy));
    }
    if (member.bytes.size() > kMaxImageBytes) return too_large(member.bytes.size());
    if (in_file) return {};
    held_bytes_ += copy.size();
    const std::string& held = storage_.held.emplace_back(std::move(copy));
    member.bytes = std::as_bytes(std::span(held));
    return {};
  }

  Status append(const char* data, size_t size, int64_t offset, std::string& copy) const {
    // Gaps are holes of a sparse file, and images have none.
    if (offset != static_cast<int64_t>(copy.size())) return corrupt("a file with holes");
    if (size > kMaxImageBytes - copy.size()) return too_large(copy.size() + size);
    LIMBER_TRY(check_held(copy.size() + size));
    copy.append(data, size);
    return {};
  }
  Status check_held(size_t more) const {
    if (held_bytes_ + more <= kMaxHeldBytes) return {};
    return too_much("its images take more than {} GiB, which must stay in memory as they are compressed",
                    kMaxHeldBytes >> 30);
  }
  static Status too_large(size_t size) {
    return error(Code::kResourceExhausted, "an image file of {} bytes or more; at most {} are read", size,
                 kMaxImageBytes);
  }

  Storage& storage_;
  Handle handle_;
  size_t held_bytes_ = 0;
};

Result<Archive> parse(std::span<const std::byte> bytes, std::shared_ptr<const MappedFile> file) {
  auto storage = std::make_shared<Storage>();
  storage->file = std::move(file);
  storage->bytes = bytes;
  const Utf8Names names;
  Archive archive;
  LIMBER_TRY(ArchiveReader(*storage).run(archive.images));
  archive.owner = std::move(storage);
  return archive;
}

}  // namespace

bool is_archive_name(std::string_view path) {
  constexpr std::string_view kSuffixes[] = {".zip", ".tar",     ".tar.gz", ".tgz",
                                            ".txz", ".tar.bz2", ".tar.xz", ".tar.zst"};
  const std::string name = lower_case(path);
  return std::any_of(std::begin(kSuffixes), std::end(kSuffixes),
                     [&](std::string_view suffix) { return name.ends_with(suffix); });
}

Result<Archive> parse_archive(std::span<const std::byte> bytes) { return parse(bytes, nullptr); }

Result<Archive> read_archive(const std::string& path) {
  LIMBER_ASSIGN(const auto file, os_files().map(path));
  auto archive = parse(file->bytes(), file);
  if (!archive.ok()) return archive.status().in(path);
  return archive;
}

}  // namespace limber
