// Folders of elastic models that somebody damaged, mixed up or made up.
#include "io/safetensors.h"
#include "tests/variant/folder_case.h"

namespace limber::test {
namespace {

namespace fs = std::filesystem;

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

}  // namespace
}  // namespace limber::test
