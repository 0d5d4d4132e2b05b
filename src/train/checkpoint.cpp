#include "train/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "io/model_folder.h"
#include "io/onnx.h"
#include "io/safetensors.h"
#include "ops/op_def.h"

namespace limber {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kGraph = "graph.txt";
constexpr const char* kModel = "model.onnx";
constexpr const char* kWeights = "weights.safetensors";
constexpr size_t kMaxManifest = size_t{64} << 20;  // bytes that are read of a stranger's files:
constexpr size_t kMaxGraph = size_t{256} << 20;    // a hundred times what large models have
constexpr std::string_view kOptimizer = "optimizer/";
constexpr std::string_view kConstant = "limber.constant/";

std::string in_folder(const std::string& folder, const char* name) { return folder + "/" + name; }

std::string parent_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

Status os_failure(const std::string& path, const char* what) {
  return error(Code::kIo, "{}: cannot {}: {}", path, what, std::strerror(errno));
}

// --- writing ----------------------------------------------------------------------------------------------

Result<TensorFile> collect(const Graph& graph, const Parameters& params) {
  TensorFile file;
  const auto add = [&](const std::string& name) -> Status {
    LIMBER_ASSIGN(const Tensor tensor, params.get(name));
    LIMBER_TRY(check_finite(name, tensor));
    file.tensors.emplace(name, tensor);
    return {};
  };
  for (const Value& value : graph.values()) {
    if (value.role == Role::kParameter || value.role == Role::kState) LIMBER_TRY(add(value.name));
    if (value.role == Role::kConstant)
      file.tensors.emplace(std::string(kConstant) + value.name, value.constant);
  }
  for (const std::string& name : params.names()) {
    if (name.starts_with(kOptimizer)) LIMBER_TRY(add(name));
  }
  return file;
}

Status write_into(const std::string& folder, const Graph& graph, const Parameters& params,
                  const CheckpointInfo& info, const FileSystem& files) {
  LIMBER_ASSIGN(const TensorFile weights, collect(graph, params));
  LIMBER_TRY(write_safetensors(in_folder(folder, kWeights), weights, files));
  ExportOptions how{.shared_file = kWeights};
  LIMBER_ASSIGN(how.shared, safetensors_offsets(weights));
  LIMBER_TRY(export_onnx(graph, params, in_folder(folder, kModel), how, files));
  LIMBER_TRY(files.write(in_folder(folder, kGraph), print(graph)));
  Manifest manifest{info, {}};
  for (const char* name : {kGraph, kModel, kWeights}) {
    LIMBER_ASSIGN(manifest.files[name], record_of(in_folder(folder, name)));
  }
  return files.write(in_folder(folder, kManifest), format_manifest(manifest));
}

// Puts `from` where `to` is; what was there is then under `from`.
Status swap_in(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  if (errno != ENOTEMPTY && errno != EEXIST) return os_failure(to, "rename");
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return {};
  const std::string aside = from + ".old";
  if (::rename(to.c_str(), aside.c_str()) != 0 || ::rename(from.c_str(), to.c_str()) != 0)
    return os_failure(to, "rename");
  return ::rename(aside.c_str(), from.c_str()) == 0 ? Status() : os_failure(aside, "rename");
}

Status save_through(const std::string& temporary, const std::string& path, const Graph& graph,
                    const Parameters& params, const CheckpointInfo& info, const FileSystem& files) {
  std::error_code ec;
  fs::create_directories(temporary, ec);
  if (ec) return error(Code::kIo, "{}: cannot create folder: {}", temporary, ec.message());
  LIMBER_TRY(write_into(temporary, graph, params, info, files));
  LIMBER_TRY(sync_folder(temporary));
  LIMBER_TRY(swap_in(temporary, path));
  return sync_folder(parent_of(path));
}

// --- reading ----------------------------------------------------------------------------------------------

struct Bytes {
  Manifest manifest;
  std::map<std::string, std::shared_ptr<const MappedFile>> files;
};

// All files, known to hold what the manifest says.
Result<Bytes> read_bytes(const std::string& path) {
  LIMBER_ASSIGN(const std::string text, os_files().read(in_folder(path, kManifest), kMaxManifest));
  auto manifest = parse_manifest(text);
  if (!manifest.ok()) return manifest.status().in(in_folder(path, kManifest));
  Bytes bytes{*std::move(manifest), {}};
  for (const char* name : {kGraph, kModel, kWeights}) {
    const std::string file = in_folder(path, name);
    const auto record = bytes.manifest.files.find(name);
    if (record == bytes.manifest.files.end()) return corrupt("{}: the manifest does not list it", file);
    LIMBER_ASSIGN(bytes.files[name], map_checked(file, record->second));
  }
  return bytes;
}

// Moves constants out of `file`.
std::map<std::string, Tensor> take_constants(TensorFile& file) {
  std::map<std::string, Tensor> constants;
  for (auto it = file.tensors.begin(); it != file.tensors.end();) {
    if (!it->first.starts_with(kConstant)) {
      ++it;
      continue;
    }
    constants.emplace(it->first.substr(kConstant.size()), it->second);
    it = file.tensors.erase(it);
  }
  return constants;
}

Result<std::shared_ptr<Parameters>> take_parameters(const Graph& graph, const TensorFile& file) {
  std::set<std::string> known;
  for (const Value& value : graph.values()) {
    if (value.role != Role::kParameter && value.role != Role::kState) continue;
    const auto found = file.tensors.find(value.name);
    if (found == file.tensors.end()) return corrupt("{} has no tensor '{}'", kWeights, value.name);
    if (found->second.type() != value.type) {
      return corrupt("{}: tensor '{}' is {}, the graph has {}", kWeights, value.name,
                     found->second.type().to_string(), value.type.to_string());
    }
    known.insert(value.name);
  }
  auto params = std::make_shared<Parameters>();
  for (const auto& [name, tensor] : file.tensors) {
    if (!known.contains(name) && !name.starts_with(kOptimizer))
      return corrupt("{}: tensor '{}' belongs to nothing", kWeights, name);
    params->set(name, tensor);
  }
  return params;
}

Status fill(Checkpoint& checkpoint, const Bytes& bytes) {
  const auto& weights = bytes.files.at(kWeights);
  LIMBER_ASSIGN(TensorFile tensors, parse_safetensors(weights->bytes(), weights));
  const auto constants = take_constants(tensors);
  const std::string_view text = text_of(*bytes.files.at(kGraph));
  if (text.size() > kMaxGraph) return error(Code::kResourceExhausted, "{} has {} bytes", kGraph, text.size());
  LIMBER_ASSIGN(checkpoint.graph, parse(text, &constants));
  LIMBER_TRY(verify(checkpoint.graph).in(kGraph));
  LIMBER_ASSIGN(checkpoint.params, take_parameters(checkpoint.graph, tensors));
  return {};
}

}  // namespace

Status save_checkpoint(const std::string& path, const Graph& graph, const Parameters& params,
                       const CheckpointInfo& info, const FileSystem& files) {
  const std::string temporary =
      fmt::format("{}/.{}.tmp-{}", parent_of(path), fs::path(path).filename().string(), ::getpid());
  std::error_code ignored;
  fs::remove_all(temporary, ignored);
  Status status = save_through(temporary, path, graph, params, info, files);
  fs::remove_all(temporary, ignored);
  return status;
}

Result<Checkpoint> load_checkpoint(const std::string& path) {
  LIMBER_ASSIGN(Bytes bytes, read_bytes(path));
  Checkpoint checkpoint{path, bytes.manifest.info, {}, nullptr};
  if (const Status filled = fill(checkpoint, bytes); !filled.ok()) return filled.in(path);
  return checkpoint;
}

Result<CheckpointInfo> check_checkpoint(const std::string& path) {
  LIMBER_ASSIGN(Bytes bytes, read_bytes(path));
  return std::move(bytes.manifest.info);
}

bool is_checkpoint(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(in_folder(path, kManifest), ignored);
}

std::string model_in(const std::string& checkpoint) { return in_folder(checkpoint, kModel); }

}  // namespace limber
