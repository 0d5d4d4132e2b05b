#include "adapt/drift.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace limber::adapt {
namespace {

// Frames of ten classes whose features have means of their own; heavy tails, and features that go together.
class FakeWorld {
 public:
  explicit FakeWorld(uint64_t seed, double confusion = 0.1) : random_(seed), confusion_(confusion) {}

  // In class `label`; shifted by `shift` deviations in the features of `where`.
  ReferenceFrame draw(int32_t label, double shift = 0, std::span<const size_t> where = {}) {
    ReferenceFrame made;
    made.label = label;
    made.frame.claimed = random_.uniform() < confusion_ ? static_cast<int32_t>(random_.below(10)) : label;
    const double common = random_.normal();
    for (size_t i = 0; i < kFrameFeatures; ++i) {
      double value = 0.6 * common + 0.8 * random_.normal();
      if (i % 3 == 0) value = std::exp(value);  // skewed
      value += 3 * std::sin(static_cast<double>(label) * (static_cast<double>(i) + 1));
      made.frame.features[i] = static_cast<float>(value);
    }
    for (const size_t i : where) made.frame.features[i] += static_cast<float>(shift);
    return made;
  }
  ReferenceFrame draw_any(double shift = 0, std::span<const size_t> where = {}) {
    return draw(static_cast<int32_t>(random_.below(10)), shift, where);
  }
  std::vector<ReferenceFrame> reference(size_t count) {
    std::vector<ReferenceFrame> frames;
    for (size_t i = 0; i < count; ++i) frames.push_back(draw_any());
    return frames;
  }

 private:
  Random random_;
  double confusion_;
};

DriftDetector detector_for(FakeWorld& world, const DriftOptions& options = {}) {
  auto made = DriftDetector::create(world.reference(2000), options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *std::move(made);
}

TEST(DriftDetector, IsQuietWhileNothingChanges) {
  int alarms = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    FakeWorld world(seed);
    DriftDetector detector = detector_for(world);
    for (int i = 0; i < 20000; ++i) alarms += detector.observe(world.draw_any().frame).has_value();
  }
  EXPECT_EQ(alarms, 0);
}

// With nothing tolerated but chance and a low threshold there are false alarms; no more than were promised.
TEST(DriftDetector, FalseAlarmsAreAsRareAsPromised) {
  DriftOptions options;
  options.frames_per_alarm = 500;
  options.settle = 16;
  options.same_domain = 100;  // every alarm leads back to the source
  int alarms = 0, frames = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    FakeWorld world(seed);
    DriftDetector detector = detector_for(world, options);
    for (int i = 0; i < 5000; ++i, ++frames) alarms += detector.observe(world.draw_any().frame).has_value();
  }
  EXPECT_LE(alarms, frames / 500);
}

TEST(DriftDetector, SortedClassesAreNoDrift) {
  int alarms = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    FakeWorld world(seed);
    DriftDetector detector = detector_for(world);
    for (int i = 0; i < 20000; ++i) alarms += detector.observe(world.draw(i / 2000).frame).has_value();
  }
  EXPECT_LE(alarms, 1);
}

TEST(DriftDetector, FindsAChangeOfOneFeatureSoonAndNamesIt) {
  for (const double shift : {1.5, -2.0, 4.0}) {
    for (const size_t feature : {size_t{1}, size_t{7}, size_t{13}}) {
      FakeWorld world(3);
      DriftDetector detector = detector_for(world);
      for (int i = 0; i < 1000; ++i) ASSERT_FALSE(detector.observe(world.draw_any().frame));
      std::optional<DriftAlarm> alarm;
      while (!alarm && detector.frames() < 2000)
        alarm = detector.observe(world.draw_any(shift, {&feature, 1}).frame);
      ASSERT_TRUE(alarm);
      EXPECT_LT(alarm->frame, 1000 + 100) << shift;
      EXPECT_EQ(static_cast<size_t>(alarm->feature), feature);
      EXPECT_NEAR(static_cast<double>(alarm->since), 1000, 40);
      EXPECT_LE(alarm->since, alarm->frame);
    }
  }
}

TEST(DriftDetector, DomainsAreKnownWhenTheyComeBack) {
  FakeWorld world(4);
  DriftDetector detector = detector_for(world);
  const size_t first[] = {1, 2, 4}, second[] = {5, 7};
  std::vector<int64_t> met;
  for (int round = 0; round < 3; ++round) {
    for (int part = 0; part < 3; ++part) {
      int alarms = 0;
      for (int i = 0; i < 600; ++i) {
        const auto frame = part == 0   ? world.draw_any()
                           : part == 1 ? world.draw_any(3, first)
                                       : world.draw_any(-3, second);
        alarms += detector.observe(frame.frame).has_value();
      }
      EXPECT_EQ(alarms, round == 0 && part == 0 ? 0 : 1);
      EXPECT_FALSE(detector.settling());
      met.push_back(detector.domain());
    }
  }
  EXPECT_EQ(met, (std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0, 1, 2}));
  ASSERT_NE(detector.known(1), nullptr);
  EXPECT_GT(distance(*detector.known(0), *detector.known(1)), 0.8);
  EXPECT_EQ(detector.known(3), nullptr);
}

// A shift that single features hardly show.
TEST(DriftDetector, TheWayBackToTheSourceIsSeenByAllFeaturesTogether) {
  const size_t where[] = {0, 2, 4, 6, 8, 10, 12};
  int64_t longest = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    FakeWorld world(seed, 0);
    DriftDetector detector = detector_for(world);
    const auto until_alarm = [&](double shift, int64_t most) {
      for (int64_t i = 1; i <= most; ++i) {
        if (detector.observe(world.draw_any(shift, where).frame)) return i;
      }
      return most + 1;
    };
    ASSERT_LE(until_alarm(0.8, 1000), 1000);
    ASSERT_EQ(until_alarm(0.8, 600), 601) << "nothing changes";
    longest = std::max(longest, until_alarm(0, 1000));
  }
  EXPECT_LE(longest, 100);
}

TEST(DriftDetector, MemoryDoesNotGrowAndOldDomainsAreForgotten) {
  FakeWorld world(5);
  DriftOptions options;
  options.settle = 16;
  options.max_domains = 4;
  DriftDetector detector = detector_for(world, options);
  const size_t before = detector.bytes();
  EXPECT_LT(before, size_t{400} << 10);
  for (int domain = 1; domain <= 12; ++domain) {
    const size_t where[] = {static_cast<size_t>(domain % 13), static_cast<size_t>((domain * 5) % 14)};
    for (int i = 0; i < 200; ++i) detector.observe(world.draw_any(domain % 2 == 0 ? 6 : -6, where).frame);
  }
  EXPECT_GT(detector.domain(), 4);
  EXPECT_EQ(detector.bytes(), before);
  EXPECT_NE(detector.known(0), nullptr);
  EXPECT_EQ(detector.known(1), nullptr);
  EXPECT_NE(detector.known(detector.domain()), nullptr);
}

TEST(DriftDetector, DistanceIsZeroBetweenEquals) {
  FakeWorld world(6);
  const DriftDetector detector = detector_for(world);
  const size_t where[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  std::vector<Frame> a, b, far;
  for (int i = 0; i < 200; ++i) {
    a.push_back(world.draw_any().frame);
    b.push_back(world.draw_any().frame);
    far.push_back(world.draw_any(2, where).frame);
  }
  const auto of_a = detector.signature_of(a), of_b = detector.signature_of(b),
             of_far = detector.signature_of(far);
  EXPECT_LT(distance(of_a, of_b), 0.12);
  EXPECT_DOUBLE_EQ(distance(of_a, of_far), distance(of_far, of_a));
  EXPECT_GT(distance(of_a, of_far), 1);
}

TEST(DriftDetector, RefusesWhatCannotWork) {
  FakeWorld world(7);
  const auto few = DriftDetector::create(world.reference(99));
  ASSERT_FALSE(few.ok());
  EXPECT_NE(few.status().message().find("99 frames"), std::string::npos);
  const auto reference = world.reference(100);
  EXPECT_TRUE(DriftDetector::create(reference).ok());
  for (const auto& change : std::initializer_list<void (*)(DriftOptions&)>{
           [](DriftOptions& o) { o.frames_per_alarm = 1; }, [](DriftOptions& o) { o.frames_per_alarm = NAN; },
           [](DriftOptions& o) { o.tolerated = -1; }, [](DriftOptions& o) { o.settle = 1; },
           [](DriftOptions& o) { o.settle = 1000000; }, [](DriftOptions& o) { o.same_domain = -1; },
           [](DriftOptions& o) { o.max_domains = 1; }}) {
    DriftOptions options;
    change(options);
    EXPECT_EQ(DriftDetector::create(reference, options).status().code(), Code::kInvalidArgument);
  }
}

// Features that never change, as of a camera that is covered, and claims that the reference does not have.
TEST(DriftDetector, StandsWhatNeverVaries) {
  std::vector<ReferenceFrame> flat(200);
  auto detector = DriftDetector::create(flat);
  ASSERT_TRUE(detector.ok());
  Frame frame;
  for (int i = 0; i < 5000; ++i) EXPECT_FALSE(detector->observe(frame));
  frame.claimed = 1 << 20;
  for (int i = 0; i < 100; ++i) detector->observe(frame);
  frame.claimed = -1;
  frame.features.fill(1e30F);
  int alarms = 0;
  for (int i = 0; i < 100; ++i) alarms += detector->observe(frame).has_value();
  EXPECT_EQ(alarms, 1);
}

}  // namespace
}  // namespace limber::adapt
