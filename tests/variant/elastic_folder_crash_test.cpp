// Saving that ends in the middle, and processes that save and load at once.
#include <signal.h>
#include <sys/wait.h>

#include "tests/base/full_disk.h"
#include "tests/variant/folder_case.h"

namespace limber::test {
namespace {

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
