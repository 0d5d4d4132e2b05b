#include "train/run_folder.h"

#include <algorithm>
#include <filesystem>

namespace limber {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxPointer = 256;  // bytes: it holds the name of a folder of 10 digits

const char* pointer_name(Which which) { return which == Which::kLast ? "last" : "best"; }
std::string checkpoints_in(const std::string& run) { return run + "/checkpoints"; }
std::string name_of(int64_t step) { return fmt::format("{:010}", step); }

bool is_step_name(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

// Which checkpoint RUN/last or RUN/best names; empty when there is none.
std::string read_pointer(const std::string& run, Which which) {
  auto text = os_files().read(run + "/" + pointer_name(which), kMaxPointer);
  if (!text.ok()) return {};
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return is_step_name(*text) ? *text : std::string();
}

// Newest first.
std::vector<std::string> list_checkpoints(const std::string& run) {
  std::vector<std::string> names;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(checkpoints_in(run), ec)) {
    if (is_step_name(entry.path().filename().string())) names.push_back(entry.path().filename().string());
  }
  std::sort(names.rbegin(), names.rend());
  return names;
}

// `first`, then the others from the newest on.
std::vector<std::string> candidates(const std::string& run, const std::string& first) {
  std::vector<std::string> names = list_checkpoints(run);
  if (first.empty()) return names;
  std::erase(names, first);
  names.insert(names.begin(), first);
  return names;
}

// The first that `load` accepts; what is wrong with those before goes to `warnings`.
template <typename Load>
auto first_valid(const std::string& run, const std::vector<std::string>& names, const Load& load,
                 std::vector<std::string>& warnings) -> decltype(load(run)) {
  std::string problem;  // with the first
  for (size_t i = 0; i < names.size(); ++i) {
    auto loaded = load(checkpoints_in(run) + "/" + names[i]);
    if (loaded.ok()) return loaded;
    if (problem.empty()) problem = fmt::format("{}: {}", names[i], loaded.status().message());
    if (i + 1 == names.size()) break;
    warnings.push_back(fmt::format("checkpoint {} cannot be used ({}); trying {}", names[i],
                                   loaded.status().message(), names[i + 1]));
  }
  return corrupt("{}: none of its {} checkpoints can be used; train anew. Checkpoint {}", run, names.size(),
                 problem);
}

}  // namespace

Result<std::unique_ptr<RunFolder>> RunFolder::open(const std::string& path, const FileSystem& files) {
  LIMBER_TRY(check_run_place(path));
  std::error_code ec;
  const bool created = fs::create_directory(path, ec);
  if (!ec) fs::create_directory(checkpoints_in(path), ec);
  if (ec) return error(Code::kIo, "{}: cannot create folder: {}", path, ec.message());
  LIMBER_ASSIGN(FolderLock lock, FolderLock::take(path, "is training there"));
  std::unique_ptr<RunFolder> folder(new RunFolder(path, files, std::move(lock), created));
  for (const auto& entry : fs::directory_iterator(checkpoints_in(path), ec)) {
    if (entry.path().filename().string().starts_with(".")) fs::remove_all(entry.path(), ec);
  }
  return folder;
}

void RunFolder::discard(std::unique_ptr<RunFolder> folder) {
  if (folder->has_checkpoint()) return;
  std::error_code ignored;  // what cannot be removed does no harm: there is nothing in it
  for (const std::string& file :
       {folder->history_path(), checkpoints_in(folder->path_), folder->path_ + "/.lock"})
    fs::remove(file, ignored);
  if (folder->created_) fs::remove(folder->path_, ignored);
}

bool RunFolder::has_checkpoint() const { return !list_checkpoints(path_).empty(); }

Status RunFolder::save(const Graph& graph, const Parameters& params, const CheckpointInfo& info, bool best) {
  const std::string name = name_of(info.state.step), before = read_pointer(path_, Which::kLast);
  LIMBER_TRY(save_checkpoint(checkpoints_in(path_) + "/" + name, graph, params, info, files_));
  // `last` comes last: what resumes from it finds `best` at least as new as its state says.
  if (best) LIMBER_TRY(files_.write(path_ + "/" + pointer_name(Which::kBest), name + "\n"));
  LIMBER_TRY(files_.write(path_ + "/" + pointer_name(Which::kLast), name + "\n"));
  prune(name, before);
  return {};
}

void RunFolder::prune(const std::string& newest, const std::string& before) const {
  const std::string best = read_pointer(path_, Which::kBest);
  for (const std::string& name : list_checkpoints(path_)) {
    if (name == newest || name == before || name == best) continue;
    // Out of sight first: a crash leaves no half of a checkpoint under its name.
    const std::string from = checkpoints_in(path_) + "/" + name, to = checkpoints_in(path_) + "/.old-" + name;
    std::error_code ignored;
    fs::rename(from, to, ignored);
    fs::remove_all(to, ignored);
  }
}

Result<std::optional<Checkpoint>> RunFolder::load_last(std::vector<std::string>& warnings) const {
  const auto names = candidates(path_, read_pointer(path_, Which::kLast));
  if (names.empty()) return std::optional<Checkpoint>();
  LIMBER_ASSIGN(Checkpoint checkpoint, first_valid(path_, names, load_checkpoint, warnings));
  return std::optional(std::move(checkpoint));
}

bool is_run(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(checkpoints_in(path), ignored);
}

Status check_run_place(const std::string& path) {
  std::error_code ignored;
  const fs::path place(path);
  if (!fs::exists(place, ignored)) {
    fs::path full = fs::absolute(place, ignored);
    if (!full.has_filename()) full = full.parent_path();  // "run/"
    if (fs::is_directory(full.parent_path(), ignored)) return {};
    return error(Code::kNotFound, "{}: there is no folder {} to make it in", path,
                 full.parent_path().string());
  }
  if (!fs::is_directory(place, ignored)) return invalid("{} is a file; a training needs a folder", path);
  if (is_run(path)) return {};
  std::string found;
  for (const auto& entry : fs::directory_iterator(place, ignored)) {
    if (entry.path().filename() != ".lock") found = entry.path().filename().string();
  }
  if (found.empty()) return {};
  return invalid("{} is no training, and it is not empty ({}); choose a new folder", path, found);
}

Result<std::string> find_checkpoint(const std::string& path, Which which,
                                    std::vector<std::string>& warnings) {
  if (is_checkpoint(path)) {
    LIMBER_TRY(check_checkpoint(path).status());
    return path;
  }
  if (!is_run(path)) {
    return error(Code::kNotFound,
                 "{}: a folder, but neither a training run nor a checkpoint (no manifest.json); give what "
                 "'limber train' wrote, or an ONNX file",
                 path);
  }
  std::string first = read_pointer(path, which);
  if (first.empty()) first = read_pointer(path, Which::kLast);
  const auto names = candidates(path, first);
  if (names.empty()) return error(Code::kNotFound, "{}: this run has no checkpoint yet", path);
  const auto check = [](const std::string& one) -> Result<std::string> {
    LIMBER_TRY(check_checkpoint(one).status());
    return one;
  };
  return first_valid(path, names, check, warnings);
}

}  // namespace limber
