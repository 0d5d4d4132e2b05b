// The folder of a stream that is followed: what was recorded, and where it stands.
//
//   history.jsonl      what happened, a line each (record/adapt_records.h)
//   state.safetensors  all that following needs to go on; replaced as a whole
//   master/            what a master has learnt, of a strategy that has one (adapt/surrogate/master_state.h)
//
// A process that is killed leaves the old state or the new one. Lines of windows after it are done again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapt/follower.h"
#include "io/model_folder.h"
#include "record/adapt_records.h"
#include "record/record_file.h"

namespace limber {

struct SavedFollower {
  adapt::FollowerState follower;
  int64_t frames = 0;  // of the stream that are done
};

class AdaptFolder {
 public:
  // A new or empty folder, in one that exists; with `resume` also one where the same was asked for before.
  static Result<std::unique_ptr<AdaptFolder>> open(const std::string& path, bool resume,
                                                   const RunTexts& options, const RunTexts& environment);

  // Empty, or not there, unless there is saved().
  std::string master_folder() const { return path_ + "/master"; }
  // Where it stood; nothing when it begins.
  const std::optional<SavedFollower>& saved() const { return saved_; }
  // Of what is done.
  const std::vector<AdaptWindowRecord>& windows() const { return windows_; }
  const std::vector<AdaptEventRecord>& events() const { return events_; }

  template <typename T>
  Status add(const T& record) {
    return history_.add(record);
  }
  Status save(const SavedFollower& state);

 private:
  AdaptFolder(std::string path, FolderLock lock, RecordWriter history)
      : path_(std::move(path)), lock_(std::move(lock)), history_(std::move(history)) {}
  Status read_history();

  const std::string path_;
  const FolderLock lock_;
  RecordWriter history_;
  std::optional<SavedFollower> saved_;
  RunTexts options_;
  std::vector<AdaptWindowRecord> windows_;
  std::vector<AdaptEventRecord> events_;
};

}  // namespace limber
