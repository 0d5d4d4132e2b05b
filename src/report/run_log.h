// What a training wrote about itself: RUN/history.jsonl, read as a file of unknown origin.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "record/records.h"

namespace limber {

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
