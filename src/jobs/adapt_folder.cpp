#include "jobs/adapt_folder.h"

#include <filesystem>

#include "io/safetensors.h"
#include "jobs/output.h"

namespace limber {
namespace {

namespace fs = std::filesystem;

struct StateText {
  int64_t frames = 0;
  RunTexts options;
  std::string follower;

  static void fields(auto& self, auto& field) {
    field("frames", self.frames);
    field("options", self.options);
    field("follower", self.follower);
  }
};

std::string history_path(const std::string& folder) { return folder + "/history.jsonl"; }
std::string state_path(const std::string& folder) { return folder + "/state.safetensors"; }

// Ours, or nobody's?
Status check_place(const std::string& path, bool resume) {
  LIMBER_TRY(check_output_folder(path));
  std::error_code ec;
  if (!fs::exists(path, ec) || fs::is_empty(path, ec)) return {};
  if (!fs::exists(history_path(path), ec))
    return invalid("{} is not empty; expected a new folder, or one where a stream was followed", path);
  if (!resume)
    return invalid("{} holds a stream that was followed already; resume it or choose another folder", path);
  return {};
}

// Every option that differs, in words.
Status check_same_options(const RunTexts& before, const RunTexts& now) {
  for (const auto& [name, value] : now) {
    const auto was = before.find(name);
    const std::string old = was == before.end() ? "" : was->second;
    if (old != value)
      return invalid(
          "{} was '{}' when this stream was begun and is '{}' now; resume with what it was, or choose "
          "another folder",
          name, old, value);
  }
  return {};
}

Result<SavedFollower> read_state(const std::string& path, const RunTexts& options) {
  auto file = read_safetensors(path);
  if (!file.ok()) return file.status();
  const auto text = file->metadata.find("state");
  if (text == file->metadata.end()) return corrupt("{}: it has no 'state'", path);
  auto state = parse_fields<StateText>(text->second);
  if (!state.ok()) return state.status().in(path);
  LIMBER_TRY(check_same_options(state->options, options));
  return SavedFollower{{std::move(file->tensors), std::move(state->follower)}, state->frames};
}

}  // namespace

Result<std::unique_ptr<AdaptFolder>> AdaptFolder::open(const std::string& path, bool resume,
                                                       const RunTexts& options, const RunTexts& environment) {
  LIMBER_TRY(check_place(path, resume));
  std::error_code ec;
  fs::create_directory(path, ec);
  if (ec) return error(Code::kIo, "{}: cannot create folder: {}", path, ec.message());
  LIMBER_ASSIGN(FolderLock lock, FolderLock::take(path, "is following a stream there"));
  std::optional<SavedFollower> saved;
  if (fs::exists(state_path(path), ec)) {
    LIMBER_ASSIGN(saved, read_state(state_path(path), options));
  }
  LIMBER_ASSIGN(RecordWriter history, RecordWriter::open(history_path(path)));
  std::unique_ptr<AdaptFolder> folder(new AdaptFolder(path, std::move(lock), std::move(history)));
  folder->saved_ = std::move(saved);
  folder->options_ = options;
  RunHeader header{.job = "adapt", .options = options, .environment = environment};
  if (!folder->saved_) {
    fs::remove_all(folder->master_folder(), ec);
    LIMBER_TRY(folder->add(StartRecord{header}));
    return folder;
  }
  header.step = folder->saved_->frames;
  LIMBER_TRY(folder->add(ResumeRecord{header}));
  LIMBER_TRY(folder->read_history());
  return folder;
}

Status AdaptFolder::read_history() {
  LIMBER_ASSIGN(const RecordFile history, read_records(history_path(path_)));
  for (const RecordLine& line : history.lines) {
    if (line.is<AdaptWindowRecord>()) {
      LIMBER_ASSIGN(windows_.emplace_back(), line.as<AdaptWindowRecord>());
    }
    if (line.is<AdaptEventRecord>()) {
      LIMBER_ASSIGN(events_.emplace_back(), line.as<AdaptEventRecord>());
    }
  }
  return {};
}

Status AdaptFolder::save(const SavedFollower& state) {
  LIMBER_TRY(history_.sync());
  const StateText text{state.frames, options_, state.follower.text};
  return write_safetensors(state_path(path_), {state.follower.tensors, {{"state", format_fields(text)}}});
}

}  // namespace limber
