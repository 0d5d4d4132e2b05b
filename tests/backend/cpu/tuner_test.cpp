#include "backend/cpu/tuner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "backend/cpu/layers.h"
#include "base/parallel.h"

namespace limber {
namespace {

class TunerFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = fmt::format("{}/limber-tuner-{}.json", testing::TempDir(), getpid());
    std::filesystem::remove(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void write(const std::string& text) const { std::ofstream(path_) << text; }
  std::string read() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string path_;
};

const Timing kSome{onednn::Format::kPlain, onednn::Format::kBlocked16, kDirect, 2, 1, "jit", 3e-5};

TEST_F(TunerFile, TheNextProcessFindsWhatWasMeasured) {
  {
    Tuner tuner(path_, 2);
    EXPECT_FALSE(tuner.find("conv"));
    tuner.keep("conv", {kSome});
    tuner.keep_reorder("a>b", 1e-6);
    tuner.keep_choice("plan", 65);
  }
  const Tuner next(path_, 2);
  ASSERT_TRUE(next.find("conv"));
  const Timing found = next.find("conv")->front();
  EXPECT_EQ(found.dst, kSome.dst);
  EXPECT_EQ(found.index, 2);
  EXPECT_EQ(found.tier, 1);
  EXPECT_EQ(found.impl, "jit");
  EXPECT_EQ(found.seconds, 3e-5);
  EXPECT_EQ(next.find_reorder("a>b"), 1e-6);
  EXPECT_EQ(next.find_choice("plan"), 65);
}

TEST_F(TunerFile, OtherThreadCountsHaveTimesOfTheirOwn) {
  Tuner(path_, 2).keep_reorder("a>b", 1e-6);
  EXPECT_FALSE(Tuner(path_, 4).find_reorder("a>b"));
  Tuner(path_, 4).keep_reorder("a>b", 2e-6);
  EXPECT_EQ(Tuner(path_, 2).find_reorder("a>b"), 1e-6);
  EXPECT_EQ(Tuner(path_, 4).find_reorder("a>b"), 2e-6);
}

TEST_F(TunerFile, ProcessesThatEndOneAfterTheOtherLoseNothing) {
  {
    Tuner one(path_, 1), two(path_, 1);
    one.keep_reorder("first", 1);
    two.keep_reorder("second", 2);
  }
  const Tuner next(path_, 1);
  EXPECT_TRUE(next.find_reorder("first") && next.find_reorder("second"));
}

TEST_F(TunerFile, NothingNewIsNotWritten) {
  write("{\"version\": 3, \"machines\": {}}");
  const std::string before = read();
  { const Tuner tuner(path_, 1); }
  EXPECT_EQ(read(), before);
}

// It is only a cache, and anybody may have written it.
TEST_F(TunerFile, ADamagedOneIsAnEmptyOne) {
  std::string machine;
  {
    Tuner(path_, 1).keep("conv", {kSome});
    const std::string text = read();
    const size_t begin = text.find("machines\":{\"") + 12;
    machine = text.substr(begin, text.find('"', begin) - begin);
  }
  const auto of_machine = [&](const std::string& entries) {
    return fmt::format("{{\"version\": 3, \"machines\": {{\"{}\": {}}}}}", machine, entries);
  };
  const std::vector<std::string> damaged = {
      "",
      "{",
      "[]",
      "{\"version\": \"two\"}",
      "{\"version\": 1, \"machines\": {}}",
      "{\"version\": 3, \"machines\": 7}",
      of_machine("7"),
      of_machine("[1, 2]"),
      of_machine("{\"layers\": 7, \"reorders\": [1], \"plans\": \"x\"}"),
      of_machine("{\"layers\": {\"conv\": 7}}"),
      of_machine("{\"layers\": {\"conv\": [[0, 0, 0, 0, 0, \"jit\"]]}}"),
      of_machine("{\"layers\": {\"conv\": [[9, 0, 0, 0, 0, \"jit\", 1e-5]]}}"),
      of_machine("{\"layers\": {\"conv\": [[0, 0, 7, 0, 0, \"jit\", 1e-5]]}}"),
      of_machine("{\"layers\": {\"conv\": [[0, 0, 0, -1, 0, \"jit\", 1e-5]]}}"),
      of_machine("{\"layers\": {\"conv\": [[0, 0, 0, 0, 2000000000, \"jit\", 1e-5]]}}"),
      of_machine("{\"reorders\": {\"a>b\": \"soon\"}, \"plans\": {\"plan\": 0.5}}"),
  };
  for (const std::string& text : damaged) {
    write(text);
    {
      Tuner tuner(path_, 1);
      EXPECT_FALSE(tuner.find("conv")) << text;
      EXPECT_FALSE(tuner.find_reorder("a>b")) << text;
      EXPECT_FALSE(tuner.find_choice("plan")) << text;
      tuner.keep_choice("other", 3);
    }
    EXPECT_EQ(Tuner(path_, 1).find_choice("other"), 3) << text;
  }
}

TEST(Tuner, DoesNotGrowForever) {
  Tuner tuner("", 1);
  constexpr int kMany = 60'000, kMost = 50'000;
  for (int i = 0; i < kMany; ++i) tuner.keep_reorder(std::to_string(i), 1);
  int known = 0;
  for (int i = 0; i < kMany; ++i) known += tuner.find_reorder(std::to_string(i)) ? 1 : 0;
  EXPECT_LE(known, kMost);
  EXPECT_GT(known, kMost / 2);
}

TEST(Tuner, ThreadsMayShareOne) {
  Tuner tuner("", 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        tuner.keep(std::to_string(i), {kSome});
        tuner.keep_choice(std::to_string(i), t);
        EXPECT_TRUE(tuner.find(std::to_string(i)));
        EXPECT_TRUE(tuner.find_choice(std::to_string(i)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

onednn::Convolution conv3x3(int64_t channels) {
  onednn::Convolution c;
  c.src = c.dst = {1, channels, 12, 12};
  c.weights = {channels, channels, 3, 3};
  c.strides = c.dilations = c.pad_begin = c.pad_end = {1, 1};
  c.src_format = c.dst_format = onednn::Format::kChannelsLast;
  return c;
}

TEST(TimeKernel, ALargerConvolutionTakesLonger) {
  const ThreadScope alone(1);  // a busy machine delays threads that wait for each other far more
  onednn::Library library;
  const auto small = library.create(conv3x3(16), 0), large = library.create(conv3x3(128), 0);
  ASSERT_TRUE(small.ok() && large.ok());
  for (bool cold : {false, true}) {
    const auto quick = time_kernel(*small, false, cold), slow = time_kernel(*large, false, cold);
    ASSERT_TRUE(quick.ok() && slow.ok());
    EXPECT_GT(*quick, 0);
    EXPECT_GT(*slow, 2 * *quick);  // 64 times the work
  }
}

TEST(Difference, ImplementationsOfOneLayerAgree) {
  onednn::Library library;
  const onednn::Convolution spec = conv3x3(32);
  const auto names = library.list(spec);
  const auto first = library.create(spec, 0);
  ASSERT_TRUE(first.ok());
  for (int i = 0; i < static_cast<int>(names.size()); ++i) {
    const auto other = library.create(spec, i);
    if (!other.ok()) continue;
    const auto apart =
        difference(library, *other, *first, {DType::kF32, Shape{32, 32, 3, 3}}, /*gradient=*/false);
    ASSERT_TRUE(apart.ok()) << apart.status().message();
    EXPECT_LT(*apart, 1e-5) << names[static_cast<size_t>(i)];
    EXPECT_TRUE(i > 0 || *apart == 0);
  }
}

}  // namespace
}  // namespace limber
