#include "jobs/adapt_job.h"

#include <filesystem>

#include "data/stream.h"
#include "jobs/master_job.h"
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
  EXPECT_FALSE(score_windows(windows, 401).worst_below_frozen) << "there are not so many frames";
  windows[0].scored = false;
  EXPECT_EQ(score_windows(windows, 100).frames, 300);
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
  const Folder folder;
  AdaptJobOptions options =
      tiny_stream(test::write_tiny(folder), "contrast@5*100;data=synthetic:size=16,count=400");
  const auto frozen = run_adapt(options);
  ASSERT_TRUE(frozen.ok()) << frozen.status().message();
  options.guard = false;
  for (const std::string& name : adapt_strategies()) {
    if (name == "surrogate") continue;  // wants more frames than these, to know where it is
    options.strategy = name;
    const auto result = run_adapt(options);
    ASSERT_TRUE(result.ok()) << name << ": " << result.status().message();
    const adapt::FollowCounts& counts = (*result)->counts;
    EXPECT_EQ(counts.failed, 0) << name;
    EXPECT_EQ(counts.adapted > 0, name != "none") << name;
    EXPECT_EQ(counts.by_learnt > 0, name != "none") << name;
    EXPECT_EQ((*result)->score.frozen, (*frozen)->score.frozen) << name;
    EXPECT_EQ((*result)->windows[0].accuracy, (*frozen)->windows[0].accuracy) << "not seen yet";
  }
}

// Windows end with visits and with what is learnt from; a domain that comes again has its number.
TEST(AdaptJob, WhereBordersAreKnownAllButTheFirstWindowOfAVisitIsScored) {
  const Folder folder;
  AdaptJobOptions options = tiny_stream(
      test::write_tiny(folder), "fog@5*130,clean*80,jpeg@3*120;rounds=2;data=synthetic:size=16,count=700");
  options.borders_known = true;
  const auto result = run_adapt(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const AdaptResult& found = **result;
  EXPECT_EQ(found.frames, 660);
  int64_t next = 0, scored = 0;
  for (const WindowScore& window : found.windows) {
    EXPECT_EQ(window.first, next);
    next += window.frames;
    scored += window.scored ? window.frames : 0;
    EXPECT_FALSE(window.mixed);
    EXPECT_EQ(window.found, window.domain == "clean" ? 0 : window.domain == "fog@5" ? 1 : 3) << window.domain;
  }
  EXPECT_EQ(found.windows[0].frames, 50);
  EXPECT_FALSE(found.windows[0].scored);
  EXPECT_TRUE(found.windows[1].scored);
  EXPECT_EQ(scored, 2 * (80 + 30 + 70));
  EXPECT_EQ(found.score.frames, scored);
  EXPECT_TRUE(found.changes.empty() && found.alarms.empty());
  EXPECT_EQ(found.alarm_score.missed, 0);
}

TEST(AdaptJob, SurrogatesAreRememberedWithTheFolder) {
  const Folder folder;
  AdaptJobOptions options = tiny_stream(test::write_tiny(folder),
                                        "contrast@5*100,fog@5*100;rounds=2;data=synthetic:size=16,count=600");
  options.strategy = "surrogate";
  options.settings.operations = 0.5;
  options.borders_known = true;
  options.guard = false;
  options.output = folder / "followed";
  test::Listener listener;
  listener.stop_after = 6;  // the first is about the source
  const auto first = run_adapt(options, listener.control());
  ASSERT_TRUE(first.ok() && *first) << first.status().message();
  EXPECT_EQ((*first)->frames, 250);
  EXPECT_TRUE(std::filesystem::exists(options.output + "/master"));
  options.resume = true;
  const auto rest = run_adapt(options);
  ASSERT_TRUE(rest.ok() && *rest) << rest.status().message();
  EXPECT_EQ((*rest)->frames, 400);
  EXPECT_EQ((*rest)->counts.adapted, 4);
  EXPECT_EQ((*rest)->counts.by_learnt, 4 * 50);
  options.resume = false;
  options.output.clear();
  const auto alone = run_adapt(options);
  ASSERT_TRUE(alone.ok() && *alone);
  ASSERT_EQ((*rest)->windows.size(), (*alone)->windows.size());
  for (size_t i = 0; i < (*alone)->windows.size(); ++i) {
    EXPECT_EQ((*rest)->windows[i].frozen, (*alone)->windows[i].frozen)
        << "the model as it came stays as it came";
    EXPECT_EQ((*rest)->windows[i].accuracy, (*alone)->windows[i].accuracy) << i;
  }
}

TEST(AdaptJob, AMasterIsFollowedWithItsGates) {
  const Folder folder;
  MasterJobOptions making;
  making.model = "builtin:resnet8";
  making.data = "synthetic:count=64";
  making.output = folder / "master";
  making.batch = 8;
  making.threads = 1;
  making.workers = 0;
  making.shares = {1};
  for (making.budget = 1;; making.budget *= 2) {
    const auto made = run_master(making);
    const bool too_small = made.status().message().find("too small") != std::string::npos;
    ASSERT_TRUE(made.ok() || (too_small && making.budget < 100)) << made.status().message();
    if (made.ok()) break;
  }
  AdaptJobOptions options = tiny_stream(making.output, "fog@5*100;data=synthetic:size=32,count=400");
  options.strategy = "surrogate";
  options.borders_known = true;
  options.guard = false;
  const auto result = run_adapt(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ((*result)->counts.adapted, 1);
  const double operations = (*result)->counts.operations / 50;
  EXPECT_TRUE(operations > 0.05 && operations <= 0.3) << operations;
}

// The next image stands in for one that cannot be read; it is not learnt from, nor scored, twice.
TEST(AdaptJob, FramesThatCannotBeReadAreCountedOnce) {
  const Folder folder;
  std::vector<std::string> classes;
  for (int i = 0; i < 10; ++i) classes.push_back(fmt::format("{}", i));
  const std::string images = test::write_classes(folder, classes, 20);
  for (int i = 0; i < 10; ++i) folder.write(fmt::format("images/{}/{}.png", i, i / 2), "no image");
  AdaptJobOptions options = tiny_stream(test::write_tiny(folder), "clean*100;data=" + images);
  options.source_images = 100;
  options.strategy = "bn";
  const auto result = run_adapt(options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const auto stream = Stream::open(*parse_stream(options.stream), {.data = "", .keep = 100});
  ASSERT_TRUE(stream.ok());
  int64_t broken = 0;
  for (size_t frame = 0; frame < 100; ++frame) broken += (*stream)->get(frame).ok() ? 0 : 1;
  EXPECT_GT(broken, 0);
  EXPECT_EQ((*result)->counts.faults.unreadable, broken);
  EXPECT_EQ((*result)->counts.frames, 100);
}

TEST(AdaptJob, AStopLaysOutNoMoreThanWasSeen) {
  const Folder folder;
  test::Listener listener;
  listener.stop_after = 3;
  const auto result =
      run_adapt(tiny_stream(test::write_tiny(folder),
                            "fog@5*20,clean*30;rounds=100000;data=synthetic:size=16,count=600"),
                listener.control());
  ASSERT_TRUE(result.ok() && *result) << result.status().message();
  EXPECT_EQ((*result)->frames, 100);
  ASSERT_EQ((*result)->changes.size(), 4U);
  EXPECT_EQ((*result)->changes.back().until, 100);
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
  refused([](AdaptJobOptions& o) { o.settings.operations = 0; }, {"surrogate", "share 0"});
  refused([](AdaptJobOptions& o) { o.source_images = 10; }, {"source_images is 10"});
  refused([](AdaptJobOptions& o) { o.source_images = 600; }, {"600 images to hold out"});
  refused([](AdaptJobOptions& o) { o.drift.frames_per_alarm = 0; }, {"frames_per_alarm"});
  refused([](AdaptJobOptions& o) { o.data = "/nowhere"; }, {"/nowhere"});
}

}  // namespace
}  // namespace limber
