#include "record/record_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/base/full_disk.h"

namespace limber {
namespace {

class RecordFileTest : public testing::Test {
 protected:
  RecordFileTest()
      : path_(fmt::format("{}/limber-record-{}/run/history.jsonl", testing::TempDir(), getpid())) {}
  ~RecordFileTest() override {
    std::filesystem::remove_all(std::filesystem::path(path_).parent_path().parent_path());
  }

  RecordWriter writer(const FileSystem& files = os_files()) {
    auto opened = RecordWriter::open(path_, files);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return *std::move(opened);
  }
  std::string text() const { return *os_files().read(path_, 1 << 20); }
  RecordFile records() const { return *read_records(path_); }
  void put(const std::string& bytes) const { ASSERT_TRUE(os_files().write(path_, bytes).ok()); }

  const std::string path_;
};

EpochRecord epoch(int64_t number) { return {.epoch = number, .step = 10 * number, .seconds = 1}; }

std::vector<int64_t> epochs_of(const RecordFile& file) {
  std::vector<int64_t> epochs;
  for (const RecordLine& line : file.lines) {
    if (line.is<EpochRecord>()) epochs.push_back(line.as<EpochRecord>()->epoch);
  }
  return epochs;
}

template <typename T>
size_t count_of(const RecordFile& file) {
  size_t count = 0;
  for (const RecordLine& line : file.lines) count += line.is<T>() ? 1 : 0;
  return count;
}

TEST_F(RecordFileTest, LinesAreAppendedAndReadBackInOrder) {
  const double before = unix_seconds();
  {
    RecordWriter out = writer();
    ASSERT_TRUE(out.add(StartRecord{{.options = {{"lr", "0.1"}}}}).ok());
    ASSERT_TRUE(out.add(epoch(1)).ok());
    EXPECT_EQ(epochs_of(records()), (std::vector<int64_t>{1})) << "before the file is closed";
  }
  RecordWriter again = writer();
  ASSERT_TRUE(again.add(epoch(2)).ok());
  const RecordFile file = records();
  EXPECT_TRUE(file.damaged.empty() && !file.torn && file.voided == 0);
  ASSERT_EQ(file.lines.size(), 3U);
  EXPECT_EQ(file.lines[0].as<StartRecord>()->options.at("lr"), "0.1");
  EXPECT_EQ(file.lines[2].step, 20);
  EXPECT_EQ(file.lines[2].number, 3U);
  EXPECT_GE(*file.lines[0].time, std::floor(before));
  EXPECT_LE(*file.lines[0].time, unix_seconds() + 1);
}

TEST_F(RecordFileTest, ALineSaysItsKindAndTimeFirst) {
  EXPECT_EQ(
      record_line(SurveyRecord{.step = 24, .seconds = 1.5, .full_s = 0.02, .forward_s = 0.01},
                  1763431598.1236),
      R"({"kind":"elastic.survey","time":1763431598.124,"step":24,"seconds":1.5,"full_s":0.02,"forward_s":0.01})");
}

TEST_F(RecordFileTest, HalfALineAtTheEndIsDroppedByReadersAndWriters) {
  const std::string whole = record_line(epoch(1)) + "\n", next = record_line(epoch(2));
  for (size_t length = 1; length <= next.size(); ++length) {
    put(whole + next.substr(0, length));
    const bool complete = length == next.size();
    EXPECT_EQ(records().torn, !complete) << length;
    EXPECT_EQ(epochs_of(records()).size(), complete ? 2U : 1U);
    ASSERT_TRUE(writer().add(epoch(3)).ok());
    const std::vector<int64_t> expected =
        complete ? std::vector<int64_t>{1, 2, 3} : std::vector<int64_t>{1, 3};
    EXPECT_EQ(epochs_of(records()), expected) << length;
    EXPECT_TRUE(records().damaged.empty() && !records().torn);
  }
}

TEST_F(RecordFileTest, ResumingMakesLaterLinesVoidAndRewritesNothing) {
  {
    RecordWriter out = writer();
    ASSERT_TRUE(out.add(StartRecord{}).ok());
    for (int64_t e = 1; e <= 4; ++e) ASSERT_TRUE(out.add(epoch(e)).ok());
    ASSERT_TRUE(out.add(EventRecord{.text = "no step, so it stays"}).ok());
  }
  const std::string before = text();
  RecordWriter out = writer();
  ASSERT_TRUE(out.add(ResumeRecord{{.step = 30}}).ok());
  ASSERT_TRUE(out.add(epoch(4)).ok());
  EXPECT_EQ(text().substr(0, before.size()), before);
  EXPECT_EQ(epochs_of(records()), (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(records().voided, 1U);
  // An earlier one: what the resumption before it said is void, too.
  ASSERT_TRUE(out.add(ResumeRecord{{.step = 10}}).ok());
  EXPECT_EQ(epochs_of(records()), (std::vector<int64_t>{1}));
  EXPECT_EQ(count_of<ResumeRecord>(records()), 1U);
  EXPECT_EQ(count_of<EventRecord>(records()), 1U);
  // Anew.
  ASSERT_TRUE(out.add(StartRecord{}).ok());
  ASSERT_TRUE(out.add(epoch(1)).ok());
  EXPECT_EQ(epochs_of(records()), (std::vector<int64_t>{1}));
  EXPECT_EQ(count_of<StartRecord>(records()), 1U);
  EXPECT_EQ(count_of<ResumeRecord>(records()), 0U);
}

TEST_F(RecordFileTest, JobsInOneFileDoNotVoidEachOther) {
  RecordWriter out = writer();
  ASSERT_TRUE(out.add(StartRecord{{.job = "train"}}).ok());
  ASSERT_TRUE(out.add(epoch(1)).ok());
  ASSERT_TRUE(out.add(StartRecord{{.job = "search"}}).ok());
  ASSERT_TRUE(out.add(SurveyRecord{.step = 5}).ok());
  ASSERT_TRUE(out.add(ResumeRecord{{.job = "train", .step = 10}}).ok());
  ASSERT_TRUE(out.add(StartRecord{{.job = "search"}}).ok());
  const RecordFile file = records();
  EXPECT_EQ(epochs_of(file), (std::vector<int64_t>{1}));
  EXPECT_EQ(count_of<SurveyRecord>(file), 0U);
  EXPECT_EQ(count_of<StartRecord>(file), 2U);
}

TEST_F(RecordFileTest, AFullDiskIsAnErrorThatLosesNothing) {
  test::FullDisk disk(10'000);
  RecordWriter out = writer(disk);
  ASSERT_TRUE(out.add(epoch(1)).ok());
  disk.make_room(20);
  const Status full = out.add(epoch(2));
  EXPECT_EQ(full.code(), Code::kIo);
  EXPECT_NE(full.message().find("No space left"), std::string::npos);
  EXPECT_EQ(epochs_of(records()), (std::vector<int64_t>{1}));
  disk.make_room(10'000);
  ASSERT_TRUE(out.add(epoch(3)).ok());
  EXPECT_EQ(epochs_of(records()), (std::vector<int64_t>{1, 3}));
  EXPECT_TRUE(records().damaged.empty());
}

// The system's own refusal in the middle of a line: here a limit on the size of files.
TEST_F(RecordFileTest, ALineThatIsWrittenHalfIsTakenBack) {
  RecordWriter out = writer();
  ASSERT_TRUE(out.add(epoch(1)).ok());
  const std::string before = text();
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit low{before.size() + 10, old.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const Status full = out.add(epoch(2));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(full.code(), Code::kIo) << full.message();
  EXPECT_EQ(text(), before);
  ASSERT_TRUE(out.add(epoch(3)).ok());
  EXPECT_EQ(epochs_of(records()), (std::vector<int64_t>{1, 3}));
}

TEST_F(RecordFileTest, AKilledWriterLeavesWholeLines) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    RecordWriter out = writer();
    for (int64_t e = 1;; ++e) {
      if (!out.add(epoch(e)).ok()) _exit(1);
    }
  }
  for (int i = 0; i < 500 && (!std::filesystem::exists(path_) || std::filesystem::file_size(path_) < 5000);
       ++i)
    usleep(10'000);
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
  ASSERT_TRUE(writer().add(epoch(7)).ok());
  const RecordFile file = records();
  EXPECT_TRUE(file.damaged.empty() && !file.torn);
  const std::vector<int64_t> epochs = epochs_of(file);
  ASSERT_GT(epochs.size(), 10U);
  for (size_t i = 0; i + 1 < epochs.size(); ++i) EXPECT_EQ(epochs[i], static_cast<int64_t>(i + 1));
}

TEST_F(RecordFileTest, DamagedLinesAreNamedAndTheOthersRead) {
  const RecordFile file =
      parse_records(record_line(epoch(1)) + "\nnonsense\n[]\n{}\n{\"kind\":\"x.y\",\"step\":-1}\n\n" +
                        record_line(epoch(2)) + "\n",
                    "f");
  EXPECT_EQ(epochs_of(file), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(file.damaged,
            (std::vector<std::string>{"f:2: not JSON", "f:3: not a JSON object", "f:4: there is no 'kind'",
                                      "f:5: 'step' should be a whole number that is not negative"}));
}

TEST_F(RecordFileTest, KindsOfOthersAreKeptForThem) {
  const RecordFile file = parse_records("{\"kind\":\"serve.load\",\"share\":0.5}\n", "f");
  ASSERT_EQ(file.lines.size(), 1U);
  EXPECT_EQ(file.lines[0].kind, "serve.load");
  EXPECT_FALSE(file.lines[0].step || file.lines[0].time);
}

TEST_F(RecordFileTest, OldHistoriesAreRead) {
  const RecordFile file = parse_records(
      R"({"kind":"start","step":0,"options":{"lr":"0.1"},"environment":{"threads":"2"}})"
      "\n"
      R"({"kind":"epoch","epoch":1,"step":4,"loss":null,"accuracy":0.5,"rate":0.1,"seconds":1,"images_per_s":4,"skipped":0})"
      "\n"
      R"({"kind":"resume","step":4,"options":{},"environment":{}})"
      "\n"
      R"({"kind":"selection","step":5,"chosen":[0],"importance":[1,null]})"
      "\n",
      "f");
  EXPECT_TRUE(file.damaged.empty());
  ASSERT_EQ(file.lines.size(), 4U);
  EXPECT_EQ(file.lines[0].as<StartRecord>()->environment.at("threads"), "2");
  EXPECT_FALSE(file.lines[1].as<EpochRecord>()->loss);
  EXPECT_TRUE(file.lines[2].is<ResumeRecord>());
  EXPECT_EQ(file.lines[3].as<SelectionRecord>()->chosen, (std::vector<uint64_t>{0}));
}

TEST_F(RecordFileTest, AHeaderOfANewerVersionIsRefused) {
  const RecordFile file = parse_records("{\"kind\":\"run.start\",\"version\":2}\n", "f");
  ASSERT_EQ(file.damaged.size(), 1U);
  EXPECT_NE(file.damaged[0].find("version 2 is newer than this program reads (1); update Limber"),
            std::string::npos);
}

// Linear in the number of headers: this takes minutes otherwise.
TEST_F(RecordFileTest, ManyResumptionsAreReadInOnePass) {
  std::string text;
  for (int i = 0; i < 10'000; ++i)
    text += "{\"kind\":\"run.resume\",\"step\":1}\n{\"kind\":\"x.y\",\"step\":2}\n";
  const RecordFile file = parse_records(text, "f");
  EXPECT_EQ(file.voided, 9'999U);
  EXPECT_EQ(file.lines.size(), 10'001U);
}

TEST_F(RecordFileTest, WhatIsNoFileIsAnError) {
  EXPECT_EQ(read_records(path_).status().code(), Code::kNotFound);
  std::filesystem::create_directories(path_);
  EXPECT_FALSE(read_records(path_).ok());
  EXPECT_FALSE(RecordWriter::open(path_).ok());
}

}  // namespace
}  // namespace limber
