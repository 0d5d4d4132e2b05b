#include "jobs/served_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "device/energy.h"
#include "device/roofline.h"
#include "jobs/classifier.h"
#include "jobs/elastic_work.h"
#include "passes/answers.h"
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
// Belongs to the index.
const VariantGroup* choose_group(const VariantIndex& index, int threads, bool exits) {
  if (const VariantGroup* here = index.widest(exits ? exits_context(threads) : machine_context(threads)))
    return here;
  const VariantGroup* most = nullptr;
  for (const VariantGroup& group : index.groups()) {
    if (is_exits_context(group.context) != exits) continue;
    const VariantGroup& kept = index.all(group).front().group;
    if (most == nullptr || index.all(group).size() > index.all(*most).size()) most = &kept;
  }
  return most;
}

}  // namespace

Result<JudgedVariants> served_variants(const std::string& folder, const ElasticModel& model, int threads,
                                       bool exits) {
  JudgedVariants found;
  const Variant original = original_variant(model);
  const std::string table_file = variants_in(folder);
  std::shared_ptr<const VariantIndex> index;
  const VariantGroup* group = nullptr;
  if (is_file(table_file)) {  // a folder that was never searched may be one that nobody can write to
    LIMBER_ASSIGN(const auto table, VariantTable::open(table_file, model));
    LIMBER_ASSIGN(index, table->index());
    group = choose_group(*index, threads, exits);
  }
  if (group == nullptr) {
    found.note = fmt::format(
        "{}: no variant was judged yet, so the original serves alone; 'limber search {} --data DATA "
        "--latency 50%' finds some",
        folder, folder);
    found.variants.push_back({.name = print(model, original), .variant = original, .timed = false});
    return found;
  }
  found.judged_by = group->data;
  found.images = index->all(*group).front().images;
  if (group->context != (exits ? exits_context(threads) : machine_context(threads)))
    found.note =
        fmt::format("{}: nothing was timed with {} thread{} on this machine; times of '{}' are used {}",
                    folder, threads, threads == 1 ? "" : "s", group->context,
                    exits ? "for variants with exits" : "until variants are timed here");
  for (const VariantRecord* record : index->front(*group)) found.variants.push_back(served(model, *record));
  const bool has_original = std::any_of(found.variants.begin(), found.variants.end(),
                                        [&](const ServedVariant& one) { return one.variant == original; });
  for (const VariantRecord& record : index->all(*group))
    if (!has_original && record.variant == original) found.variants.push_back(served(model, record));
  return found;
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
    fs::path path = fs::path(options_.path).lexically_normal();
    if (path.filename().empty()) path = path.parent_path();  // "folder/"
    std::string name = path.extension() == ".onnx" ? path.stem().string() : path.filename().string();
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
  if (options_.energy) LIMBER_TRY(estimate_energy(source));
  return source;
}

// By operations and bytes (AS6), with watts that are guesses: good for comparing variants, not for a bill.
Status ServedFolder::estimate_energy(ServedSource& source) const {
  const int threads = thread_count({.threads = options_.threads});
  const Roofline roofline = measure_roofline(threads);
  const EnergyMeter meter(guess_energy_model(threads, roofline));
  bool estimated = false;
  for (ServedVariant& one : source.variants) {
    if (one.point.energy_j > 0) continue;
    LIMBER_ASSIGN(const GraphCost cost,
                  source.elastic != nullptr ? cost_of(*source.elastic, one.variant) : cost_of(source.graph));
    const double seconds = one.timed ? one.point.latency_s : roofline.seconds(cost.flops, cost.moved_bytes);
    one.point.energy_j = meter.joules(cost.flops, cost.moved_bytes, seconds);
    estimated = true;
  }
  if (!estimated) return {};
  source.note += source.note.empty() ? source.name : "; " + source.name;
  source.note += ": joules of its variants are estimates, by operations and bytes";
  return {};
}

Result<ServedSource> ServedFolder::open_elastic_model(const std::string& path) const {
  LIMBER_ASSIGN(ElasticFolder folder, load_elastic(path));
  ServedSource source;
  source.graph = split_outputs(folder.model.base);
  source.params = folder.model.params;
  source.classes = folder.info.classes;
  source.images = folder.info.input;
  LIMBER_ASSIGN(
      JudgedVariants found,
      served_variants(path, folder.model, thread_count({.threads = options_.threads}), options_.exits));
  source.variants = std::move(found.variants);
  source.judged_by = std::move(found.judged_by);
  source.note = std::move(found.note);
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
  const ModelSource model{.model = path, .open_batch = options_.open_batch};
  auto classifier = load_classifier(model, image);
  if (classifier.ok()) {
    source.graph = std::move(classifier->model.graph);
    source.params = std::move(classifier->model.params);
    source.images = classifier->input;
    return source;
  }
  // Who says how images are prepared wants to send some.
  const ImageOptions& asked = options_.image;
  if (!asked.size.empty() || asked.crop > 0 || asked.preset || asked.normalisation)
    return classifier.status();
  // What takes no images is served by its tensors alone.
  LIMBER_ASSIGN(Model loaded, load(model));
  source.graph = std::move(loaded.graph);
  source.params = std::move(loaded.params);
  return source;
}

}  // namespace limber
