#include "jobs/served_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "jobs/classifier.h"
#include "jobs/elastic_work.h"
#include "train/run_folder.h"
#include "variant/elastic_folder.h"
#include "variant/variant_table.h"

namespace limber {
namespace {

namespace fs = std::filesystem;

bool is_model_folder(const std::string& path) {
  return is_elastic(path) || is_run(path) || is_checkpoint(path);
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code problem;
  for (fs::directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem))
    entries.push_back(at->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

// The number that a folder of a version is called by; negative when it is none.
int64_t version_number(const fs::path& folder) {
  const std::string name = folder.filename().string();
  int64_t number = -1;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
  return problem == std::errc() && end == name.data() + name.size() ? number : -1;
}

// What to load of a version's folder; empty when there is nothing.
std::string model_of_version(const fs::path& folder) {
  if (is_model_folder(folder.string())) return folder.string();
  return is_file(folder / "model.onnx") ? (folder / "model.onnx").string() : "";
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

ServedVariant served(const ElasticModel& model, const VariantRecord& record) {
  ServedVariant variant{.name = print(model, record.variant), .variant = record.variant};
  variant.point = {record.latency_s(), record.energy_j.value_or(0), record.memory_bytes, record.accuracy};
  return variant;
}

// The group whose figures are meant: of this machine and so many threads, else of the machine it knows most
// of.
const VariantGroup* choose_group(const std::vector<VariantGroup>& groups, const VariantIndex& index,
                                 int threads, bool exits) {
  if (const VariantGroup* here = index.widest(exits ? exits_context(threads) : machine_context(threads)))
    return here;
  const VariantGroup* most = nullptr;
  for (const VariantGroup& group : groups) {
    if (is_exits_context(group.context) != exits) continue;
    if (most == nullptr || index.all(group).size() > index.all(*most).size()) most = &group;
  }
  return most;
}

}  // namespace

Result<std::vector<ServedVariant>> served_variants(const std::string& folder, const ElasticModel& model,
                                                   int threads, bool exits, std::string& note) {
  std::vector<ServedVariant> variants;
  const Variant original = original_variant(model);
  LIMBER_ASSIGN(const auto table, VariantTable::open(variants_in(folder), model));
  LIMBER_ASSIGN(const auto index, table->index());
  const std::vector<VariantGroup> groups = index->groups();
  const VariantGroup* group = choose_group(groups, *index, threads, exits);
  if (group == nullptr) {
    note = fmt::format(
        "{}: no variant was judged yet, so the original serves alone; 'limber search {} --data DATA "
        "--latency 50%' finds some",
        folder, folder);
    variants.push_back({.name = print(model, original), .variant = original, .timed = false});
    return variants;
  }
  if (group->context != (exits ? exits_context(threads) : machine_context(threads)))
    note = fmt::format(
        "{}: nothing was timed with {} thread{} on this machine; times of '{}' are used until variants "
        "are timed here",
        folder, threads, threads == 1 ? "" : "s", group->context);
  for (const VariantRecord* record : index->front(*group)) variants.push_back(served(model, *record));
  const bool has_original = std::any_of(variants.begin(), variants.end(),
                                        [&](const ServedVariant& one) { return one.variant == original; });
  for (const VariantRecord& record : index->all(*group))
    if (!has_original && record.variant == original) variants.push_back(served(model, record));
  return variants;
}

ServedFolder::ServedFolder(const ServedFolderOptions& options)
    : options_(options), backends_([&] {
        JobOptions engine;
        static_cast<EngineOptions&>(engine) = options;
        return make_backends(build_spec(engine, false));
      }()) {}

Result<std::unique_ptr<ServedFolder>> ServedFolder::open(const ServedFolderOptions& options) {
  std::unique_ptr<ServedFolder> made(new ServedFolder(options));
  std::error_code ignored;
  made->single_ = !fs::is_directory(options.path, ignored) || is_model_folder(options.path);
  if (!made->single_ && !options.name.empty())
    return invalid("{}: is a folder of models, which are called by their folders; name '{}' is for one model",
                   options.path, options.name);
  if (!made->single_ && made->names().empty())
    return error(Code::kNotFound,
                 "{}: is neither a model nor a folder of models; expected an ONNX file, what 'limber train' "
                 "or 'limber "
                 "elastify' made, or NAME/VERSION/model.onnx in it",
                 options.path);
  return made;
}

std::vector<std::string> ServedFolder::names() const {
  if (single_) {
    if (!options_.name.empty()) return {options_.name};
    std::string name = fs::path(options_.path).lexically_normal().stem().string();
    if (name.empty()) name = fs::path(options_.path).lexically_normal().parent_path().stem().string();
    if (options_.path.starts_with("builtin:")) name = options_.path.substr(8);
    return {name};
  }
  std::vector<std::string> names;
  for (const fs::path& entry : entries_of(options_.path)) {
    const std::string name = entry.extension() == ".onnx" ? entry.stem().string() : entry.filename().string();
    if (find(name).ok()) names.push_back(name);
  }
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<ServedFolder::Place> ServedFolder::find(const std::string& name) const {
  if (single_) {
    if (name == names()[0]) return Place{options_.path, "1"};
    return error(Code::kNotFound, "no model '{}'; there is: {}", name, names()[0]);
  }
  const Status missing = error(Code::kNotFound, "{}: holds no model '{}'", options_.path, name);
  if (!is_plain_name(name)) return missing;
  const fs::path folder = fs::path(options_.path) / name;
  if (is_model_folder(folder.string())) return Place{folder.string(), "1"};
  std::map<int64_t, std::string> versions;
  for (const fs::path& entry : entries_of(folder)) {
    const int64_t number = version_number(entry);
    if (number < 0) continue;
    if (std::string model = model_of_version(entry); !model.empty()) versions[number] = std::move(model);
  }
  if (!versions.empty()) return Place{versions.rbegin()->second, fmt::format("{}", versions.rbegin()->first)};
  if (is_file(folder.string() + ".onnx")) return Place{folder.string() + ".onnx", "1"};
  return missing;
}

std::string ServedFolder::elastic_folder(const std::string& name) const {
  const auto place = find(name);
  return place.ok() && is_elastic(place->path) ? place->path : "";
}

Result<ServedSource> ServedFolder::open(const std::string& name) const {
  LIMBER_ASSIGN(const Place place, find(name));
  LIMBER_ASSIGN(ServedSource source,
                is_elastic(place.path) ? open_elastic_model(place.path) : open_plain(place.path));
  source.name = name;
  source.version = place.version;
  return source;
}

Result<ServedSource> ServedFolder::open_elastic_model(const std::string& path) const {
  LIMBER_ASSIGN(ElasticFolder folder, load_elastic(path));
  ServedSource source;
  source.graph = folder.model.base;
  source.params = folder.model.params;
  source.classes = folder.info.classes;
  source.images = folder.info.input;
  std::string note;
  LIMBER_ASSIGN(
      source.variants,
      served_variants(path, folder.model, thread_count({.threads = options_.threads}), options_.exits, note));
  source.note = std::move(note);
  source.elastic = std::make_shared<const ElasticModel>(std::move(folder.model));
  return source;
}

Result<ServedSource> ServedFolder::open_plain(const std::string& path) const {
  ServedSource source;
  source.variants.push_back({.name = "original", .timed = false});
  ImageOptions image = options_.image;
  LIMBER_ASSIGN(const auto recorded, checkpoint_of(path));
  if (recorded) {
    use_recorded(image, recorded->input);
    source.classes = recorded->classes;
  }
  const ModelSource model{.model = path};
  // What takes no images is served by its tensors alone.
  if (auto classifier = load_classifier(model, image); classifier.ok()) {
    source.graph = std::move(classifier->model.graph);
    source.params = std::move(classifier->model.params);
    source.images = classifier->input;
    return source;
  }
  LIMBER_ASSIGN(Model loaded, load(model));
  source.graph = std::move(loaded.graph);
  source.params = std::move(loaded.params);
  return source;
}

}  // namespace limber
