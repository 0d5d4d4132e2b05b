#include "report/evaluation_page.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/random.h"
#include "tests/report/xml.h"

namespace limber {
namespace {

// A red square of one pixel.
constexpr const char* kPng =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";

EvaluationRecord some_record(size_t classes, int64_t each) {
  EvaluationRecord record{.model = "m<1>.onnx", .data = "photos & more", .loss = 0.4, .seconds = 12};
  Random random(3);
  record.bins.resize(10);
  for (size_t k = 0; k < classes; ++k) {
    record.classes.push_back(k == 1 ? "a very long name of a class <b>" : fmt::format("class {}", k));
    const int64_t wrong = static_cast<int64_t>(random.below(static_cast<uint64_t>(each / 2)));
    record.confusion.push_back({k, k, each - wrong});
    if (wrong > 0) record.confusion.push_back({k, (k + 1) % classes, wrong});
    record.images += each;
    record.bins[9].images += each - wrong;
    record.bins[9].correct += each - wrong;
    record.bins[9].confidence += 0.96 * static_cast<double>(each - wrong);
    record.bins[5].images += wrong;
    record.bins[5].confidence += 0.55 * static_cast<double>(wrong);
    record.worst.push_back({fmt::format("photos/{}.jpg", k), k, (k + 1) % classes,
                            0.99 - 0.01 * static_cast<double>(k % 50), k % 3 == 2 ? "" : kPng});
  }
  record.correct_top5 = record.images - 3;
  EXPECT_EQ(record.problem(), "");
  return record;
}

// $LIMBER_PAGES keeps pages to look at.
void keep(const std::string& name, const std::string& page) {
  if (const char* folder = std::getenv("LIMBER_PAGES"))
    std::ofstream(std::string(folder) + "/" + name) << page;
}

std::string checked_page(const EvaluationRecord& record) {
  const std::string page = evaluation_page(record);
  EXPECT_EQ(xml_problem(page.substr(page.find("<html"))), "");
  return page;
}

TEST(EvaluationPage, HasEveryPart) {
  const std::string page = checked_page(some_record(10, 40));
  keep("evaluation-10.html", page);
  for (const char* part :
       {"Evaluation of m&lt;1&gt;.onnx", "photos &amp; more", "of 400 test images", "Confusion matrix",
        "95 % interval", "most often taken for", "Expected calibration error", "Accuracy by confidence",
        "Worst mistakes", "data:image/png;base64,iVBOR", "photos/0.jpg"})
    EXPECT_TRUE(has(page, part)) << part;
  EXPECT_FALSE(has(page, "<script"));
}

TEST(EvaluationPage, OfManyClassesStaysSmall) {
  const std::string page = checked_page(some_record(1000, 4));
  keep("evaluation-1000.html", page);
  EXPECT_TRUE(has(page, "The 24 classes of 1000 with the most mistakes"));
  EXPECT_TRUE(has(page, "1000 of 1000 classes have fewer than 30 images"));
  EXPECT_TRUE(has(page, "All 1000 classes, the worst first"));
  EXPECT_LT(page.size(), 600'000U);
}

TEST(EvaluationPage, OfLittleIsStillAPage) {
  EvaluationRecord record{.model = "m", .data = "d", .classes = {"only"}};
  EXPECT_TRUE(has(checked_page(record), "no test images"));
  record.images = 1;
  record.confusion = {{0, 0, 1}};
  record.which = "training";
  const std::string page = checked_page(record);
  EXPECT_TRUE(has(page, "100.0 % of 1 training image (20.7 to 100.0 %)"));
  EXPECT_TRUE(has(page, "trained on"));
  EXPECT_FALSE(has(page, "Can its confidence be trusted"));
}

}  // namespace
}  // namespace limber
