#include <algorithm>
#include <map>

#include "data/archive.h"
#include "data/classes.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/parts.h"

namespace limber {
namespace {

class ArchiveDataset : public Dataset {
 public:
  struct Image {
    const Member* member;
    uint32_t label;
  };

  ArchiveDataset(std::string path, ClassNames classes, Archive archive, std::vector<Image> images)
      : Dataset(std::move(classes)),
        path_(std::move(path)),
        archive_(std::move(archive)),
        images_(std::move(images)) {}

  size_t size() const override { return images_.size(); }
  int64_t label(size_t index) const override { return images_[index].label; }
  std::string name(size_t index) const override { return path_ + "/" + images_[index].member->path; }
  Result<Sample> get(size_t index) const override {
    auto image = decode_image(images_[index].member->bytes);
    if (!image.ok()) return image.status().in(name(index));
    return Sample{*std::move(image), label(index)};
  }

 private:
  std::string path_;
  Archive archive_;  // its members do not move when it does
  std::vector<Image> images_;
};

// A member below the folder that is looked at.
struct Below {
  const Member* member;
  std::string_view path;

  std::string_view folder() const { return path.substr(0, path.find('/')); }
  bool is_file() const { return path.find('/') == std::string_view::npos; }
  bool is_in_class() const { return std::count(path.begin(), path.end(), '/') == 1; }
};

// What the folder holds that all are below.
Listing list(const std::vector<Below>& all) {
  Listing listing;
  for (const Below& one : all) {
    auto& names = one.is_file() ? listing.files : listing.folders;
    if (names.empty() || names.back() != one.folder()) names.emplace_back(one.folder());
  }
  sort_names(listing.folders);
  listing.folders.erase(std::unique(listing.folders.begin(), listing.folders.end()), listing.folders.end());
  return listing;
}

std::vector<Below> enter(const std::vector<Below>& all, std::string_view folder) {
  std::vector<Below> inside;
  for (Below one : all) {
    if (one.is_file() || one.folder() != folder) continue;
    one.path.remove_prefix(folder.size() + 1);
    inside.push_back(one);
  }
  return inside;
}

// Down to the folder whose folders are the classes of the part asked for.
Result<std::vector<Below>> find_classes(const std::string& path, std::vector<Below> all,
                                        const OpenOptions& options) {
  for (;;) {
    const Listing listing = list(all);
    if (has_parts(listing)) {
      const auto part = part_folder(listing, options.split);
      if (!part) return no_split(path, options.split);
      return enter(all, *part);
    }
    const bool only_one = listing.files.empty() && listing.folders.size() == 1;
    const bool holds_classes =
        std::none_of(all.begin(), all.end(), [](const Below& b) { return b.is_in_class(); });
    if (!only_one || !holds_classes) break;
    all = enter(all, listing.folders[0]);
  }
  if (options.need_split) return no_split(path, options.split);
  return all;
}

Result<ClassNames> class_names(const std::string& path, const std::vector<Below>& all,
                               const ClassNames& expected) {
  const ClassNames found = list(all).folders;
  if (found.empty()) {
    return error(Code::kNotFound, "{}: {} images but no class folders; expected <class>/*.jpg inside", path,
                 all.size());
  }
  if (static_cast<int64_t>(found.size()) > kMaxClasses)
    return error(Code::kResourceExhausted, "{}: {} class folders, at most {}", path, found.size(),
                 kMaxClasses);
  if (expected.empty()) return found;
  LIMBER_TRY(check_class_folders(path, found, expected));
  return expected;
}

Result<std::vector<ArchiveDataset::Image>> label_images(const std::string& path, std::vector<Below> all,
                                                        const ClassNames& classes) {
  std::map<std::string_view, uint32_t> labels;
  for (size_t i = 0; i < classes.size(); ++i) labels.emplace(classes[i], static_cast<uint32_t>(i));
  // By class, then by name, as a folder is read.
  std::erase_if(all, [](const Below& one) { return !one.is_in_class(); });
  std::sort(all.begin(), all.end(), [&](const Below& a, const Below& b) {
    return std::pair(labels.at(a.folder()), a.path) < std::pair(labels.at(b.folder()), b.path);
  });
  std::vector<ArchiveDataset::Image> images;
  std::vector<bool> seen(classes.size());
  for (const Below& one : all) {
    images.push_back({one.member, labels.at(one.folder())});
    seen[images.back().label] = true;
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing == seen.end()) return images;
  return error(Code::kNotFound, "{}: no image directly in class folder '{}'", path,
               classes[static_cast<size_t>(missing - seen.begin())]);
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_archive(const std::string& path, const OpenOptions& options) {
  LIMBER_ASSIGN(Archive archive, read_archive(path));
  if (archive.images.empty())
    return error(Code::kNotFound, "{}: no images ({}) in this archive", path, image_kinds());
  std::vector<Below> all;
  for (const Member& member : archive.images) all.push_back({&member, member.path});
  LIMBER_ASSIGN(all, find_classes(path, std::move(all), options));
  LIMBER_ASSIGN(ClassNames classes, class_names(path, all, options.expected));
  LIMBER_ASSIGN(auto images, label_images(path, std::move(all), classes));
  return std::unique_ptr<Dataset>(
      std::make_unique<ArchiveDataset>(path, std::move(classes), std::move(archive), std::move(images)));
}

}  // namespace limber
