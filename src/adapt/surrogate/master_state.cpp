#include "adapt/surrogate/master_state.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "io/json_fields.h"
#include "io/safetensors.h"
#include "record/fields.h"

namespace limber::adapt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "limber adaptation";
constexpr int64_t kVersion = 1;
constexpr std::string_view kManifestName = "manifest.json";
constexpr size_t kMaxManifestBytes = size_t{64}
                                     << 20;  // a hundred times what 64 domains of a large model need
constexpr std::string_view kWeight = "weight/", kKnowledge = "knowledge/", kGates = "gates/";

// A file is called after what it holds, so that one that a manifest speaks of is never written over.
struct PartRecord {
  int64_t bytes = 0;
  uint64_t hash = 0;
  static void fields(auto& self, auto& field) {
    field("bytes", self.bytes);
    field("hash", self.hash);
  }
};

struct DomainRecord {
  int64_t domain = 0;
  std::vector<std::vector<int64_t>> kept;
  PartRecord file;
  static void fields(auto& self, auto& field) {
    field("domain", self.domain);
    field("kept", self.kept);
    field("file", self.file);
  }
};

struct StateRecord {
  std::string format{kFormat};
  int64_t version = kVersion;
  std::string master;
  double spread = 0;
  PartRecord weights;
  std::vector<DomainRecord> domains;
  static void fields(auto& self, auto& field) {
    field("format", self.format);
    field("version", self.version);
    field("master", self.master);
    field("spread", self.spread);
    field("weights", self.weights);
    field("domains", self.domains);
  }
};

std::string part_name(std::string_view kind, const PartRecord& record) {
  return fmt::format("{}-{}.safetensors", kind, format_hex(record.hash));
}
std::string domain_kind(int64_t domain) { return fmt::format("domain-{}", domain); }

TensorFile file_of(const std::map<std::string, Tensor>& weights, std::string_view prefix) {
  TensorFile file;
  for (const auto& [name, tensor] : weights) file.tensors.emplace(std::string(prefix) + name, tensor);
  return file;
}

TensorFile file_of(const DomainMemory& memory) {
  TensorFile file = file_of(memory.weights, kWeight);
  for (size_t l = 0; l < memory.gates.size(); ++l) {
    const std::vector<float> gates(memory.gates[l].begin(), memory.gates[l].end());
    file.tensors.emplace(
        fmt::format("{}{}", kGates, l),
        Tensor::from(std::span<const float>(gates), Shape{static_cast<int64_t>(gates.size())}));
  }
  return file;
}

class StateWriter {
 public:
  StateWriter(const std::string& path, const FileSystem& files) : path_(path), files_(files) {}

  Status write(const MasterState& state, StateRecord record) {
    TensorFile master = file_of(state.weights, kWeight);
    master.tensors.merge(file_of(state.knowledge, kKnowledge).tensors);
    LIMBER_ASSIGN(record.weights, write_part("master", master));
    for (const auto& [domain, memory] : state.domains) {
      LIMBER_ASSIGN(const PartRecord file, write_part(domain_kind(domain), file_of(memory)));
      record.domains.push_back({domain, memory.kept, file});
    }
    LIMBER_TRY(sync_folder(path_));
    const std::string manifest = format_fields(record) + "\n";
    LIMBER_TRY(files_.write(fmt::format("{}/{}", path_, kManifestName), manifest));
    LIMBER_TRY(sync_folder(path_));
    remove_others();
    return {};
  }

 private:
  Result<PartRecord> write_part(const std::string& kind, const TensorFile& file) {
    for (const auto& [name, tensor] : file.tensors) LIMBER_TRY(check_finite(name, tensor));
    PartRecord part;
    LIMBER_TRY(give_safetensors(file, [&](std::span<const std::string_view> bytes) -> Status {
      const FileRecord sum = record_of(bytes);
      part = {static_cast<int64_t>(sum.bytes), sum.hash};
      const std::string name = part_name(kind, part), path = path_ + "/" + name;
      names_.insert(name);
      if (const auto there = record_of(path); there.ok() && *there == sum) return {};
      return files_.write(path, bytes);
    }));
    return part;
  }

  // What an older manifest spoke of, or a crash left behind.
  void remove_others() const {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(path_, ignored)) {
      const std::string name = entry.path().filename().string();
      const bool part = name.starts_with("master-") || name.starts_with("domain-");
      const bool torn = name.ends_with(".tmp");
      if ((part && !names_.contains(name)) || torn) fs::remove(entry.path(), ignored);
    }
  }

  const std::string& path_;
  const FileSystem& files_;
  std::set<std::string> names_;
};

class StateReader {
 public:
  explicit StateReader(const std::string& path) : path_(path) {}

  Result<MasterState> read(const StateRecord& record) const {
    MasterState state;
    state.spread = record.spread;
    LIMBER_ASSIGN(auto tensors, read_part("master", record.weights));
    take(tensors, kWeight, state.weights);
    take(tensors, kKnowledge, state.knowledge);
    LIMBER_TRY(check_all_taken(tensors));
    for (const DomainRecord& each : record.domains) {
      DomainMemory memory{each.kept, {}, {}};
      LIMBER_ASSIGN(tensors, read_part(domain_kind(each.domain), each.file));
      take(tensors, kWeight, memory.weights);
      LIMBER_TRY(take_gates(tensors, memory.gates));
      LIMBER_TRY(check_all_taken(tensors));
      if (!state.domains.emplace(each.domain, std::move(memory)).second)
        return corrupt("{}/{}: domain {} is there twice", path_, kManifestName, each.domain);
    }
    return state;
  }

 private:
  using Tensors = std::map<std::string, Tensor>;

  Result<Tensors> read_part(const std::string& kind, const PartRecord& record) const {
    const std::string path = path_ + "/" + part_name(kind, record);
    LIMBER_ASSIGN(const auto file,
                  map_checked(path, {.bytes = static_cast<uint64_t>(record.bytes), .hash = record.hash}));
    // Copies: the file goes when a newer one is saved.
    auto parsed = parse_safetensors(file->bytes(), nullptr);
    if (!parsed.ok()) return parsed.status().in(path);
    for (const auto& [name, tensor] : parsed->tensors) {
      if (const Status finite = check_finite(name, tensor); !finite.ok())
        return corrupt("{}: {}", path, finite.message());
    }
    return std::move(parsed->tensors);
  }

  static void take(Tensors& from, std::string_view prefix, Tensors& to) {
    std::erase_if(from, [&](const auto& entry) {
      if (!entry.first.starts_with(prefix)) return false;
      to.emplace(entry.first.substr(prefix.size()), entry.second);
      return true;
    });
  }

  Status take_gates(Tensors& from, FilterValues& gates) const {
    for (auto it = from.find(fmt::format("{}0", kGates)); it != from.end();
         it = from.find(fmt::format("{}{}", kGates, gates.size()))) {
      if (it->second.dtype() != DType::kF32 || it->second.shape().rank() != 1)
        return corrupt("{}: '{}' is {}, expected f32[filters]", path_, it->first,
                       it->second.type().to_string());
      const auto values = it->second.data<float>();
      gates.emplace_back(values.begin(), values.end());
      from.erase(it);
    }
    return {};
  }

  Status check_all_taken(const Tensors& left) const {
    if (left.empty()) return {};
    return corrupt("{}: tensor '{}' belongs to nothing", path_, left.begin()->first);
  }

  const std::string& path_;
};

}  // namespace

Result<StateFolder> StateFolder::open(const std::string& path, std::string master, const FileSystem& files) {
  std::error_code ec;
  fs::create_directories(path, ec);
  if (ec) return error(Code::kIo, "{}: cannot create folder: {}", path, ec.message());
  LIMBER_ASSIGN(FolderLock lock, FolderLock::take(path, "is adapting this master"));
  return StateFolder(path, std::move(master), files, std::move(lock));
}

Status StateFolder::save(const MasterState& state) const {
  StateRecord record;
  record.master = master_;
  record.spread = state.spread;
  return StateWriter(path_, *files_).write(state, std::move(record));
}

Result<std::optional<MasterState>> StateFolder::load() const {
  const std::string manifest = fmt::format("{}/{}", path_, kManifestName);
  const auto text = files_->read(manifest, kMaxManifestBytes);
  if (!text.ok() && text.status().code() == Code::kNotFound) return std::optional<MasterState>();
  if (!text.ok()) return text.status();
  const auto record = parse_fields<StateRecord>(*text);
  if (!record.ok()) return record.status().in(manifest);
  if (record->format != kFormat)
    return corrupt("{}: 'format' is '{}', expected '{}'", manifest, record->format, kFormat);
  if (record->version != kVersion)
    return unsupported("{}: version {}, this program reads {}; update Limber", manifest, record->version,
                       kVersion);
  if (record->master != master_) {
    return invalid(
        "{}: this was learnt by another master ({:.12}..., not {:.12}...); delete {} to begin anew", manifest,
        record->master, master_, path_);
  }
  LIMBER_ASSIGN(MasterState state, StateReader(path_).read(*record));
  return std::optional(std::move(state));
}

}  // namespace limber::adapt
