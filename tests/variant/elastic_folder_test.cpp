#include "variant/elastic_folder.h"

#include "base/memory.h"
#include "record/elastic_records.h"
#include "record/record_file.h"
#include "tests/base/full_disk.h"
#include "tests/variant/folder_case.h"
#include "variant/fingerprint.h"

namespace limber::test {
namespace {

namespace fs = std::filesystem;

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
  EXPECT_EQ(read_note<TeachingNote>(old.info.notes).tuned,
            (std::vector<std::string>{"block0=shrink50", "original"}));
  EXPECT_EQ(read_note<ExitsNote>(old.info.notes).blocks, "block0=tuned");
  EXPECT_EQ(old.info.notes["phase"], "1");
  // Something came before what exits were taught with, or went: nobody can tell what was meant.
  old = load("9" + rest, "1" + rest);
  EXPECT_EQ(read_note<ExitsNote>(old.info.notes).blocks, "1" + rest);
  EXPECT_FALSE(parse_variant(old.model, "1" + rest).ok());
  // Saved again, it is of this version.
  ASSERT_TRUE(save_elastic(folder / "m", old.model, old.info).ok());
  EXPECT_EQ(load_elastic(folder / "m")->fingerprint, Fingerprints::of(model)->model());
}

// Of version 2, from before notes had fields.
TEST(ElasticFolder, NotesThatArePlainTextsAreRead) {
  const Folder folder;
  ElasticInfo info = some_info();
  info.notes["taught"] = "12.5";
  info.notes["spent"] = "20.0";
  info.notes["tuned"] = "block0=shrink50 original";
  info.notes["exits blocks"] = "block0=tuned";
  ASSERT_TRUE(save_elastic(folder / "m", some_model(), info).ok());
  EXPECT_NE(read_all(folder / "m/manifest.json").find("\"taught\": \"12.5\""), std::string::npos);
  for (const ElasticInfo& read : {load_elastic(folder / "m")->info, *load_elastic_info(folder / "m")}) {
    const auto teaching = read_note<TeachingNote>(read.notes);
    EXPECT_EQ(teaching.taught_s, 12.5);
    EXPECT_EQ(teaching.spent_s, 20);
    EXPECT_EQ(teaching.tuned, (std::vector<std::string>{"block0=shrink50", "original"}));
    EXPECT_EQ(read_note<ExitsNote>(read.notes).blocks, "block0=tuned");
    EXPECT_EQ(read.notes.size(), some_info().notes.size() + 2) << "the old ones are gone";
  }
}

TEST(ElasticFolder, HistoryIsAppendedToAndStays) {
  const Folder folder;
  const ElasticModel model = some_model();
  ASSERT_TRUE(save_elastic(folder / "m", model, some_info()).ok());
  for (const char* variant : {"original", "block0=skip"})
    ASSERT_TRUE(append_history(folder / "m", record_line(SearchRecord{.variant = variant})).ok());
  ASSERT_TRUE(save_elastic(folder / "m", model, some_info("2")).ok());
  const auto history = read_records(history_in(folder / "m"));
  ASSERT_TRUE(history.ok()) << history.status().message();
  ASSERT_EQ(history->lines.size(), 2u);
  EXPECT_EQ(history->lines[1].as<SearchRecord>()->variant, "block0=skip");
  EXPECT_EQ(append_history(folder / "m", record_line(SearchRecord{}), FullDisk(10)).code(), Code::kIo);
  EXPECT_EQ(read_records(history_in(folder / "m"))->lines.size(), 2u);
  const auto lock = FolderLock::take(folder / "m", "is testing");
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(append_history(folder / "m", record_line(SearchRecord{})).code(), Code::kIo);
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

}  // namespace
}  // namespace limber::test
