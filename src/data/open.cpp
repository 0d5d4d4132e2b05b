// Finds out what a data set is stored as.
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "data/archive.h"
#include "data/classes.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/listing.h"
#include "data/parts.h"
#include "data/synthetic.h"
#include "data/text.h"

namespace limber {
namespace {

namespace fs = std::filesystem;
using Opened = Result<std::unique_ptr<Dataset>>;

constexpr std::string_view kExpectation =
    "expected <class>/*.jpg, *.png ..., train/ and test/ folders of these, CIFAR's data_batch_1.bin or "
    "train.bin, images.npy and labels.npy, train-images-idx3-ubyte[.gz] and train-labels-idx1-ubyte[.gz], or "
    "a labels.csv of path,label lines";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}
bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Which part of a data set a file or folder of this name holds.
std::optional<Split> part_of(const std::string& name) {
  const std::string text = lower_case(name);
  if (has(text, "train")) return Split::kTrain;
  if (has(text, "test") || has(text, "t10k") || has(text, "val")) return Split::kTest;
  return std::nullopt;
}

bool is_idx_name(const std::string& name) { return has(lower_case(name), "idx"); }
bool is_list_name(const std::string& name) {
  const std::string text = lower_case(name);
  return text.ends_with(".csv") || text.ends_with(".tsv") || text.ends_with(".txt") || text.ends_with(".lst");
}
bool is_npy_name(const std::string& name) { return name.ends_with(".npy"); }

void replace_last(std::string& text, std::string_view from, std::string_view to) {
  const size_t at = text.rfind(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
}

// The labels that go with a file of images, going by its name; empty when there are none.
std::string labels_beside(const fs::path& images) {
  const std::string name = images.filename().string();
  for (const auto& [from, to] :
       {std::pair("images", "labels"), std::pair("x_", "y_"), std::pair("X_", "y_")}) {
    std::string other = name;
    replace_last(other, from, to);
    replace_last(other, "idx3", "idx1");
    replace_last(other, "idx4", "idx1");
    if (other == name || !has(name, from)) continue;
    const fs::path path = images.parent_path() / other;
    if (is_file(path)) return path.string();
  }
  return {};
}

Opened open_pair(const std::string& images, const std::string& labels, const ClassNames& expected) {
  if (is_npy_name(images)) return open_npy(images, labels, expected);
  return open_idx(images, labels, expected);
}

// --- folders ----------------------------------------------------------------------------------------

struct Candidate {
  std::string images;  // or the list
  std::string labels;
  std::optional<Split> part;
};

std::vector<Candidate> find_pairs(const fs::path& folder, const Listing& listing) {
  std::vector<Candidate> found;
  for (const std::string& name : listing.files) {
    if (!is_npy_name(name) && !is_idx_name(name)) continue;
    const std::string labels = labels_beside(folder / name);
    if (!labels.empty()) found.push_back({(folder / name).string(), labels, part_of(name)});
  }
  return found;
}

std::vector<Candidate> find_manifests(const fs::path& folder, const Listing& listing) {
  // Not .txt: such a file beside class folders is as often a list of classes.
  constexpr std::string_view kNames[] = {"labels", "manifest", "annotations", "train",
                                         "test",   "val",      "valid",       "validation"};
  std::vector<Candidate> found;
  for (const std::string& name : listing.files) {
    if (!name.ends_with(".csv") && !name.ends_with(".tsv")) continue;
    const std::string_view stem = std::string_view(name).substr(0, name.size() - 4);
    if (std::find(std::begin(kNames), std::end(kNames), stem) == std::end(kNames)) continue;
    found.push_back({(folder / name).string(), {}, part_of(name)});
  }
  return found;
}

// The one candidate that is the part asked for.
Result<Candidate> choose(const std::string& spec, const std::vector<Candidate>& all,
                         const OpenOptions& options) {
  std::vector<Candidate> fitting;
  const bool parts =
      std::any_of(all.begin(), all.end(), [](const Candidate& c) { return c.part.has_value(); });
  if (!parts && options.need_split) return no_split(spec, options.split);
  for (const Candidate& c : all) {
    if (!parts || c.part == options.split) fitting.push_back(c);
  }
  if (fitting.empty()) return no_split(spec, options.split);
  if (fitting.size() == 1) return fitting[0];
  return invalid("{}: several data sets ({} and {}); name one of them", spec, fitting[0].images,
                 fitting[1].images);
}

bool listed(const Listing& listing, const std::string& file) {
  return std::binary_search(listing.files.begin(), listing.files.end(), file);
}

// CIFAR's files that make the part asked for; none when this is not a folder of CIFAR.
std::vector<std::string> cifar_files(const std::string& folder, const Listing& listing, Split split,
                                     CifarKind kind) {
  std::vector<std::string> files;
  for (const std::string& name : listing.files) {
    const bool ten = split == Split::kTrain ? name.starts_with("data_batch_") && name.ends_with(".bin")
                                            : name == "test_batch.bin";
    const bool hundred = name == (split == Split::kTrain ? "train.bin" : "test.bin");
    if (kind == CifarKind::kCifar10 ? ten : hundred) files.push_back(folder + "/" + name);
  }
  return files;
}

std::optional<CifarKind> cifar_kind(const Listing& listing) {
  if (listed(listing, "data_batch_1.bin") || listed(listing, "test_batch.bin")) return CifarKind::kCifar10;
  if (listed(listing, "train.bin") || listed(listing, "test.bin")) return CifarKind::kCifar100;
  return std::nullopt;
}

Opened open_folder(const std::string& folder, const OpenOptions& options);

Opened open_part_folder(const std::string& folder, const Listing& listing, const OpenOptions& options) {
  const auto part = part_folder(listing, options.split);
  if (!part) return no_split(folder, options.split);
  OpenOptions whole = options;
  whole.need_split = false;
  return open_folder(folder + "/" + *part, whole);
}

Opened open_folder(const std::string& folder, const OpenOptions& options) {
  LIMBER_ASSIGN(const Listing listing, list_folder(folder));
  if (const auto kind = cifar_kind(listing)) {
    const auto files = cifar_files(folder, listing, options.split, *kind);
    if (files.empty()) return no_split(folder, options.split);
    return open_cifar(files, *kind, options.expected);
  }
  if (const auto pairs = find_pairs(folder, listing); !pairs.empty()) {
    LIMBER_ASSIGN(const Candidate chosen, choose(folder, pairs, options));
    return open_pair(chosen.images, chosen.labels, options.expected);
  }
  if (const auto manifests = find_manifests(folder, listing); !manifests.empty()) {
    LIMBER_ASSIGN(const Candidate chosen, choose(folder, manifests, options));
    return open_manifest(chosen.images, options.expected);
  }
  if (has_parts(listing)) return open_part_folder(folder, listing, options);
  if (listing.folders.empty() && std::none_of(listing.files.begin(), listing.files.end(),
                                              [](const auto& f) { return is_image_name(f); })) {
    return error(Code::kNotFound, "{}: no data set in this folder; {}", folder, kExpectation);
  }
  if (options.need_split) return no_split(folder, options.split);
  return open_image_folder(folder, options.expected);
}

// --- files ------------------------------------------------------------------------------------------

Opened open_bin(const std::string& path, const ClassNames& expected) {
  constexpr uint64_t kRecord10 = 3073, kRecord100 = 3074;
  std::error_code failure;
  const uint64_t size = fs::file_size(path, failure);
  const bool hundred = !failure && size % kRecord100 == 0 && size % kRecord10 != 0;
  return open_cifar({path}, hundred ? CifarKind::kCifar100 : CifarKind::kCifar10, expected);
}

Opened open_file(const std::string& path, const OpenOptions& options) {
  if (is_archive_name(path)) return open_archive(path, options);
  if (options.need_split) return no_split(path, options.split);
  if (is_list_name(path)) return open_manifest(path, options.expected);
  if (path.ends_with(".bin")) return open_bin(path, options.expected);
  if (is_npy_name(path) || is_idx_name(fs::path(path).filename().string())) {
    const std::string labels = labels_beside(path);
    if (!labels.empty()) return open_pair(path, labels, options.expected);
    return error(
        Code::kNotFound,
        "{}: no labels for these images; expected a file beside it with 'labels' for 'images' in its "
        "name, or IMAGES,LABELS",
        path);
  }
  if (is_image_name(path)) {
    return invalid(
        "{}: one image is not a data set; give a folder of class folders or a list of path,label lines",
        path);
  }
  return unsupported(
      "{}: not a data set by its name; expected a .csv, .tsv, .txt, .npy, .bin (CIFAR), *idx*, .tar or .zip "
      "file, or a folder",
      path);
}

Opened open_synthetic_spec(const std::string& spec, const OpenOptions& options) {
  LIMBER_ASSIGN(SyntheticOptions synthetic, parse_synthetic(spec));
  synthetic.split = options.split;
  LIMBER_ASSIGN(auto data, open_synthetic(synthetic));
  if (options.expected.empty() || options.expected == data->class_names()) return data;
  return invalid("{}: the classes are {}, but {} are expected", spec, quote_some(data->class_names()),
                 quote_some(options.expected));
}

}  // namespace

const char* split_name(Split split) { return split == Split::kTrain ? "train" : "test"; }

Opened open_dataset(const std::string& spec, const OpenOptions& options) {
  if (is_synthetic(spec)) return open_synthetic_spec(spec, options);
  std::string path = spec;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (is_folder(path)) return open_folder(path, options);
  if (is_file(path)) return open_file(path, options);
  const size_t comma = spec.find(',');
  if (comma != std::string::npos) {
    if (options.need_split) return no_split(spec, options.split);
    return open_pair(spec.substr(0, comma), spec.substr(comma + 1), options.expected);
  }
  return error(Code::kNotFound,
               "{}: no such file or folder; a data set is a folder ({}), a file of these kinds, "
               "IMAGES,LABELS, or \"synthetic\"",
               spec, kExpectation);
}

}  // namespace limber
