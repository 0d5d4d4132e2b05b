#include "jobs/adapt_job.h"

#include "tests/jobs/tiny.h"

namespace limber {
namespace {

using test::contains;

AdaptJobOptions tiny_stream(const std::string& model, const std::string& stream) {
  AdaptJobOptions options;
  options.model = model;
  options.stream = stream;
  options.source_images = 300;
  options.window = 50;
  options.threads = 1;
  options.workers = 0;
  return options;
}

TEST(AdaptScore, AlarmsAreFoundMissedOrFalse) {
  std::vector<DomainChange> changes = {{100, 200, "a", {}}, {200, 300, "b", {}}, {300, 400, "c", {}}};
  const std::vector<int64_t> alarms = {50, 109, 150, 160, 399};
  const AlarmScore score = score_alarms(changes, alarms);
  EXPECT_EQ(changes[0].delay, 10);
  EXPECT_FALSE(changes[1].delay);
  EXPECT_EQ(changes[2].delay, 100);
  EXPECT_EQ(score.found, 2);
  EXPECT_EQ(score.missed, 1);
  EXPECT_EQ(score.false_alarms, 3);
  EXPECT_EQ(score.median_delay, 55);
  EXPECT_EQ(score.longest_delay, 100);
  std::vector<DomainChange> none;
  EXPECT_EQ(score_alarms(none, alarms).false_alarms, 5);
}

TEST(AdaptScore, WindowsAreWeighedByTheirFrames) {
  const auto window = [](int64_t frames, double accuracy, double frozen, double estimate) {
    WindowScore made;
    made.frames = frames;
    made.accuracy = accuracy;
    made.frozen = frozen;
    made.estimate = made.atc = made.doc = estimate;
    return made;
  };
  std::vector<WindowScore> windows = {window(100, 0.5, 0.4, 0.5), window(300, 0.9, 0.8, 0.6)};
  windows.push_back(window(100, 0, 1, 0));
  windows.back().labelled = false;
  const StreamScore score = score_windows(windows, 100);
  EXPECT_EQ(score.frames, 400);
  EXPECT_DOUBLE_EQ(score.accuracy, 0.8);
  EXPECT_DOUBLE_EQ(score.frozen, 0.7);
  EXPECT_NEAR(score.estimate_error, 0.15, 1e-12);
  EXPECT_EQ(score.worst_below_frozen, 0);
}

// Brute force over all runs of windows.
TEST(AdaptScore, TheWorstSpanIsFound) {
  Random random(1);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<WindowScore> windows(20);
    for (WindowScore& window : windows) {
      window.frames = 100;
      window.accuracy = random.uniform();
      window.frozen = random.uniform();
    }
    double worst = 0;
    for (size_t i = 0; i + 5 <= windows.size(); ++i) {
      double lost = 0;
      for (size_t k = i; k < i + 5; ++k) lost += (windows[k].frozen - windows[k].accuracy) / 5;
      worst = std::max(worst, lost);
    }
    EXPECT_NEAR(score_windows(windows, 500).worst_below_frozen.value_or(-1), worst, 1e-12);
  }
}

TEST(AdaptJob, ScoresEveryWindowAndNoticesNoise) {
  const Folder folder;
  test::Listener listener;
  const auto result = run_adapt(
      tiny_stream(test::write_tiny(folder),
                  "clean*400,gaussian-noise@5*330,noise*100,clean*200;data=synthetic:size=16,count=900"),
      listener.control());
  ASSERT_TRUE(result.ok()) << result.status().message();
  const AdaptResult& found = **result;
  EXPECT_EQ(found.frames, 1030);
  EXPECT_EQ(found.source_images, 300);
  ASSERT_EQ(found.windows.size(), 21u);
  int64_t frames = 0;
  for (const WindowScore& window : found.windows) {
    EXPECT_EQ(window.first, frames);
    frames += window.frames;
    EXPECT_DOUBLE_EQ(window.accuracy, window.frozen);
    EXPECT_GE(window.estimate, 0);
    EXPECT_LE(window.estimate, 1);
  }
  EXPECT_TRUE(found.windows[14].mixed);
  EXPECT_FALSE(found.windows[15].labelled);
  ASSERT_EQ(found.changes.size(), 3u);
  EXPECT_EQ(found.changes[0].domain, "gaussian-noise@5");
  ASSERT_TRUE(found.changes[0].delay);
  EXPECT_LT(*found.changes[0].delay, 100);
  EXPECT_EQ(found.alarm_score.false_alarms, 0);
  EXPECT_EQ(found.counts.adapted, 0);
  EXPECT_EQ(listener.stage, "following the stream");
}

// The frozen model beside it answers as if there was no strategy.
TEST(AdaptJob, StrategiesLearnFromWhatWasScored) {
  AdaptJobOptions options = tiny_stream("builtin:resnet8", "contrast@5*100;data=synthetic:size=32,count=400");
  const auto frozen = run_adapt(options);
  ASSERT_TRUE(frozen.ok()) << frozen.status().message();
  for (const std::string& name : adapt_strategies()) {
    if (name == "shot") continue;  // a hundred slow steps again, which tests/adapt/methods have
    options.strategy = name;
    const auto result = run_adapt(options);
    ASSERT_TRUE(result.ok()) << name << ": " << result.status().message();
    EXPECT_EQ((*result)->counts.failed, 0) << name;
    EXPECT_EQ((*result)->counts.adapted > 0, name != "none") << name;
    EXPECT_EQ((*result)->score.frozen, (*frozen)->score.frozen) << name;
    EXPECT_EQ((*result)->windows[0].accuracy, (*frozen)->windows[0].accuracy) << "not seen yet";
  }
}

TEST(AdaptJob, TheSameSeedGivesTheSameResult) {
  const Folder folder;
  const auto options =
      tiny_stream(test::write_tiny(folder), "clean*100,fog@5*100;data=synthetic:size=16,count=600");
  const auto a = run_adapt(options), b = run_adapt(options);
  ASSERT_TRUE(a.ok() && b.ok());
  for (size_t i = 0; i < (*a)->windows.size(); ++i) {
    EXPECT_EQ((*a)->windows[i].accuracy, (*b)->windows[i].accuracy);
    EXPECT_EQ((*a)->windows[i].estimate, (*b)->windows[i].estimate);
  }
}

TEST(AdaptJob, SourceImagesOfTheirOwn) {
  const Folder folder;
  AdaptJobOptions options =
      tiny_stream(test::write_tiny(folder), "fog@5*200;data=synthetic:size=16,count=300");
  options.data = "synthetic:size=16,count=200,seed=9";
  const auto result = run_adapt(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ((*result)->source_images, 200);
  ASSERT_EQ((*result)->changes.size(), 1u);  // it begins elsewhere
  EXPECT_EQ((*result)->changes[0].frame, 0);
}

TEST(AdaptJob, AStopKeepsWhatWasSeen) {
  const Folder folder;
  test::Listener listener;
  listener.stop_after = 4;  // the first is about the source
  const auto options = tiny_stream(test::write_tiny(folder), "clean*1000;data=synthetic:size=16,count=600");
  const auto result = run_adapt(options, listener.control());
  ASSERT_TRUE(result.ok() && *result);
  EXPECT_EQ((*result)->frames, 150);
  listener.stop = true;
  const auto nothing = run_adapt(options, listener.control());
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(*nothing);
}

TEST(AdaptJob, RefusesWhatCannotWork) {
  const Folder folder;
  const std::string model = test::write_tiny(folder);
  const auto refused = [&](const auto& change, std::initializer_list<std::string> parts) {
    AdaptJobOptions options = tiny_stream(model, "clean*100;data=synthetic:size=16,count=600");
    change(options);
    const auto result = run_adapt(options);
    ASSERT_FALSE(result.ok());
    for (const std::string& part : parts)
      EXPECT_TRUE(contains(result.status().message(), part)) << result.status().message();
  };
  refused([](AdaptJobOptions& o) { o.stream.clear(); }, {"no stream"});
  refused([](AdaptJobOptions& o) { o.stream = "clean*100,foog"; }, {"at 11", "'foog'"});
  refused([](AdaptJobOptions& o) { o.window = 1; }, {"window is 1"});
  refused([](AdaptJobOptions& o) { o.strategy = "nune"; }, {"'nune'", "none"});
  refused([](AdaptJobOptions& o) { o.source_images = 10; }, {"source_images is 10"});
  refused([](AdaptJobOptions& o) { o.source_images = 600; }, {"600 images to hold out"});
  refused([](AdaptJobOptions& o) { o.drift.frames_per_alarm = 0; }, {"frames_per_alarm"});
  refused([](AdaptJobOptions& o) { o.data = "/nowhere"; }, {"/nowhere"});
}

}  // namespace
}  // namespace limber
