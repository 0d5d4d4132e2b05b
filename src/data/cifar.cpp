#include <filesystem>

#include "base/file.h"
#include "data/classes.h"
#include "data/dataset.h"

namespace limber {
namespace {

constexpr int64_t kSide = 32;
constexpr size_t kPlane = kSide * kSide;
constexpr size_t kPixels = 3 * kPlane;
constexpr size_t kMaxNamesFile = 64 << 10;  // bytes; a hundred names are 1 KB

// One image: label bytes, the last of which is the one we use, then three planes.
struct Layout {
  const char* title;
  size_t label_bytes;
  int64_t classes;
  const char* names_file;
  size_t record() const { return label_bytes + kPixels; }
};
constexpr Layout kLayouts[] = {{"CIFAR-10", 1, 10, "batches.meta.txt"},
                               {"CIFAR-100", 2, 100, "fine_label_names.txt"}};
constexpr const char* kCifar10Names[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                         "dog",      "frog",       "horse", "ship", "truck"};

struct Part {
  std::string path;
  std::shared_ptr<const MappedFile> file;
  size_t first;  // index of its first image
  size_t count;
};

class Cifar : public Dataset {
 public:
  Cifar(const Layout& layout, ClassNames classes, std::vector<Part> parts)
      : Dataset(std::move(classes)), layout_(layout), parts_(std::move(parts)) {}

  size_t size() const override { return parts_.back().first + parts_.back().count; }
  int64_t label(size_t index) const override { return record(index)[layout_.label_bytes - 1]; }
  std::string name(size_t index) const override {
    const Part& part = part_of(index);
    return fmt::format("{}[{}]", part.path, index - part.first);
  }
  Result<Sample> get(size_t index) const override {
    LIMBER_ASSIGN(Tensor image, Tensor::allocate({DType::kU8, Shape{kSide, kSide, 3}}));
    const uint8_t* planes = record(index) + layout_.label_bytes;
    uint8_t* out = image.data<uint8_t>().data();
    for (size_t i = 0; i < kPlane; ++i) {
      for (size_t c = 0; c < 3; ++c) *out++ = planes[c * kPlane + i];
    }
    return Sample{std::move(image), label(index)};
  }

 private:
  const Part& part_of(size_t index) const {
    size_t p = 0;
    while (index >= parts_[p].first + parts_[p].count) ++p;
    return parts_[p];
  }
  const uint8_t* record(size_t index) const {
    const Part& part = part_of(index);
    const auto* bytes = reinterpret_cast<const uint8_t*>(part.file->bytes().data());
    return bytes + (index - part.first) * layout_.record();
  }

  const Layout& layout_;
  std::vector<Part> parts_;
};

Status check_labels(const Part& part, const Layout& layout) {
  const auto bytes = part.file->bytes();
  for (size_t i = 0; i < part.count; ++i) {
    const auto label = static_cast<int64_t>(bytes[i * layout.record() + layout.label_bytes - 1]);
    if (label < layout.classes) continue;
    return corrupt("{}[{}]: label {}; {} has labels 0..{}", part.path, i, label, layout.title,
                   layout.classes - 1);
  }
  return {};
}

Result<Part> open_part(const std::string& path, size_t first, const Layout& layout) {
  LIMBER_ASSIGN(auto file, os_files().map(path));
  const size_t size = file->bytes().size();
  if (size == 0 || size % layout.record() != 0) {
    return corrupt(
        "{}: {} bytes, which is not a number of {} images ({} bytes each); the file is cut short or of "
        "another kind",
        path, size, layout.title, layout.record());
  }
  Part part{path, std::move(file), first, size / layout.record()};
  LIMBER_TRY(check_labels(part, layout));
  return part;
}

Result<ClassNames> read_names(const std::string& path) {
  LIMBER_ASSIGN(const std::string text, os_files().read(path, kMaxNamesFile));
  ClassNames names(1);
  for (const char c : text) {
    if (c == '\n') {
      if (!names.back().empty()) names.emplace_back();
    } else if (c != '\r') {
      names.back() += c;
    }
  }
  if (names.back().empty()) names.pop_back();
  return names;
}

Result<ClassNames> names_beside(const std::string& file, CifarKind kind, const Layout& layout) {
  const std::string path = (std::filesystem::path(file).parent_path() / layout.names_file).string();
  auto names = read_names(path);
  if (names.ok() && static_cast<int64_t>(names->size()) != layout.classes) {
    return corrupt("{}: {} class names; {} has {}", path, names->size(), layout.title, layout.classes);
  }
  if (names.ok() || names.status().code() != Code::kNotFound) return names;
  if (kind == CifarKind::kCifar100) return numbered_classes(layout.classes);
  return ClassNames(std::begin(kCifar10Names), std::end(kCifar10Names));
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_cifar(const std::vector<std::string>& files, CifarKind kind,
                                            const ClassNames& expected) {
  LIMBER_ASSERT(!files.empty());
  const Layout& layout = kLayouts[static_cast<size_t>(kind)];
  std::vector<Part> parts;
  size_t count = 0;
  for (const std::string& path : files) {
    LIMBER_ASSIGN(Part part, open_part(path, count, layout));
    count += part.count;
    parts.push_back(std::move(part));
  }
  LIMBER_ASSIGN(const ClassNames names, names_beside(files[0], kind, layout));
  if (!expected.empty() && expected != names) {
    return invalid("{}: {} has the classes {}, but {} are expected", files[0], layout.title,
                   quote_some(names), quote_some(expected));
  }
  return std::unique_ptr<Dataset>(std::make_unique<Cifar>(layout, names, std::move(parts)));
}

}  // namespace limber
