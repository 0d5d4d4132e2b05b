// What a checkpoint says about itself: manifest.json.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/preprocess.h"
#include "io/model_folder.h"

namespace limber {

inline constexpr int kCheckpointVersion = 2;

// Where a training stands between two updates. Together with weights and optimiser state it is all that is
// needed to go on as if nothing had happened.
struct TrainingState {
  int64_t step = 0;   // updates done
  int64_t epoch = 0;  // the one under way, from 0
  int64_t batch = 0;  // batches of it that are done
  // Of the epoch under way.
  double loss_sum = 0;  // over batches
  int64_t correct = 0, images = 0;
  double seconds = 0;
  // The best evaluation so far; best_epoch is -1 before the first.
  int64_t best_epoch = -1;
  double best_accuracy = 0, best_loss = 0;

  bool operator==(const TrainingState&) const = default;
};

// Name -> value as text: what was asked for. Names are those of the command's options, without dashes.
using OptionTexts = std::map<std::string, std::string>;
uint64_t fingerprint(const OptionTexts& options);

struct CheckpointInfo {
  TrainingState state;
  uint64_t seed = 0;
  OptionTexts options;
  std::vector<std::string> classes;
  Preprocess input;   // what images become
  OptionTexts notes;  // where parts of a training beside the loop stand, each under its own name
};

struct Manifest {
  CheckpointInfo info;
  std::map<std::string, FileRecord> files;
};

std::string format_manifest(const Manifest& manifest);
// Untrusted: fails with kCorrupt, or with kUnsupported for a newer version.
Result<Manifest> parse_manifest(std::string_view text);

}  // namespace limber
