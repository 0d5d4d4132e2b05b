#include "variant/elastic_folder.h"

#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>

#include "io/json_fields.h"
#include "io/safetensors.h"
#include "ir/text_format.h"
#include "record/elastic_records.h"
#include "record/record_file.h"
#include "variant/fingerprint.h"

namespace limber {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";
// Bytes that are read of a stranger's files: a hundred times what large models have.
constexpr size_t kMaxManifest = size_t{64} << 20, kMaxGraphs = size_t{256} << 20;
constexpr std::string_view kConstant = "limber.constant/";

// The files beside the manifest. Their names hold their hash, so that a new one never takes the place of one
// that the manifest on disk still speaks of.
struct Part {
  const char* name;
  const char* suffix;
};
constexpr Part kGraphs{"graphs", ".txt"}, kBase{"base", ".safetensors"},
    kAlternatives{"alternatives", ".safetensors"};

std::string file_name(const Part& part, const FileRecord& record) {
  return fmt::format("{}-{}{}", part.name, format_hex(record.hash), part.suffix);
}

// Is it called as file_name() does, or such a file that was being written?
bool is_part(std::string_view name) {
  for (const Part& part : {kGraphs, kBase, kAlternatives}) {
    uint64_t hash = 0;
    const size_t at = std::strlen(part.name) + 1;
    if (name.starts_with(part.name) && name.size() >= at + 16 && name[at - 1] == '-' &&
        parse_hex(name.substr(at, 16), hash) && name.substr(at + 16).starts_with(part.suffix))
      return true;
  }
  return false;
}

std::string manifest_in(const std::string& folder) { return folder + "/" + kManifest; }

bool is_weight(const Value& value) { return value.role == Role::kParameter || value.role == Role::kState; }

// The base, then all graphs of blocks, then those of exits: the order of the file. M, F: const or not.
template <typename M, typename F>
void for_each_graph(M& model, const F& visit) {
  visit(model.base);
  for (auto& block : model.blocks) {
    for (auto& alternative : block.alternatives) visit(alternative.graph);
  }
  for (auto& exit : model.exits) visit(exit.graph);
}

// --- writing --------------------------------------------------------------------------------------------

// What is to be written, in memory; tensors are shared with the model.
class Contents {
 public:
  explicit Contents(const ElasticModel& model) : model_(model) {}

  Status collect(ElasticManifest& manifest) {
    LIMBER_TRY(add(model_.base, base_, manifest.base));
    for (const Block& block : model_.blocks) {
      BlockRecord& record = manifest.blocks.emplace_back(BlockRecord{block.name, {}});
      for (const Alternative& a : block.alternatives) {
        record.alternatives.push_back({a.name, a.span, a.error, {}});
        LIMBER_TRY(add(a.graph, alternatives_, record.alternatives.back().graph));
      }
    }
    for (const Exit& exit : model_.exits) {
      manifest.exits.push_back({exit.name, exit.after, {}});
      LIMBER_TRY(add(exit.graph, alternatives_, manifest.exits.back().graph));
    }
    return {};
  }

  const std::string& graphs() const { return graphs_; }
  const TensorFile& base() const { return base_; }
  const TensorFile& alternatives() const { return alternatives_; }

 private:
  Status add(const Graph& graph, TensorFile& file, GraphRecord& record) {
    const std::string text = print(graph);
    graphs_ += text;
    record.bytes = text.size();
    for (const Value& value : graph.values()) {
      if (is_weight(value)) LIMBER_TRY(add_parameter(value.name, file));
      if (value.role == Role::kConstant && value.constant.elements() > text::kMaxInlineElements)
        record.constants[value.name] = add_constant(value.constant, file);
    }
    return {};
  }

  Status add_parameter(const std::string& name, TensorFile& file) {
    if (base_.tensors.contains(name) || file.tensors.contains(name)) return {};
    LIMBER_ASSIGN(const Tensor tensor, model_.params->get(name));
    LIMBER_TRY(check_finite(name, tensor));
    file.tensors.emplace(name, tensor);
    return {};
  }

  // Equal constants are stored once.
  uint64_t add_constant(const Tensor& tensor, TensorFile& file) {
    for (uint64_t number = text::constant_hash(tensor);; ++number) {
      const auto name = fmt::format("{}{}", kConstant, format_hex(number));
      const auto [there, added] = constants_.emplace(number, tensor);
      if (added) file.tensors.emplace(name, tensor);
      const Tensor& stored = there->second;
      if (stored.type() == tensor.type() && std::memcmp(stored.raw(), tensor.raw(), tensor.bytes()) == 0)
        return number;
    }
  }

  const ElasticModel& model_;
  std::string graphs_;
  TensorFile base_, alternatives_;
  std::map<uint64_t, Tensor> constants_;
};

bool holds(const std::string& path, std::span<const std::string_view> parts) {
  const auto file = os_files().map(path);
  if (!file.ok()) return false;
  std::string_view left = text_of(**file);
  for (const std::string_view part : parts) {
    if (!left.starts_with(part)) return false;
    left.remove_prefix(part.size());
  }
  return left.empty();
}

class Saver {
 public:
  Saver(const std::string& folder, const FileSystem& files) : folder_(folder), files_(files) {}

  Status save(const ElasticModel& model, const ElasticInfo& info) {
    manifest_.info = info;
    LIMBER_ASSIGN(const Fingerprints fingerprints, Fingerprints::of(model));
    manifest_.fingerprint = fingerprints.model();
    Status status = write_parts(model);
    if (status.ok()) status = files_.write(manifest_in(folder_), format_elastic_manifest(manifest_));
    if (!status.ok()) {
      remove_added();
      return status;
    }
    LIMBER_TRY(sync_folder(folder_));
    remove_others();
    return {};
  }

 private:
  Status write_parts(const ElasticModel& model) {
    Contents contents(model);
    LIMBER_TRY(contents.collect(manifest_));
    const std::string_view graphs = contents.graphs();
    if (graphs.size() > kMaxGraphs) {
      return error(Code::kResourceExhausted, "graphs of {} bytes, at most {} are read", graphs.size(),
                   kMaxGraphs);
    }
    LIMBER_TRY(write(kGraphs, {&graphs, 1}));
    LIMBER_TRY(write(kBase, contents.base()));
    LIMBER_TRY(write(kAlternatives, contents.alternatives()));
    return sync_folder(folder_);
  }
  Status write(const Part& part, const TensorFile& tensors) {
    return give_safetensors(tensors, [&](auto parts) { return write(part, parts); });
  }
  Status write(const Part& part, std::span<const std::string_view> bytes) {
    const FileRecord record = record_of(bytes);
    manifest_.files[part.name] = record;
    const std::string name = file_name(part, record), path = folder_ + "/" + name;
    names_.insert(name);
    if (holds(path, bytes)) return {};
    std::error_code ignored;
    if (!fs::exists(path, ignored)) added_.push_back(path);
    return files_.write(path, bytes);
  }

  // The manifest does not speak of them, and will not.
  void remove_added() const {
    std::error_code ignored;
    for (const std::string& path : added_) fs::remove(path, ignored);
  }
  // What an older manifest spoke of, or a crash left behind. Whoever has it mapped keeps it.
  void remove_others() const {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
      const std::string name = entry.path().filename().string();
      const bool torn = name.starts_with(std::string(kManifest) + ".") && name.ends_with(".tmp");
      if (torn || (is_part(name) && !names_.contains(name))) fs::remove(entry.path(), ignored);
    }
  }

  const std::string folder_;
  const FileSystem& files_;
  ElasticManifest manifest_;
  std::set<std::string> names_;     // of the files that the manifest speaks of
  std::vector<std::string> added_;  // paths of those that were not there before
};

Result<FolderLock> lock(const std::string& path) {
  return FolderLock::take(path, "is saving an elastic model there");
}

// --- reading --------------------------------------------------------------------------------------------

Result<std::string> read_manifest(const std::string& path) {
  return os_files().read(manifest_in(path), kMaxManifest);
}

Result<ElasticManifest> parse_manifest_of(const std::string& path, std::string_view text) {
  auto manifest = parse_elastic_manifest(text);
  if (!manifest.ok()) return manifest.status().in(manifest_in(path));
  convert_notes(manifest->info.notes);
  return manifest;
}

// Turns what the manifest and the other files hold into a model.
class Loader {
 public:
  Loader(std::string path, ElasticManifest manifest)
      : path_(std::move(path)), manifest_(std::move(manifest)) {}

  Result<ElasticModel> load() {
    LIMBER_ASSIGN(const auto graphs, open(kGraphs));
    LIMBER_TRY(read_tensors(kBase));
    LIMBER_TRY(read_tensors(kAlternatives));
    take_constants();
    if (Status status = read_graphs(text_of(*graphs)); !status.ok()) return status.in(file_of(kGraphs));
    LIMBER_TRY(take_parameters());
    if (const Status status = check_elastic(model_); !status.ok())
      return corrupt("{}: {}", manifest_in(path_), status.message());
    return std::move(model_);
  }

 private:
  std::string file_of(const Part& part) const {
    return path_ + "/" + file_name(part, manifest_.files.at(part.name));
  }

  Result<std::shared_ptr<const MappedFile>> open(const Part& part) const {
    const auto record = manifest_.files.find(part.name);
    if (record == manifest_.files.end())
      return corrupt("{}: 'files' does not list '{}'", manifest_in(path_), part.name);
    return map_checked(file_of(part), record->second);
  }

  Status read_tensors(const Part& part) {
    LIMBER_ASSIGN(const auto file, open(part));
    auto parsed = parse_safetensors(file->bytes(), file);
    if (!parsed.ok()) return parsed.status().in(file_of(part));
    for (const auto& [name, tensor] : parsed->tensors) {
      if (!tensors_.emplace(name, tensor).second)
        return corrupt("{}: tensor '{}' is in '{}' too", file_of(part), name, kBase.name);
    }
    return {};
  }

  void take_constants() {
    std::erase_if(tensors_, [&](const auto& entry) {
      uint64_t number = 0;
      const std::string_view name = entry.first;
      if (!name.starts_with(kConstant) || !parse_hex(name.substr(kConstant.size()), number)) return false;
      constants_.emplace(number, entry.second);
      return true;
    });
  }

  Status read_graphs(std::string_view text) {
    if (text.size() > kMaxGraphs) return error(Code::kResourceExhausted, "{} bytes", text.size());
    LIMBER_TRY(read_graph(text, manifest_.base, model_.base).in("the base"));
    for (const BlockRecord& block : manifest_.blocks) {
      model_.blocks.push_back({block.name, {}});
      for (const AlternativeRecord& a : block.alternatives) {
        auto& made = model_.blocks.back().alternatives.emplace_back(Alternative{a.name, a.span, {}, a.error});
        LIMBER_TRY(read_graph(text, a.graph, made.graph)
                       .in(fmt::format("block '{}', alternative '{}'", block.name, a.name)));
      }
    }
    for (const ExitRecord& exit : manifest_.exits) {
      model_.exits.push_back({exit.name, exit.after, {}});
      LIMBER_TRY(
          read_graph(text, exit.graph, model_.exits.back().graph).in(fmt::format("exit '{}'", exit.name)));
    }
    if (!text.empty()) return corrupt("{} bytes belong to no graph", text.size());
    return {};
  }

  // Takes one graph off the start of `text`.
  Status read_graph(std::string_view& text, const GraphRecord& record, Graph& graph) const {
    if (record.bytes > text.size())
      return corrupt("its text has {} bytes, {} are left", record.bytes, text.size());
    std::map<std::string, Tensor> constants;
    for (const auto& [name, number] : record.constants) {
      const auto found = constants_.find(number);
      if (found == constants_.end()) return corrupt("no bytes for constant '{}'", name);
      // A constant must be aligned; it is small.
      LIMBER_ASSIGN(constants[name], found->second.copy());
    }
    LIMBER_ASSIGN(graph, parse(text.substr(0, record.bytes), &constants));
    text.remove_prefix(record.bytes);
    return {};
  }

  Status take_parameters() {
    std::set<std::string> known;
    for_each_graph(model_, [&](const Graph& graph) {
      for (std::string& name : parameters_of(graph)) known.insert(std::move(name));
    });
    model_.params = std::make_shared<Parameters>();
    for (const auto& [name, tensor] : tensors_) {
      if (!known.contains(name)) return corrupt("{}: tensor '{}' belongs to no graph", path_, name);
      model_.params->set(name, tensor);
    }
    return {};
  }

  const std::string path_;
  const ElasticManifest manifest_;
  std::map<std::string, Tensor> tensors_;
  std::map<uint64_t, Tensor> constants_;
  ElasticModel model_;
};

// Alternatives may have come before those that exits were taught with, and moved them: a position that is
// neither the original nor a tuned copy speaks of something else.
bool suits_exits(const ElasticModel& model, const Variant& variant) {
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    const int choice = variant.choices[b];
    if (choice > 0 && model.blocks[b].alternatives[static_cast<size_t>(choice)].name != kTunedAlternative)
      return false;
  }
  return true;
}

// Notes of version 1. What cannot be trusted stays as it is, which nobody can read: its reader names the
// remedy.
void name_variants(ElasticFolder& folder) {
  const ElasticModel& model = folder.model;
  auto teaching = read_note<TeachingNote>(folder.info.notes);
  for (std::string& tuned : teaching.tuned) {
    if (const auto variant = parse_positions(model, tuned)) tuned = print(model, *variant);
  }
  if (!teaching.tuned.empty()) put_note(folder.info.notes, teaching);
  auto exits = read_note<ExitsNote>(folder.info.notes);
  if (exits.blocks.empty()) return;
  const auto blocks = parse_positions(model, exits.blocks);
  if (blocks && suits_exits(model, *blocks)) exits.blocks = print(model, *blocks);
  put_note(folder.info.notes, exits);
}

}  // namespace

Status save_elastic(const std::string& path, const ElasticModel& model, const ElasticInfo& info,
                    const FileSystem& files) {
  LIMBER_TRY(check_elastic(model));
  LIMBER_TRY(check_preprocess(info.input));
  std::error_code ec;
  fs::create_directories(path, ec);
  if (ec) return error(Code::kIo, "{}: cannot create folder: {}", path, ec.message());
  LIMBER_ASSIGN(const FolderLock held, lock(path));
  return Saver(path, files).save(model, info);
}

Result<ElasticFolder> load_elastic(const std::string& path) {
  // While another process saves, again and again at worst, files that a manifest speaks of may go before they
  // are read. A manifest that stays the same is damage, unless it went and came back: hence kSame.
  constexpr int kAttempts = 50, kSame = 3;
  for (int attempt = 1, same = 0;; ++attempt) {
    LIMBER_ASSIGN(const std::string text, read_manifest(path));
    LIMBER_ASSIGN(ElasticManifest manifest, parse_manifest_of(path, text));
    ElasticFolder folder{path, manifest.info, manifest.fingerprint, {}};
    const bool by_positions = manifest.version == 1;
    auto model = Loader(path, std::move(manifest)).load();
    if (model.ok()) {
      folder.model = *std::move(model);
      if (by_positions) name_variants(folder);
      return folder;
    }
    const auto now = read_manifest(path);
    if (now.ok() && *now == text) ++same;
    if (attempt == kAttempts || same == kSame || !now.ok()) return model.status();
  }
}

Result<ElasticInfo> load_elastic_info(const std::string& path) {
  LIMBER_ASSIGN(const std::string text, read_manifest(path));
  LIMBER_ASSIGN(ElasticManifest manifest, parse_manifest_of(path, text));
  return std::move(manifest.info);
}

bool is_elastic(const std::string& path) {
  const auto text = read_manifest(path);
  if (!text.ok()) return false;
  const auto manifest = parse_elastic_manifest(*text);
  // kUnsupported: another version of it.
  return manifest.ok() || manifest.status().code() == Code::kUnsupported;
}

std::string variants_in(const std::string& path) { return path + "/variants.db"; }

std::string history_in(const std::string& path) { return path + "/history.jsonl"; }

Status append_history(const std::string& path, const std::string& line, const FileSystem& files) {
  LIMBER_ASSIGN(const FolderLock held, lock(path));
  LIMBER_ASSIGN(RecordWriter history, RecordWriter::open(history_in(path), files));
  LIMBER_TRY(history.add_line(line));
  return history.sync();
}

}  // namespace limber
