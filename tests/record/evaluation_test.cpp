#include "record/evaluation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "record/accuracy.h"

namespace limber {
namespace {

// Values of R's binom.confint(x, n, method = "wilson").
TEST(AccuracyInterval, IsWilsons) {
  const auto near = [](int64_t correct, int64_t images, double low, double high) {
    const Interval found = accuracy_interval(correct, images);
    EXPECT_NEAR(found.low, low, 1e-4) << correct << " of " << images;
    EXPECT_NEAR(found.high, high, 1e-4) << correct << " of " << images;
  };
  near(0, 10, 0, 0.2775);
  near(10, 10, 0.7225, 1);
  near(5, 10, 0.2366, 0.7634);
  near(39, 40, 0.8712, 0.9956);
  near(9000, 10000, 0.8940, 0.9057);
  near(0, 0, 0, 1);
}

// Of many experiments with a known share, the interval must hold it in about 95 %.
TEST(AccuracyInterval, HoldsTheTruthInNineteenOfTwentyCases) {
  for (const double share : {0.5, 0.9, 0.97}) {
    for (const int64_t images : {20, 100}) {
      double covered = 0, probability = std::pow(1 - share, static_cast<double>(images));
      for (int64_t correct = 0; correct <= images; ++correct) {
        const Interval found = accuracy_interval(correct, images);
        if (found.low <= share && share <= found.high) covered += probability;
        probability *=
            static_cast<double>(images - correct) / static_cast<double>(correct + 1) * share / (1 - share);
      }
      EXPECT_GT(covered, 0.88) << share << " of " << images;
      EXPECT_LT(covered, 0.99) << share << " of " << images;
    }
  }
}

TEST(AccuracyText, SaysOfHowManyAndWhichAndHowSure) {
  EXPECT_EQ(accuracy_text(39, 40, "training"), "97.5 % of 40 training images (87.1 to 99.6 %)");
  EXPECT_EQ(accuracy_text(9125, 10000, "test"), "91.25 % of 10000 test images");
  EXPECT_EQ(accuracy_text(1, 1, ""), "100.0 % of 1 image (20.7 to 100.0 %)");
  EXPECT_EQ(accuracy_text(0, 0, "test"), "no test images");
}

EvaluationRecord small() {
  EvaluationRecord record{.model = "m.onnx", .data = "photos", .images = 10, .correct_top5 = 10, .loss = 0.5};
  record.classes = {"cat", "dog", "owl"};
  record.confusion = {{0, 0, 4}, {0, 1, 1}, {1, 1, 3}, {1, 0, 2}};
  record.bins = {{4, 1, 1.5}, {6, 6, 5.5}};
  record.worst = {{"a.jpg", 0, 1, 0.9, "iVBORw0K"}, {"b.jpg", 1, 0, 0.4, ""}};
  return record;
}

TEST(EvaluationRecord, CountsByClass) {
  const EvaluationRecord record = small();
  EXPECT_EQ(record.problem(), "");
  const auto counts = record.by_class();
  EXPECT_EQ(counts[0].images, 5);
  EXPECT_EQ(counts[0].correct, 4);
  EXPECT_EQ(counts[0].predicted, 6);
  EXPECT_EQ(counts[2].images, 0);
  EXPECT_EQ(record.correct(), 7);
  EXPECT_NEAR(record.calibration_error(), (0.5 + 0.5) / 10, 1e-12);
}

TEST(EvaluationRecord, IsReadAsWritten) {
  const std::string text = format_fields(small());
  const auto read = parse_fields<EvaluationRecord>(text);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(format_fields(*read), text);
}

TEST(EvaluationRecord, ThatCannotBeIsRefused) {
  const auto refused = [](const std::string& part, const std::function<void(EvaluationRecord&)>& spoil) {
    EvaluationRecord record = small();
    spoil(record);
    const auto read = parse_fields<EvaluationRecord>(format_fields(record));
    ASSERT_FALSE(read.ok()) << part;
    EXPECT_NE(read.status().message().find(part), std::string::npos) << read.status().message();
  };
  refused("'classes'", [](auto& r) { r.classes.clear(); });
  refused("names class 3 of 3", [](auto& r) { r.confusion[0].predicted = 3; });
  refused("a pair twice", [](auto& r) { r.confusion[1].predicted = 0; });
  refused("has 9 images of 10", [](auto& r) { r.confusion[0].count = 3; });
  refused("more images", [](auto& r) { r.confusion[0].count = int64_t{1} << 53; });
  refused("'bins'", [](auto& r) { r.bins[0].correct = 5; });
  refused("'bins'", [](auto& r) { r.bins[0].confidence = NAN; });
  refused("'worst'", [](auto& r) { r.worst[0].truth = 7; });
  refused("'worst'", [](auto& r) { r.worst[0].confidence = 1.5; });
  refused("base64", [](auto& r) { r.worst[0].png = "\"><script>"; });
  refused("'correct_top5'", [](auto& r) { r.correct_top5 = 11; });
}

}  // namespace
}  // namespace limber
