// Files of records: JSON lines that are only ever appended to, such as RUN/history.jsonl.
//
//   Writing   A line is handed to the system with one write before add() returns: it survives the program's
//             death. It is on the disk, and survives the machine's, kSyncSeconds later at the latest if more
//             lines come, and at sync(). A full disk is an error; what was there before stays whole.
//   Resuming  appends a ResumeRecord, which makes lines of steps that are done again void for readers.
//   Reading   Untrusted: sizes are bounded, a damaged line is named and left out, and half a line at the end,
//             which a crash leaves, is dropped. Kinds nobody here knows are kept for those who do.
#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "record/records.h"

namespace limber {

inline constexpr double kSyncSeconds = 2;  // a sync takes 1 to 20 ms; epochs and choices are further apart

// A line of its own, without the line break. `time`: when, as unix_seconds().
template <typename T>
std::string record_line(const T& record, double time = unix_seconds()) {
  FieldWriter writer;
  writer("kind", std::string(T::kKind));
  writer("time", std::round(time * 1000) / 1000);
  T::fields(record, writer);
  return std::move(writer).finish();
}

class RecordWriter {
 public:
  // Goes on after the last whole line of a file that is there. One writer at a time: the caller has the lock
  // of the folder.
  static Result<RecordWriter> open(const std::string& path, const FileSystem& files = os_files());

  template <typename T>
  Status add(const T& record) {
    return add_line(record_line(record));
  }
  Status add_line(const std::string& line);  // REQUIRES: record_line() made it
  Status sync();

 private:
  explicit RecordWriter(std::unique_ptr<AppendFile> file) : file_(std::move(file)) {}

  std::unique_ptr<AppendFile> file_;
  double synced_ = now_seconds();
};

// A line that holds.
struct RecordLine {
  size_t number = 0;  // in the file, from 1
  std::string kind;
  std::optional<double> time;   // old files have none
  std::optional<int64_t> step;  // of what happens in steps
  std::string job;              // of the last header before it
  std::string text;

  template <typename T>
  bool is() const {
    return kind == T::kKind || (!T::kOldKind.empty() && kind == T::kOldKind);
  }
  template <typename T>
  Result<T> as() const {
    return parse_fields<T>(text);
  }
};

struct RecordFile {
  std::vector<RecordLine> lines;     // in their order, without damaged and void ones
  std::vector<std::string> damaged;  // "FILE:LINE: what is wrong"
  size_t voided = 0;                 // lines of steps that were done again
  bool torn = false;                 // half a line at the end was dropped
};

// `name` is for messages.
RecordFile parse_records(std::string_view text, const std::string& name);
Result<RecordFile> read_records(const std::string& path, const FileSystem& files = os_files());

}  // namespace limber
