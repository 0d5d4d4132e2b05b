#include <algorithm>
#include <filesystem>

#include "data/classes.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/listing.h"
#include "data/parts.h"

namespace limber {
namespace {

class ImageFolder : public Dataset {
 public:
  struct Image {
    uint32_t label;
    std::string file;
  };

  ImageFolder(std::string root, ClassNames classes, std::vector<Image> images)
      : Dataset(std::move(classes)), root_(std::move(root)), images_(std::move(images)) {}

  size_t size() const override { return images_.size(); }
  int64_t label(size_t index) const override { return images_[index].label; }
  std::string name(size_t index) const override {
    const Image& image = images_[index];
    return root_ + "/" + class_names()[image.label] + "/" + image.file;
  }
  Result<Sample> get(size_t index) const override {
    LIMBER_ASSIGN(Tensor image, load_image(name(index)));
    return Sample{std::move(image), label(index)};
  }

 private:
  std::string root_;
  std::vector<Image> images_;
};

Status no_class_folders(const std::string& root, const Listing& listing) {
  const auto images = static_cast<size_t>(std::count_if(listing.files.begin(), listing.files.end(),
                                                        [](const auto& f) { return is_image_name(f); }));
  if (images == 0)
    return error(Code::kNotFound, "{}: no class folders; expected {}/<class>/*.jpg, *.png ...", root, root);
  return error(
      Code::kNotFound,
      "{}: {} images but no class folders; put the images of each class into {}/<class>/, or list them "
      "in a CSV of path,label lines",
      root, images, root);
}

Status no_images(const std::string& folder, const Listing& listing) {
  if (listing.folders.empty()) {
    return error(Code::kNotFound, "{}: a class folder without an image ({}); add images or remove it", folder,
                 image_kinds());
  }
  return error(Code::kNotFound,
               "{}: holds folders ({}) where the images of a class were expected; is {} itself the data set?",
               folder, quote_some(listing.folders), folder);
}

Status add_class(const std::string& folder, uint32_t label, std::vector<ImageFolder::Image>& images) {
  LIMBER_ASSIGN(Listing listing, list_folder(folder));
  const size_t before = images.size();
  for (std::string& file : listing.files) {
    if (is_image_name(file)) images.push_back({label, std::move(file)});
  }
  if (images.size() == before) return no_images(folder, listing);
  if (images.size() > static_cast<size_t>(kMaxSamples)) {
    return error(Code::kResourceExhausted, "{}: more than {} images", folder, kMaxSamples);
  }
  return {};
}

}  // namespace

Result<Listing> list_folder(const std::string& path) {
  Listing listing;
  std::error_code failure;
  std::filesystem::directory_iterator entries(path, failure), end;
  while (!failure && entries != end) {
    const std::string name = entries->path().filename().string();
    std::error_code ignored;  // of a broken link, which is then neither
    if (name[0] != '.') {
      if (entries->is_directory(ignored)) listing.folders.push_back(name);
      if (entries->is_regular_file(ignored)) listing.files.push_back(name);
    }
    entries.increment(failure);
  }
  if (failure) {
    const Code code = failure == std::errc::no_such_file_or_directory ? Code::kNotFound : Code::kIo;
    return error(code, "{}: cannot list the folder: {}", path, failure.message());
  }
  sort_names(listing.folders);
  std::sort(listing.files.begin(), listing.files.end());
  return listing;
}

Result<std::unique_ptr<Dataset>> open_image_folder(const std::string& root, const ClassNames& expected) {
  LIMBER_ASSIGN(const Listing listing, list_folder(root));
  if (listing.folders.empty()) return no_class_folders(root, listing);
  if (listing.folders.size() > static_cast<size_t>(kMaxClasses)) {
    return error(Code::kResourceExhausted, "{}: {} class folders, at most {} are read", root,
                 listing.folders.size(), kMaxClasses);
  }
  if (!expected.empty()) LIMBER_TRY(check_class_folders(root, listing.folders, expected));
  const ClassNames& classes = expected.empty() ? listing.folders : expected;
  std::vector<ImageFolder::Image> images;
  for (size_t i = 0; i < classes.size(); ++i) {
    LIMBER_TRY(add_class(root + "/" + classes[i], static_cast<uint32_t>(i), images));
  }
  return std::unique_ptr<Dataset>(std::make_unique<ImageFolder>(root, classes, std::move(images)));
}

}  // namespace limber
