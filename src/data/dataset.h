// Labelled images, however they are stored.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace limber {

// Positions in an epoch are 32 bits wide; labels and class names of a larger set would fill a small machine.
inline constexpr int64_t kMaxSamples = int64_t{1} << 31;
inline constexpr int64_t kMaxClasses = 1 << 16;

struct Sample {
  Tensor image;       // u8[H,W,3] (RGB) or u8[H,W,1]; read-only, may share bytes with the data set
  int64_t label = 0;  // an index into class_names()
};

// Never empty, never changes. Every function may be called from any thread.
class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  virtual size_t size() const = 0;
  // REQUIRES (all three): index < size()
  virtual Result<Sample> get(size_t index) const = 0;  // the message of a failure starts with name(index)
  virtual int64_t label(size_t index) const = 0;       // without reading the image
  virtual std::string name(size_t index) const = 0;    // a path, or "train-images.idx[17]"
  const std::vector<std::string>& class_names() const { return class_names_; }

 protected:
  explicit Dataset(std::vector<std::string> class_names) : class_names_(std::move(class_names)) {}

 private:
  std::vector<std::string> class_names_;
};

using ClassNames = std::vector<std::string>;

// In all openers below `expected` are the classes the labels must refer to, usually those of the training
// set: labels follow its order, and a class that is not in it is an error. Empty: the source's own classes.
// Files are untrusted: what breaks its format or goes beyond a limit is a Status that names the file.

// root/<class>/ with images of any kind that is read (data/image.h). Classes are ordered by name, or by
// number when every name is a number; images by name. Folders whose name starts with '.' are passed over.
// Each class needs an image.
Result<std::unique_ptr<Dataset>> open_image_folder(const std::string& root, const ClassNames& expected = {});

// The binary version of CIFAR, files one after the other. Class names are read from batches.meta.txt or
// fine_label_names.txt beside the first file when there.
enum class CifarKind : uint8_t { kCifar10, kCifar100 };
Result<std::unique_ptr<Dataset>> open_cifar(const std::vector<std::string>& files, CifarKind kind,
                                            const ClassNames& expected = {});

// IDX files (MNIST's format), plain or gzip: u8 images of N x H x W or N x H x W x 3, u8 labels of N.
// Classes are named by their numbers.
Result<std::unique_ptr<Dataset>> open_idx(const std::string& images, const std::string& labels,
                                          const ClassNames& expected = {});

// Images [N,H,W], [N,H,W,C] or [N,C,H,W] with C 1 or 3: integers or floats in 0..255, floats and bool in
// 0..1 too; integer labels [N].
// Where both C positions fit, the last one is meant. `name` is what messages call the images.
Result<std::unique_ptr<Dataset>> open_arrays(const Tensor& images, const Tensor& labels,
                                             const std::string& name, const ClassNames& expected = {});
// The same from two .npy files.
Result<std::unique_ptr<Dataset>> open_npy(const std::string& images, const std::string& labels,
                                          const ClassNames& expected = {});

// A list: one "path,label" a line, with a tab or spaces for the comma in what is not called .csv; paths are
// relative to the list's folder. A header may say which columns are meant (path, file, filename, image;
// label, class, target, category). Fields may be quoted where commas or tabs are between them. Labels are
// numbers when all of them are, names otherwise; where lines have only a path, its folder is the class.
// Whether the images exist is seen when they are read.
Result<std::unique_ptr<Dataset>> open_manifest(const std::string& list, const ClassNames& expected = {});
// The same with the list's text at hand.
Result<std::unique_ptr<Dataset>> parse_list(std::string_view text, const std::string& list,
                                            const ClassNames& expected = {});

enum class Split : uint8_t { kTrain, kTest };
const char* split_name(Split split);

struct OpenOptions {
  // Which part, where a source has parts (train/ and test/ folders, data_batch_1.bin and test_batch.bin,
  // train-images.idx and t10k-images.idx ...).
  Split split = Split::kTrain;
  // What to do with a source without parts: false, all of it; true, fail with kNotFound.
  bool need_split = false;
  ClassNames expected;
};

// A .tar, .tar.gz (bz2, xz, zst) or .zip of class folders, or of train and test folders of these, at the top
// or in one folder; nothing is unpacked to disk.
Result<std::unique_ptr<Dataset>> open_archive(const std::string& path, const OpenOptions& options = {});

// Opens what `spec` names, by what is there: a folder of class folders, of train and test folders, of CIFAR's
// binary files, of an IDX or .npy pair or of a list; such a file itself (labels are found by replacing
// "images" by "labels" in the name); an archive; "IMAGES,LABELS"; or "synthetic" (data/synthetic.h).
Result<std::unique_ptr<Dataset>> open_dataset(const std::string& spec, const OpenOptions& options = {});

}  // namespace limber
