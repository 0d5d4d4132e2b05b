#include "variant/elastic_folder.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/memory.h"
#include "io/safetensors.h"
#include "tests/base/full_disk.h"
#include "tests/data/files.h"
#include "tests/variant/random_elastic.h"
#include "variant/fingerprint.h"

namespace limber::test {
namespace {

namespace fs = std::filesystem;

ElasticInfo some_info(const std::string& phase = "1") {
  ElasticInfo info;
  info.classes = {"circle", "r\"ing", "Ü"};
  info.input.height = info.input.width = 8;
  info.input.resize = 12;
  info.input.normalisation.mean = {0.1F, 0.2F, 0.3F};
  info.notes = {{"phase", phase}, {"search", "{\"seed\": 7}\n"}};
  return info;
}

// Has alternatives over several blocks, exits, states, and constants that are stored beside the text.
ElasticModel some_model() {
  for (uint64_t seed = 0;; ++seed) {
    ElasticModel model = random_elastic(seed);
    bool spans = false, constants = false;
    for (const Block& block : model.blocks) {
      for (const Alternative& a : block.alternatives) {
        spans = spans || a.span > 1;
        for (const Value& v : a.graph.values())
          constants = constants || (v.role == Role::kConstant && v.constant.elements() > 64);
      }
    }
    if (spans && constants && !model.exits.empty()) return model;
  }
}

std::map<std::string, std::string> weights_of(const ElasticModel& model) {
  std::map<std::string, std::string> bytes;
  for (const std::string& name : model.params->names()) bytes[name] = bytes_of(*model.params->get(name));
  return bytes;
}

void expect_equal(const ElasticModel& a, const ElasticModel& b) {
  EXPECT_EQ(print(a.base), print(b.base));
  EXPECT_EQ(hash(a.base), hash(b.base));
  ASSERT_EQ(a.blocks.size(), b.blocks.size());
  for (size_t i = 0; i < a.blocks.size(); ++i) {
    EXPECT_EQ(a.blocks[i].name, b.blocks[i].name);
    ASSERT_EQ(a.blocks[i].alternatives.size(), b.blocks[i].alternatives.size());
    for (size_t k = 0; k < a.blocks[i].alternatives.size(); ++k) {
      const Alternative &x = a.blocks[i].alternatives[k], &y = b.blocks[i].alternatives[k];
      EXPECT_EQ(std::tie(x.name, x.span, x.error), std::tie(y.name, y.span, y.error));
      EXPECT_EQ(hash(x.graph), hash(y.graph));
      EXPECT_EQ(print(x.graph), print(y.graph));
    }
  }
  ASSERT_EQ(a.exits.size(), b.exits.size());
  for (size_t i = 0; i < a.exits.size(); ++i) {
    EXPECT_EQ(std::tie(a.exits[i].name, a.exits[i].after), std::tie(b.exits[i].name, b.exits[i].after));
    EXPECT_EQ(hash(a.exits[i].graph), hash(b.exits[i].graph));
  }
  EXPECT_TRUE(weights_of(a) == weights_of(b));
}

std::vector<std::string> entries(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// The file of this kind: "base", "graphs", "alternatives".
std::string part_in(const std::string& folder, const std::string& kind) {
  for (const std::string& name : entries(folder)) {
    if (name.starts_with(kind + "-")) return folder + "/" + name;
  }
  return {};
}

std::string read_all(const std::string& path) { return *os_files().read(path, size_t{1} << 26); }

void change_weight(ElasticModel& model, const std::string& name, float value) {
  Tensor tensor = *model.params->writable(name);
  tensor.data<float>()[0] = value;
  model.params->mark_changed(std::span(&name, 1));
}

// A parameter that only an alternative or exit has.
std::string extra_parameter(const ElasticModel& model) {
  const auto base = parameters_of(model.base);
  for (const std::string& name : model.params->names()) {
    if (!std::binary_search(base.begin(), base.end(), name)) return name;
  }
  return {};
}

TEST(ElasticFolder, GivesBackWhatWasSaved) {
  const Folder folder;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const ElasticModel model = random_elastic(seed);
    ASSERT_TRUE(save_elastic(folder / "m", model, some_info()).ok());
    const auto loaded = load_elastic(folder / "m");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    expect_equal(loaded->model, model);
    EXPECT_EQ(loaded->info.classes, some_info().classes);
    EXPECT_EQ(loaded->info.notes, some_info().notes);
    EXPECT_EQ(loaded->info.input.resize, 12);
    EXPECT_EQ(loaded->info.input.normalisation.mean, some_info().input.normalisation.mean);
    EXPECT_EQ(loaded->fingerprint, Fingerprints::of(model)->model());
    EXPECT_EQ(entries(folder / "m").size(), 5u);  // three parts, the manifest, the lock
    Random random(seed);
    const Variant variant = random_variant(model, random);
    const Tensor images = random_images(seed);
    EXPECT_EQ(bytes_of(run_on(*materialize(loaded->model, variant), *loaded->model.params, images)),
              bytes_of(run_on(*materialize(model, variant), *model.params, images)));
  }
  EXPECT_TRUE(is_elastic(folder / "m"));
  EXPECT_FALSE(is_elastic(folder.path()));
}

TEST(Fingerprint, IsOfStructureAndWeights) {
  ElasticModel model = some_model();
  const auto print_of = [&] { return Fingerprints::of(model)->model(); };
  const std::string first = print_of();
  EXPECT_EQ(first, print_of());
  EXPECT_EQ(first, Fingerprints::of(some_model())->model());
  const auto differs = [&](auto change, auto back) {
    change();
    EXPECT_NE(print_of(), first);
    back();
    EXPECT_EQ(print_of(), first);
  };
  const std::string parameter = parameters_of(model.blocks[0].alternatives[0].graph).at(0);
  Tensor weights = *model.params->writable(parameter);
  float& weight = weights.data<float>()[0];
  const float was = weight;
  differs([&] { weight = was + 1; }, [&] { weight = was; });
  std::string& name = model.blocks[0].alternatives[0].name;
  differs([&] { name += "x"; }, [&] { name.pop_back(); });
  differs([&] { ++model.exits[0].after; }, [&] { --model.exits[0].after; });
  const Exit exit = model.exits.back();
  differs([&] { model.exits.pop_back(); }, [&] { model.exits.push_back(exit); });
}

// Only what a variant uses counts.
TEST(Fingerprint, OfAVariantStaysWhenOthersChange) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    ElasticModel model = random_elastic(seed);
    Random random(seed);
    const Variant variant = random_variant(model, random);
    const auto used = *parameters_of(model, variant);
    const std::string before = Fingerprints::of(model)->variant(model, variant);
    for (const std::string& name : model.params->names()) {
      Tensor weights = *model.params->writable(name);
      float& weight = weights.data<float>()[0];
      const float was = weight;
      weight = was + 1;
      const bool own = std::find(used.begin(), used.end(), name) != used.end();
      const std::string now = Fingerprints::of(model)->variant(model, variant);
      weight = was;
      if (own || variant.confidence == 0) {
        EXPECT_EQ(now != before, own) << name;
      }
    }
  }
}

// A folder as version 1 wrote it: FNV sums, no fingerprint, variants by positions.
void make_version_1(const std::string& path, const std::map<std::string, std::string>& notes) {
  auto manifest = parse_elastic_manifest(read_all(path + "/manifest.json"));
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  manifest->version = 1;
  for (const auto& [key, note] : notes) manifest->info.notes[key] = note;
  for (auto& [name, record] : manifest->files) {
    const std::string suffix = name == "graphs" ? ".txt" : ".safetensors";
    const std::string from = fmt::format("{}/{}-{:016x}{}", path, name, record.hash, suffix);
    const std::string bytes = read_all(from);
    const std::string_view part = bytes;
    record = limber::record_of({&part, 1}, FileRecord::Sum::kFnv);
    fs::rename(from, fmt::format("{}/{}-{:016x}{}", path, name, record.hash, suffix));
  }
  ASSERT_TRUE(os_files().write(path + "/manifest.json", format_elastic_manifest(*manifest)).ok());
}

TEST(ElasticFolder, Version1IsConvertedWhereItIsSureWhatWasMeant) {
  const Folder folder;
  ElasticModel model = some_model();
  auto& alternatives = model.blocks[0].alternatives;
  const Graph original = alternatives[0].graph;
  alternatives.insert(alternatives.begin() + 1,
                      {{"shrink50", 1, original, 0.5}, {std::string(kTunedAlternative), 1, original, 1}});
  std::string rest;
  for (size_t b = 1; b < model.blocks.size(); ++b) rest += ".0";
  const auto load = [&](const std::string& tuned, const std::string& blocks) {
    fs::remove_all(folder / "m");
    EXPECT_TRUE(save_elastic(folder / "m", model, some_info()).ok());
    make_version_1(folder / "m", {{"tuned", tuned}, {"exits blocks", blocks}});
    auto loaded = load_elastic(folder / "m");
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    expect_equal(loaded->model, model);
    return *std::move(loaded);
  };
  ElasticFolder old = load("1" + rest + " 0" + rest, "2" + rest);
  EXPECT_EQ(old.fingerprint, "");
  EXPECT_EQ(old.info.notes["tuned"], "block0=shrink50 original");
  EXPECT_EQ(old.info.notes["exits blocks"], "block0=tuned");
  EXPECT_EQ(old.info.notes["phase"], "1");
  // Something came before what exits were taught with, or went: nobody can tell what was meant.
  old = load("9" + rest, "1" + rest);
  EXPECT_EQ(old.info.notes["exits blocks"], "1" + rest);
  EXPECT_FALSE(parse_variant(old.model, old.info.notes["exits blocks"]).ok());
  // Saved again, it is of this version.
  ASSERT_TRUE(save_elastic(folder / "m", old.model, old.info).ok());
  EXPECT_EQ(load_elastic(folder / "m")->fingerprint, Fingerprints::of(model)->model());
}

TEST(ElasticFolder, WhatDidNotChangeIsNotWritten) {
  const Folder folder;
  ElasticModel model = some_model();
  ASSERT_TRUE(save_elastic(folder / "m", model, some_info()).ok());
  folder.write("m/variants.db", "a table");
  folder.write("m/base-notes.txt", "of a person");
  const std::string before = part_in(folder / "m", "alternatives");
  const auto kept = read_all(part_in(folder / "m", "graphs"));
  // Room for the alternatives and the manifest only.
  const FullDisk disk(fs::file_size(before) + fs::file_size(folder / "m/manifest.json") + 200);
  change_weight(model, extra_parameter(model), 0.25F);
  ASSERT_TRUE(save_elastic(folder / "m", model, some_info("2"), disk).ok());
  EXPECT_NE(part_in(folder / "m", "alternatives"), before);
  EXPECT_FALSE(fs::exists(before));
  EXPECT_TRUE(fs::exists(folder / "m/variants.db"));
  EXPECT_TRUE(fs::exists(folder / "m/base-notes.txt"));
  EXPECT_EQ(read_all(part_in(folder / "m", "graphs")), kept);
  const auto loaded = load_elastic(folder / "m");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  expect_equal(loaded->model, model);
}

TEST(ElasticFolder, NotesAloneReplaceTheManifest) {
  const Folder folder;
  const ElasticModel model = some_model();
  expect_failure(Result<int>(save_elastic_info(folder / "m", some_info())), Code::kNotFound,
                 {"manifest.json"});
  ASSERT_TRUE(save_elastic(folder / "m", model, some_info()).ok());
  const auto before = entries(folder / "m");
  const FullDisk disk(fs::file_size(folder / "m/manifest.json") + 200);
  ASSERT_TRUE(save_elastic_info(folder / "m", some_info("3"), disk).ok());
  EXPECT_EQ(entries(folder / "m"), before);
  EXPECT_EQ(load_elastic_info(folder / "m")->notes.at("phase"), "3");
  expect_equal(load_elastic(folder / "m")->model, model);
}

TEST(ElasticFolder, AModelInUseOutlivesItsFiles) {
  const Folder folder;
  ElasticModel model = some_model();
  const auto bytes = weights_of(model);
  ASSERT_TRUE(save_elastic(folder / "m", model, some_info()).ok());
  const auto loaded = load_elastic(folder / "m");
  for (const std::string& name : model.params->names()) change_weight(model, name, 0.75F);
  ASSERT_TRUE(save_elastic(folder / "m", model, some_info()).ok());
  EXPECT_TRUE(weights_of(loaded->model) == bytes);
  // And can itself be saved where it came from.
  ASSERT_TRUE(save_elastic(folder / "m", loaded->model, some_info()).ok());
  EXPECT_TRUE(weights_of(load_elastic(folder / "m")->model) == bytes);
}

TEST(ElasticFolder, BlocksThatNobodyUsesCostNoMemory) {
#ifdef LIMBER_SANITIZED
  GTEST_SKIP() << "a sanitizer keeps memory of its own";
#endif
  const Folder folder;
  constexpr size_t kBytes = size_t{48} << 20;
  {
    ElasticModel model = some_model();
    Graph& graph = model.blocks.back().alternatives.emplace_back(model.blocks.back().alternatives[0]).graph;
    model.blocks.back().alternatives.back().name = "large";
    const TensorType type{DType::kF32, Shape{static_cast<int64_t>(kBytes / sizeof(float))}};
    graph.add_parameter("large", type);
    model.params->set("large", *Tensor::zeros(type));
    ASSERT_TRUE(save_elastic(folder / "m", model, some_info()).ok());
  }
  trim_heap();
  const size_t before = process_memory().resident;
  const auto loaded = load_elastic(folder / "m");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_LT(process_memory().resident, before + kBytes / 2);
  EXPECT_EQ(loaded->model.params->get("large")->bytes(), kBytes);
}

// --- damage -----------------------------------------------------------------------------------------------

TEST(ElasticFolder, DamageAnywhereIsFoundAndNamed) {
  const Folder folder;
  ASSERT_TRUE(save_elastic(folder / "m", some_model(), some_info()).ok());
  Random random(9);
  for (const std::string& name : entries(folder / "m")) {
    if (name == ".lock") continue;
    const std::string path = folder / ("m/" + name), good = read_all(path);
    for (int i = 0; i < 60; ++i) {
      std::string bad = good;
      const size_t at = i == 0 ? 0 : i == 1 ? good.size() - 1 : random.below(good.size());
      bad[at] = static_cast<char>(bad[at] ^ (1 << random.below(8)));
      ASSERT_TRUE(os_files().write(path, bad).ok());
      const auto loaded = load_elastic(folder / "m");
      ASSERT_FALSE(loaded.ok()) << name << " at " << at;
      EXPECT_NE(loaded.status().message().find(name), std::string::npos) << loaded.status().message();
    }
    for (const size_t size : {size_t{0}, size_t{1}, good.size() / 2, good.size() - 1}) {
      ASSERT_TRUE(os_files().write(path, good.substr(0, size)).ok());
      expect_failure(load_elastic(folder / "m"), Code::kCorrupt, {name});
    }
    ASSERT_TRUE(os_files().write(path, good + "x").ok());
    expect_failure(load_elastic(folder / "m"), Code::kCorrupt, {name});
    fs::remove(path);
    expect_failure(load_elastic(folder / "m"), Code::kNotFound, {name});
    fs::create_directory(path);
    expect_failure(load_elastic(folder / "m"), Code::kInvalidArgument, {name, "not a regular file"});
    fs::remove(path);
    ASSERT_TRUE(os_files().write(path, good).ok());
  }
  EXPECT_TRUE(load_elastic(folder / "m").ok());
}

TEST(ElasticFolder, FilesOfAnotherModelAreRefused) {
  const Folder folder;
  ElasticModel other = some_model();
  for (const std::string& name : other.params->names()) change_weight(other, name, 0.5F);
  ASSERT_TRUE(save_elastic(folder / "m", some_model(), some_info()).ok());
  ASSERT_TRUE(save_elastic(folder / "o", other, some_info()).ok());
  for (const char* kind : {"base", "alternatives"}) {
    const std::string path = part_in(folder / "m", kind), good = read_all(path);
    ASSERT_TRUE(os_files().write(path, read_all(part_in(folder / "o", kind))).ok());
    expect_failure(load_elastic(folder / "m"), Code::kCorrupt, {kind, "not those the manifest"});
    ASSERT_TRUE(os_files().write(path, good).ok());
  }
  fs::rename(part_in(folder / "m", "base"), folder / "x");
  fs::rename(part_in(folder / "m", "alternatives"), folder / "y");
  fs::copy_file(part_in(folder / "o", "base"),
                folder / ("m/" + fs::path(part_in(folder / "o", "base")).filename().string()));
  expect_failure(load_elastic(folder / "m"), Code::kNotFound, {"base-"});
}

// The manifest was changed by someone who made its check fit.
TEST(ElasticFolder, PartsThatDoNotFitAreRefused) {
  const Folder folder;
  ASSERT_TRUE(save_elastic(folder / "m", some_model(), some_info()).ok());
  const std::string path = folder / "m/manifest.json", good = read_all(path);
  const auto refused = [&](auto change, Code code, std::initializer_list<std::string> parts) {
    ElasticManifest manifest = *parse_elastic_manifest(good);
    change(manifest);
    ASSERT_TRUE(os_files().write(path, format_elastic_manifest(manifest)).ok());
    const auto loaded = load_elastic(folder / "m");
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(code_name(loaded.status().code()), std::string(code_name(code))) << loaded.status().message();
    for (const std::string& part : parts)
      EXPECT_NE(loaded.status().message().find(part), std::string::npos) << loaded.status().message();
  };
  using M = ElasticManifest;
  refused([](M& m) { m.base.bytes -= 10; }, Code::kCorrupt, {"graphs-", "the base"});
  refused([](M& m) { m.base.bytes = UINT32_MAX; }, Code::kCorrupt, {"graphs-", "are left"});
  refused([](M& m) { m.base.bytes = INT64_MAX; }, Code::kCorrupt, {"graphs-", "are left"});
  refused([](M& m) { m.blocks.pop_back(); }, Code::kCorrupt, {"graphs-"});
  refused([](M& m) { m.exits.clear(); }, Code::kCorrupt, {"belong to no graph"});
  refused([](M& m) { m.exits[0].after = 4000; }, Code::kCorrupt, {"manifest.json", "exit 'exit0'", "4000"});
  refused([](M& m) { m.blocks[0].alternatives[0].span = 2; }, Code::kCorrupt, {"manifest.json", "block 0"});
  refused([](M& m) { m.blocks[1].name = m.blocks[0].name; }, Code::kCorrupt, {"there twice"});
  refused([](M& m) { m.files.erase("base"); }, Code::kCorrupt, {"manifest.json", "'base'"});
  refused([](M& m) { std::swap(m.files["base"], m.files["alternatives"]); }, Code::kNotFound, {"base-"});
  refused([](M& m) { m.files["base"].bytes += 1; }, Code::kCorrupt, {"base-", "the manifest says"});
  refused(
      [](M& m) {
        for (BlockRecord& block : m.blocks)
          for (AlternativeRecord& a : block.alternatives) a.graph.constants.clear();
        m.base.constants.clear();
      },
      Code::kCorrupt, {"graphs-", "constant"});
  refused(
      [](M& m) {
        for (BlockRecord& block : m.blocks)
          for (AlternativeRecord& a : block.alternatives)
            for (auto& [name, number] : a.graph.constants) number ^= 1;
      },
      Code::kCorrupt, {"graphs-", "no bytes for constant"});
  ASSERT_TRUE(os_files().write(path, good).ok());
  EXPECT_TRUE(load_elastic(folder / "m").ok());
}

// Sound files with sound hashes that do not belong together.
TEST(ElasticFolder, WeightsThatDoNotFitTheGraphsAreRefused) {
  const Folder folder;
  ASSERT_TRUE(save_elastic(folder / "m", some_model(), some_info()).ok());
  const std::string path = folder / "m/manifest.json", good = read_all(path);
  const auto refused = [&](auto change, std::initializer_list<std::string> parts) {
    TensorFile file = *read_safetensors(part_in(folder / "m", "base"));
    change(file.tensors);
    const std::string bytes = *format_safetensors(file);
    const std::string_view view = bytes;
    ElasticManifest manifest = *parse_elastic_manifest(good);
    manifest.files["base"] = record_of(std::span(&view, 1));
    const auto name = folder / fmt::format("m/base-{:016x}.safetensors", manifest.files["base"].hash);
    ASSERT_TRUE(os_files().write(name, bytes).ok());
    ASSERT_TRUE(os_files().write(path, format_elastic_manifest(manifest)).ok());
    expect_failure(load_elastic(folder / "m"), Code::kCorrupt, parts);
    fs::remove(name);
  };
  const std::string name = parameters_of(some_model().base)[0], extra = extra_parameter(some_model());
  using Tensors = std::map<std::string, Tensor>;
  refused([&](Tensors& t) { t.erase(name); }, {name});
  refused([&](Tensors& t) { t[name] = *Tensor::zeros({DType::kF32, Shape{7}}); }, {name, "f32[7]"});
  refused([&](Tensors& t) { t["stray"] = t[name]; }, {"'stray' belongs to no graph"});
  refused([&](Tensors& t) { t[extra] = t[name]; }, {extra, "too"});
}

TEST(ElasticFolder, HostileManifestsAreRefused) {
  const Folder folder;
  ASSERT_TRUE(save_elastic(folder / "m", some_model(), some_info()).ok());
  const std::string good = read_all(folder / "m/manifest.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const std::string& text : {std::string(),
                                  std::string("[]"),
                                  std::string("{}"),
                                  good.substr(0, good.size() / 2),
                                  good + good,
                                  with("\"span\": 1", "\"span\": 0"),
                                  with("\"span\": 1", "\"span\": 1.5"),
                                  with("\"error\": ", "\"error\": -"),
                                  with("\"error\": 0.0", "\"error\": null"),
                                  with("\"bytes\": ", "\"bytes\": -"),
                                  with("\"blocks\": [", "\"blocks\": [7,"),
                                  with("\"exits\": [", "\"exits\": [[],"),
                                  with("\"classes\": [", "\"classes\": [7,"),
                                  with("\"phase\": \"1\"", "\"phase\": 1"),
                                  with("\"phase\": \"1\"", "\"phase\": \"2\""),
                                  with("\"height\": 8", "\"height\": 0"),
                                  with("\"xxh3\": \"", "\"xxh3\": \"xx"),
                                  with("\"xxh3\": \"", "\"hash\": \""),
                                  with("\"fingerprint\": \"", "\"fingerprint\": \"xx"),
                                  with("\"fingerprint\"", "\"finger\""),
                                  with("\"version\": 2", "\"version\": 1"),
                                  with("limber elastic model", "limber checkpoint"),
                                  std::string(100000, '['),
                                  with("\"notes\": {", "\"more\": {}, \"notes\": {")}) {
    expect_failure(parse_elastic_manifest(text), Code::kCorrupt, {});
  }
  expect_failure(parse_elastic_manifest(with("\"version\": 2", "\"version\": 3")), Code::kUnsupported,
                 {"update Limber"});
  ASSERT_TRUE(os_files().write(folder / "m/manifest.json", with("\"version\": 2", "\"version\": 3")).ok());
  EXPECT_TRUE(is_elastic(folder / "m"));
  expect_failure(load_elastic(folder / "m"), Code::kUnsupported, {"manifest.json", "update Limber"});
}

TEST(ElasticFolder, WhatIsNoModelIsNotSaved) {
  const Folder folder;
  ElasticModel model = some_model();
  ASSERT_TRUE(save_elastic(folder / "m", model, some_info()).ok());
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    change_weight(model, extra_parameter(model), bad);
    EXPECT_TRUE(is_divergence(save_elastic(folder / "m", model, some_info("2"))));
  }
  model = some_model();
  model.blocks[0].alternatives[0].span = 2;
  EXPECT_EQ(save_elastic(folder / "m", model, some_info("2")).code(), Code::kInvalidArgument);
  EXPECT_EQ(load_elastic(folder / "m")->info.notes.at("phase"), "1");
}

// --- crashes ----------------------------------------------------------------------------------------------

// After so many writes the machine stops in the middle of one.
class StoppingDisk : public FileSystem {
 public:
  explicit StoppingDisk(int writes) : left_(writes) {}
  Result<std::shared_ptr<const MappedFile>> map(const std::string& path) const override {
    return os_files().map(path);
  }
  Result<std::string> read(const std::string& path, size_t limit) const override {
    return os_files().read(path, limit);
  }
  using FileSystem::write;
  Status write(const std::string& path, std::span<const std::string_view> parts) const override {
    if (left_-- > 0) return os_files().write(path, parts);
    std::ofstream(path + ".123.4.tmp") << parts[0].substr(0, parts[0].size() / 2);
    return error(Code::kIo, "{}: the machine stopped", path);
  }
  Result<std::unique_ptr<AppendFile>> append_to(const std::string& path, size_t keep) const override {
    return os_files().append_to(path, keep);
  }

 private:
  mutable int left_;
};

TEST(ElasticFolder, AStopInTheMiddleLeavesTheOldOne) {
  const Folder folder;
  ElasticModel model = some_model();
  ASSERT_TRUE(save_elastic(folder / "m", model, some_info("1")).ok());
  const ElasticModel old = load_elastic(folder / "m")->model;
  for (const std::string& name : model.params->names()) change_weight(model, name, 0.125F);
  for (int writes = 0; writes <= 2; ++writes) {
    const Status status = save_elastic(folder / "m", model, some_info("2"), StoppingDisk(writes));
    EXPECT_EQ(status.code(), Code::kIo) << writes;
    EXPECT_LE(entries(folder / "m").size(), 5u + 1 + static_cast<size_t>(writes)) << "more than torn files";
    const auto loaded = load_elastic(folder / "m");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(loaded->info.notes.at("phase"), "1");
    expect_equal(loaded->model, old);
  }
  ASSERT_TRUE(save_elastic(folder / "m", model, some_info("2")).ok());
  expect_equal(load_elastic(folder / "m")->model, model);
  EXPECT_EQ(entries(folder / "m").size(), 5u) << "something was left behind";
  // A first save that fails leaves nothing that could be loaded.
  EXPECT_FALSE(save_elastic(folder / "n", model, some_info(), StoppingDisk(3)).ok());
  expect_failure(load_elastic(folder / "n"), Code::kNotFound, {"manifest.json"});
}

TEST(ElasticFolder, AFullDiskLeavesTheOldOne) {
  const Folder folder;
  ElasticModel model = some_model();
  ASSERT_TRUE(save_elastic(folder / "m", model, some_info("1")).ok());
  for (const std::string& name : model.params->names()) change_weight(model, name, 0.125F);
  for (const size_t room : {size_t{0}, size_t{5000}, size_t{20000}}) {
    EXPECT_EQ(save_elastic(folder / "m", model, some_info("2"), FullDisk(room)).code(), Code::kIo);
    EXPECT_EQ(load_elastic(folder / "m")->info.notes.at("phase"), "1");
  }
}

// A child saves one model after the other until it is killed.
TEST(ElasticFolder, AKilledProcessLeavesOneOfTheTwo) {
  const Folder folder;
  ElasticModel models[] = {some_model(), some_model()};
  for (const std::string& name : models[1].params->names()) change_weight(models[1], name, 0.125F);
  ASSERT_TRUE(save_elastic(folder / "m", models[0], some_info("0")).ok());
  Random random(3);
  for (int i = 0; i < 15; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int k = 1;; k = 1 - k) {
        if (!save_elastic(folder / "m", models[k], some_info(std::to_string(k))).ok()) ::_exit(1);
      }
    }
    ::usleep(static_cast<useconds_t>(1000 + random.below(20000)));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child could not save";
    const auto loaded = load_elastic(folder / "m");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    expect_equal(loaded->model, models[loaded->info.notes.at("phase") == "1" ? 1 : 0]);
  }
}

TEST(ElasticFolder, CanBeLoadedWhileAnotherProcessSaves) {
  const Folder folder;
  ElasticModel models[] = {some_model(), some_model()};
  for (const std::string& name : models[1].params->names()) change_weight(models[1], name, 0.125F);
  ASSERT_TRUE(save_elastic(folder / "m", models[0], some_info("0")).ok());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (int k = 1;; k = 1 - k) {
      if (!save_elastic(folder / "m", models[k], some_info(std::to_string(k))).ok()) ::_exit(1);
    }
  }
  for (int i = 0; i < 100; ++i) {
    const auto loaded = load_elastic(folder / "m");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_TRUE(weights_of(loaded->model) ==
                weights_of(models[loaded->info.notes.at("phase") == "1" ? 1 : 0]));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(ElasticFolder, OneProcessSavesAtATime) {
  const Folder folder;
  ASSERT_TRUE(save_elastic(folder / "m", some_model(), some_info()).ok());
  const auto lock = FolderLock::take(folder / "m", "is testing");
  ASSERT_TRUE(lock.ok());
  const Status status = save_elastic(folder / "m", some_model(), some_info());
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find("another process"), std::string::npos) << status.message();
  EXPECT_TRUE(load_elastic(folder / "m").ok());
}

}  // namespace
}  // namespace limber::test
