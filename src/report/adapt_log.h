// What following a stream wrote down about itself: DIR/history.jsonl, read as a file of unknown origin.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "record/adapt_records.h"
#include "record/records.h"

namespace limber {

struct AdaptLog {
  std::string path, name;         // the second: the last part of the first
  RunTexts options, environment;  // of the last line that has them
  std::vector<int64_t> resumed;   // frames after which it went on
  std::vector<AdaptWindowRecord> windows;
  std::vector<AdaptEventRecord> events;
  std::optional<AdaptEndRecord> end;
  std::vector<std::string> damaged;  // "FILE:LINE: what is wrong", of lines that are left out

  std::string option(const std::string& name) const;  // empty where there is none
};

// Over windows that count.
struct AdaptSummary {
  int64_t frames = 0, labelled = 0;
  double accuracy = 0, frozen = 0, estimate_error = 0;  // the last: mean absolute, of what answered
  int64_t alarms = 0, adapted = 0, rejected = 0, rolled_back = 0, returned = 0, failed = 0;
};
AdaptSummary summarise(const AdaptLog& log);

// Folders in this one where streams were followed, as several strategies in a row leave them: "none" first,
// the others by name. Empty where there are none.
std::vector<std::string> adapt_runs_in(const std::string& path);
// Was a stream followed in this folder? Looks at the first line of its history.
bool is_adapt_run(const std::string& path);
AdaptLog parse_adapt_history(std::string_view text, const std::string& file);
// kCorrupt when not one window can be read.
Result<AdaptLog> read_adapt_run(const std::string& path, const FileSystem& files = os_files());

}  // namespace limber
