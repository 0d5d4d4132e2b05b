#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace limber {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::temp_directory_path() /
            ("limber_file_test_" + std::string(test->name()) + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string path(const char* name) const { return (root_ / name).string(); }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(root_), fs::directory_iterator()));
  }

  fs::path root_;
};

TEST_F(FileTest, WritesAndReadsBack) {
  ASSERT_TRUE(os_files().write(path("a"), "hello").ok());
  EXPECT_EQ(*os_files().read(path("a"), 100), "hello");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, WritesPartsOneAfterTheOther) {
  const std::string_view parts[] = {"one ", "", "two"};
  ASSERT_TRUE(os_files().write(path("a"), parts).ok());
  EXPECT_EQ(*os_files().read(path("a"), 100), "one two");
  ASSERT_TRUE(os_files().write(path("a"), std::span<const std::string_view>()).ok());
  EXPECT_EQ(*os_files().read(path("a"), 100), "");
}

TEST_F(FileTest, CreatesMissingFolders) {
  ASSERT_TRUE(os_files().write(path("x/y/z"), "deep").ok());
  EXPECT_EQ(*os_files().read(path("x/y/z"), 100), "deep");
}

TEST_F(FileTest, EmptyFilesWork) {
  ASSERT_TRUE(os_files().write(path("empty"), "").ok());
  EXPECT_EQ(*os_files().read(path("empty"), 0), "");
  EXPECT_TRUE((*os_files().map(path("empty")))->bytes().empty());
}

TEST_F(FileTest, ReplacesTheOldFile) {
  ASSERT_TRUE(os_files().write(path("a"), "old and long").ok());
  ASSERT_TRUE(os_files().write(path("a"), "new").ok());
  EXPECT_EQ(*os_files().read(path("a"), 100), "new");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, FailedWriteLeavesTheOldFileAndNoTemporary) {
  ASSERT_TRUE(os_files().write(path("a"), "old").ok());
  // A file size limit makes the kernel refuse the write half way, as a full disk would.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit tight = before;
  tight.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const Status status = os_files().write(path("a"), std::string(1 << 20, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);

  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find("cannot write"), std::string::npos) << status.message();
  EXPECT_EQ(*os_files().read(path("a"), 100), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, CannotReplaceAFolder) {
  fs::create_directories(path("folder"));
  EXPECT_EQ(os_files().write(path("folder"), "x").code(), Code::kIo);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, MissingFileIsNotFound) {
  EXPECT_EQ(os_files().read(path("nope"), 10).status().code(), Code::kNotFound);
  EXPECT_EQ(os_files().map(path("nope")).status().code(), Code::kNotFound);
  EXPECT_NE(os_files().read(path("nope"), 10).status().message().find("nope"), std::string::npos);
}

TEST_F(FileTest, RefusesFilesAboveTheLimit) {
  ASSERT_TRUE(os_files().write(path("a"), "12345").ok());
  EXPECT_EQ(os_files().read(path("a"), 4).status().code(), Code::kResourceExhausted);
  EXPECT_EQ(*os_files().read(path("a"), 5), "12345");
}

TEST_F(FileTest, RefusesFolders) {
  EXPECT_FALSE(os_files().map(root_.string()).ok());
  EXPECT_FALSE(os_files().read(root_.string(), 10).ok());
}

TEST_F(FileTest, MappingSurvivesReplacement) {
  ASSERT_TRUE(os_files().write(path("a"), "first").ok());
  const auto mapped = *os_files().map(path("a"));
  ASSERT_TRUE(os_files().write(path("a"), "other").ok());
  const std::string_view seen(reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size());
  EXPECT_EQ(seen, "first");
}

}  // namespace
}  // namespace limber
