// What happened in a training, one JSON object a line.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "train/evaluate.h"
#include "train/manifest.h"

namespace limber {

struct EpochReport {
  int64_t epoch = 0;              // from 1
  int64_t step = 0;               // updates done
  double loss = 0, accuracy = 0;  // on the training images as they were shown
  std::optional<Evaluation> validation;
  bool best = false;
  double rate = 0;  // of the last update
  double seconds = 0, images_per_second = 0;
  size_t skipped = 0;
};

std::string epoch_line(const EpochReport& report);
// `environment`: versions, threads and the like.
std::string header_line(const OptionTexts& options, const OptionTexts& environment, int64_t step);

// The file is replaced as a whole with every line that is added.
class History {
 public:
  // Keeps of an older file what happened up to `step`: later lines are about to be written again.
  static Result<History> open(const std::string& path, int64_t step, const FileSystem& files = os_files());
  Status add(const std::string& line);

 private:
  History(std::string path, const FileSystem& files) : path_(std::move(path)), files_(&files) {}
  std::string path_;
  const FileSystem* files_;
  std::string text_;
};

}  // namespace limber
