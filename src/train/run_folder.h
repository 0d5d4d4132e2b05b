// The folder of one training: its checkpoints, which of them is the last and which the best, its history.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint.h"

namespace limber {

enum class Which : uint8_t { kLast, kBest };

// RUN/checkpoints/<step>/, RUN/last and RUN/best, which name one of them, RUN/history.jsonl. One process at
// a time may have a run open for writing.
class RunFolder {
 public:
  // Creates what is missing, but no parent folders, and removes what a crash left behind. Fails as
  // check_run_place() does, and when another process has it open.
  static Result<std::unique_ptr<RunFolder>> open(const std::string& path,
                                                 const FileSystem& files = os_files());
  // Closes a run that never got to a checkpoint, and removes of it what open() and a training made.
  static void discard(std::unique_ptr<RunFolder> folder);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string history_path() const { return path_ + "/history.jsonl"; }
  bool has_checkpoint() const;

  // The new checkpoint becomes the last, and on demand the best. Kept are the last, the one before it and
  // the best. On failure all is as before.
  Status save(const Graph& graph, const Parameters& params, const CheckpointInfo& info, bool best);

  // The last checkpoint, or the newest older one that is valid; `warnings` then says what is wrong with
  // the others. Nothing when there is none at all.
  Result<std::optional<Checkpoint>> load_last(std::vector<std::string>& warnings) const;

 private:
  RunFolder(std::string path, const FileSystem& files, FolderLock lock, bool created)
      : path_(std::move(path)), files_(files), lock_(std::move(lock)), created_(created) {}
  void prune(const std::string& newest, const std::string& before) const;

  const std::string path_;
  const FileSystem& files_;
  const FolderLock lock_;
  const bool created_;  // by open()
};

bool is_run(const std::string& path);

// May a training go there? Into a run, an empty folder, or a new one in a folder that exists; never among
// somebody's own files.
Status check_run_place(const std::string& path);

// The valid checkpoint to use when a person names `path`: a checkpoint itself, or of a run the one asked
// for (the last where there is no best), else the newest that is valid, with a warning.
Result<std::string> find_checkpoint(const std::string& path, Which which, std::vector<std::string>& warnings);

}  // namespace limber
