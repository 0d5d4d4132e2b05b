// What a training wrote about itself: RUN/history.jsonl, read as a file of unknown origin.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace limber {

struct EpochRecord {
  int64_t epoch = 0, step = 0;
  double seconds = 0;  // of training, without evaluation
  std::optional<double> loss, accuracy, val_loss, val_accuracy;
};

// One choice of what to train.
struct SelectionRecord {
  int64_t step = 0;
  std::vector<size_t> chosen;      // tensors, ascending
  std::vector<double> importance;  // of every tensor; 0 where it was not measured
  std::optional<double> rho, arena_bytes;
  std::optional<double> share;     // time of a step, predicted, over that of one that trains everything
  int64_t left = 0, returned = 0;  // up to here
};

// How long the steps of a choice took.
struct ChoiceRecord {
  int64_t step = 0;
  double predicted_s = 0, measured_s = 0;
  std::optional<double> full_s, overhead_s;
};

using RunTexts = std::map<std::string, std::string>;

// Steps never decrease within a list.
struct RunLog {
  std::string path, name;
  bool begun = false;                // there is a line with the options
  RunTexts options, environment;     // of the last line that has them
  std::vector<int64_t> resumed;      // steps after which the training went on
  std::vector<std::string> tensors;  // from input to loss; as many as every selection speaks of
  bool named = false;                // false: `tensors` are numbers, since no line names them
  std::vector<EpochRecord> epochs;
  std::vector<SelectionRecord> selections;
  std::vector<ChoiceRecord> choices;
  std::vector<std::string> damaged;  // "FILE:LINE: what is wrong", of lines that are left out

  std::string option(const std::string& name) const;  // empty where there is none
  int64_t last_step() const;                          // of anything recorded
};

// `file` is for messages. Lines of a kind nobody knows here are left to others. Fails when no line tells of a
// training.
Result<RunLog> parse_history(std::string_view text, const std::string& file);
// RUN/history.jsonl; the run's name is the last part of `path`.
Result<RunLog> read_run(const std::string& path, const FileSystem& files = os_files());

}  // namespace limber
