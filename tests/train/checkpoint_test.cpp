#include "train/checkpoint.h"

#include <gtest/gtest.h>

#include "io/onnx.h"
#include "tests/train/training_case.h"
#include "train/run_folder.h"

namespace limber::test {
namespace {

namespace fs = std::filesystem;

CheckpointInfo some_info(int64_t step) {
  CheckpointInfo info;
  info.state = {.step = step,
                .epoch = 2,
                .batch = 3,
                .loss_sum = 0.1,
                .correct = 5,
                .images = 24,
                .seconds = 1.0 / 3,
                .best_epoch = 1,
                .best_accuracy = 0.25,
                .best_loss = 2.5};
  info.seed = UINT64_MAX - 5;
  info.options = {{"lr", "0.1"}, {"batch", "8"}};
  info.classes = {"circle", "r\"ing", "Ü"};
  info.input.resize = 40;
  info.input.normalisation.mean = {0.1F, 0.2F, 0.3F};
  return info;
}

struct Saved {
  Net net = make_net(kTinyNet);
  Saved() { net.params->set("optimizer/velocity/fc.b", Tensor::from({1.F, 2.F}, Shape{2})); }
  Status save(const std::string& path, int64_t step = 7, const FileSystem& files = os_files()) const {
    return save_checkpoint(path, net.graph, *net.params, some_info(step), files);
  }
  Status save(RunFolder& folder, int64_t step, bool best = false) const {
    return folder.save(net.graph, *net.params, some_info(step), best);
  }
};

std::vector<std::string> entries(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_all(const std::string& path) { return *os_files().read(path, size_t{1} << 24); }

TEST(Checkpoint, GivesBackWhatWasSaved) {
  const Folder folder;
  const Saved saved;
  ASSERT_TRUE(saved.save(folder / "c").ok());
  const auto loaded = load_checkpoint(folder / "c");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(print(loaded->graph), print(saved.net.graph));
  EXPECT_EQ(bytes_of(*loaded->params), bytes_of(*saved.net.params));
  const CheckpointInfo want = some_info(7);
  EXPECT_EQ(loaded->info.state, want.state);
  EXPECT_EQ(loaded->info.seed, want.seed);
  EXPECT_EQ(loaded->info.options, want.options);
  EXPECT_EQ(loaded->info.classes, want.classes);
  EXPECT_EQ(loaded->info.input.resize, 40);
  EXPECT_EQ(loaded->info.input.normalisation.mean, want.input.normalisation.mean);
  EXPECT_EQ(entries(folder.path()), std::vector<std::string>{"c"});
}

TEST(Checkpoint, HoldsAnOnnxModelThatSharesTheWeights) {
  const Folder folder;
  const Saved saved;
  ASSERT_TRUE(saved.save(folder / "c").ok());
  const auto model = import_onnx(model_in(folder / "c"));
  ASSERT_TRUE(model.ok()) << model.status().message();
  for (const std::string& name : model->params->names()) {
    const Tensor ours = *saved.net.params->get(name), theirs = *model->params->get(name);
    ASSERT_EQ(ours.type(), theirs.type()) << name;
    EXPECT_EQ(std::memcmp(ours.raw(), theirs.raw(), ours.bytes()), 0) << name;
    EXPECT_FALSE(theirs.buffer()->owned()) << name << " is a copy";
  }
}

TEST(Checkpoint, ReplacesAnOlderOneAsAWhole) {
  const Folder folder;
  const Saved saved;
  ASSERT_TRUE(saved.save(folder / "c", 1).ok());
  ASSERT_TRUE(saved.save(folder / "c", 2).ok());
  EXPECT_EQ(load_checkpoint(folder / "c")->info.state.step, 2);
  EXPECT_EQ(entries(folder.path()), std::vector<std::string>{"c"});
}

TEST(Checkpoint, DamageAnywhereIsFoundAndNamed) {
  const Folder folder;
  ASSERT_TRUE(Saved().save(folder / "c").ok());
  for (const char* name : {"graph.txt", "model.onnx", "weights.safetensors", "manifest.json"}) {
    const std::string path = folder / (std::string("c/") + name), good = read_all(path);
    for (const size_t at : {size_t{0}, good.size() / 3, good.size() - 2}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 0x10);
      ASSERT_TRUE(os_files().write(path, bad).ok());
      const auto loaded = load_checkpoint(folder / "c");
      // A changed number in the manifest need not show, anything else must.
      if (loaded.ok() && std::string_view(name) == "manifest.json") continue;
      ASSERT_FALSE(loaded.ok()) << name << " at " << at;
      EXPECT_NE(loaded.status().message().find(name), std::string::npos) << loaded.status().message();
    }
    ASSERT_TRUE(os_files().write(path, good.substr(0, good.size() / 2)).ok());
    expect_failure(load_checkpoint(folder / "c"), Code::kCorrupt, {name});
    fs::remove(path);
    expect_failure(load_checkpoint(folder / "c"), Code::kNotFound, {name});
    ASSERT_TRUE(os_files().write(path, good).ok());
  }
  EXPECT_TRUE(load_checkpoint(folder / "c").ok());
}

TEST(Checkpoint, HostileManifestsAreRefused) {
  const Manifest manifest{some_info(1), {{"a", {1, 2}}}};
  const std::string good = format_manifest(manifest);
  ASSERT_TRUE(parse_manifest(good).ok()) << parse_manifest(good).status().message();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), good.substr(0, good.size() / 2),
        with("\"step\": 1", "\"step\": -1"), with("\"step\": 1", "\"step\": 1.5"),
        with("\"step\": 1", "\"step\": 99999999999999999999"), with("\"classes\": [", "\"classes\": [7,"),
        with("\"lr\": \"0.1\"", "\"lr\": \"0.2\""), with("\"height\": 32", "\"height\": 0"),
        with("\"xxh3\": \"", "\"xxh3\": \"xx"), with("limber checkpoint", "something"),
        std::string(100000, '[')}) {
    expect_failure(parse_manifest(text), Code::kCorrupt, {});
  }
  expect_failure(parse_manifest(with("\"version\": 2", "\"version\": 3")), Code::kUnsupported,
                 {"update Limber"});
}

TEST(Checkpoint, AFullDiskLeavesTheOldOne) {
  const Folder folder;
  const Saved saved;
  ASSERT_TRUE(saved.save(folder / "c", 1).ok());
  size_t all = 0;
  for (const auto& file : fs::directory_iterator(folder / "c")) all += file.file_size();
  for (const double share : {0.0, 0.3, 0.7, 0.99}) {
    const FullDisk disk(static_cast<size_t>(share * static_cast<double>(all)));
    const Status status = saved.save(folder / "c", 2, disk);
    EXPECT_EQ(status.code(), Code::kIo);
    EXPECT_NE(status.message().find("No space left"), std::string::npos) << status.message();
    EXPECT_EQ(load_checkpoint(folder / "c")->info.state.step, 1);
    EXPECT_EQ(entries(folder.path()), std::vector<std::string>{"c"});
  }
}

TEST(Checkpoint, WeightsThatAreNotFiniteAreNotSaved) {
  const Folder folder;
  Saved saved;
  ASSERT_TRUE(saved.save(folder / "c", 1).ok());
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    Tensor bias = *Tensor::zeros({DType::kF32, Shape{10}});
    bias.data<float>()[9] = bad;
    saved.net.params->set("fc.b", bias);
    const Status status = saved.save(folder / "c", 2);
    EXPECT_TRUE(is_divergence(status)) << status.message();
    EXPECT_EQ(load_checkpoint(folder / "c")->info.state.step, 1);
  }
}

// --- runs -------------------------------------------------------------------------------------------------

TEST(RunFolder, KeepsTheLastTheOneBeforeAndTheBest) {
  const Folder folder;
  const Saved saved;
  auto run = *RunFolder::open(folder / "run");
  EXPECT_FALSE(run->has_checkpoint());
  for (int64_t step = 1; step <= 5; ++step) ASSERT_TRUE(saved.save(*run, step, step == 2).ok());
  EXPECT_EQ(entries(folder / "run/checkpoints"),
            (std::vector<std::string>{"0000000002", "0000000004", "0000000005"}));
  std::vector<std::string> warnings;
  EXPECT_EQ((*run->load_last(warnings))->info.state.step, 5);
  EXPECT_TRUE(find_checkpoint(folder / "run", Which::kBest, warnings)->ends_with("2"));
  EXPECT_TRUE(find_checkpoint(folder / "run", Which::kLast, warnings)->ends_with("5"));
  EXPECT_TRUE(warnings.empty());
}

TEST(RunFolder, FallsBackToAnOlderCheckpointWithAWarning) {
  const Folder folder;
  const Saved saved;
  auto run = *RunFolder::open(folder / "run");
  for (int64_t step = 1; step <= 3; ++step) ASSERT_TRUE(saved.save(*run, step).ok());
  ASSERT_TRUE(os_files().write(folder / "run/checkpoints/0000000003/graph.txt", "nonsense").ok());
  std::vector<std::string> warnings;
  EXPECT_EQ((*run->load_last(warnings))->info.state.step, 2);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("graph.txt"), std::string::npos) << warnings[0];
  // The damaged one is replaced when training comes by again.
  ASSERT_TRUE(saved.save(*run, 3).ok());
  warnings.clear();
  EXPECT_EQ((*run->load_last(warnings))->info.state.step, 3);
  EXPECT_TRUE(warnings.empty());
  // Pointers that say nothing, or nonsense.
  for (const char* pointer : {"", "../../etc", "0000000099\n"}) {
    ASSERT_TRUE(os_files().write(folder / "run/last", pointer).ok());
    EXPECT_EQ((*run->load_last(warnings))->info.state.step, 3) << pointer;
  }
  for (const char* name : {"0000000002", "0000000003"})
    fs::remove(folder / fmt::format("run/checkpoints/{}/manifest.json", name));
  expect_failure(run->load_last(warnings), Code::kCorrupt, {"none of its"});
}

TEST(RunFolder, OneProcessAtATimeAndLeftoversGo) {
  const Folder folder;
  folder.write("run/checkpoints/.0000000009.tmp-1/graph.txt", "half");
  auto run = *RunFolder::open(folder / "run");
  EXPECT_TRUE(entries(folder / "run/checkpoints").empty());
  expect_failure(RunFolder::open(folder / "run"), Code::kIo, {"another process"});
  run.reset();
  EXPECT_TRUE(RunFolder::open(folder / "run").ok());
}

TEST(RunFolder, SaysWhichCheckpointItTriesInstead) {
  const Folder folder;
  const Saved saved;
  auto run = *RunFolder::open(folder / "run");
  ASSERT_TRUE(saved.save(*run, 1, /*best=*/true).ok());
  ASSERT_TRUE(saved.save(*run, 2).ok());
  fs::remove(folder / "run/checkpoints/0000000001/weights.safetensors");
  std::vector<std::string> warnings;
  // The best is the oldest, so that what is tried next is newer.
  EXPECT_EQ(*find_checkpoint(folder / "run", Which::kBest, warnings), folder / "run/checkpoints/0000000002");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("checkpoint 0000000001 cannot be used"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[0].find("trying 0000000002"), std::string::npos) << warnings[0];
}

TEST(RunFolder, DiscardsWhatItMade) {
  const Folder folder;
  RunFolder::discard(*RunFolder::open(folder / "run"));
  EXPECT_FALSE(fs::exists(folder / "run"));
  auto run = *RunFolder::open(folder / "run");
  ASSERT_TRUE(Saved().save(*run, 1).ok());
  RunFolder::discard(std::move(run));  // keeps what holds a checkpoint
  EXPECT_TRUE(fs::exists(folder / "run/checkpoints/0000000001"));
}

TEST(RunFolder, OtherFoldersAreRefused) {
  const Folder folder;
  std::vector<std::string> warnings;
  expect_failure(find_checkpoint(folder.path(), Which::kBest, warnings), Code::kNotFound, {"neither"});
  folder.make("run/checkpoints");
  expect_failure(find_checkpoint(folder / "run", Which::kBest, warnings), Code::kNotFound,
                 {"no checkpoint yet"});
}

}  // namespace
}  // namespace limber::test
