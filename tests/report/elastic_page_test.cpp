#include "report/elastic_page.h"

#include <gtest/gtest.h>

#include "tests/report/xml.h"

namespace limber {
namespace {

std::string sound_page(const ElasticReport& report) {
  const std::string page = elastic_page(report);
  EXPECT_EQ(xml_problem(page.substr(page.find("<html"))), "");
  return page;
}

ElasticReport some_report() {
  ElasticReport report{.folder = "shapes<1>", .blocks = 3, .variants = 12};
  report.alternatives = {{"layer1", "shrink50", 1, 0.125}};
  VariantPoint original{.name = "original",
                        .kind = VariantPoint::Kind::kOriginal,
                        .predicted_s = 0.01,
                        .measured_s = 0.01,
                        .accuracy = 0.9,
                        .images = 500};
  VariantPoint other{.name = "layer1=shrink50", .predicted_s = 0.006, .accuracy = 0.85, .images = 500};
  report.machines = {{"500 images on a machine", {other, original}, {other, original}}};
  return report;
}

TEST(ElasticPage, ShowsVariantsAndAlternatives) {
  const std::string page = sound_page(some_report());
  for (const char* part : {"shapes&lt;1&gt;", "3 blocks, 1 alternatives, 12 variants",
                           "500 images on a machine", "layer1=shrink50", "6.00 ms (predicted)", "0.1250"})
    EXPECT_TRUE(has(page, part)) << part;
  EXPECT_FALSE(has(page, "Searches") || has(page, "<h2>Exits")) << "none is recorded";
  EXPECT_TRUE(has(sound_page({.folder = "new"}), "No variant has been evaluated yet"));
}

TEST(ElasticPage, ShowsWhatWasSearchedForAndFound) {
  ElasticReport report = some_report();
  SearchRecord search{.judged = {"500 images of the test part of photos", 500, "a machine"},
                      .limit_s = 0.006};
  search.variant = "layer1=shrink50,<2>";
  search.within = true;
  search.measured_s = 0.005;
  search.accuracy = 0.85;
  search.original_s = 0.01;
  search.original_accuracy = 0.9;
  search.evaluated = 40;
  search.known = 2;
  search.seconds = 245;
  search.parts = {{"loading", 1}, {"evaluation", 181}};
  report.searches = {search};
  std::string page = sound_page(report);
  for (const char* part : {"Searches", "6.00 ms (60", "5.00 ms (50", ">42<", "4 min 05 s", "3 min 01 s",
                           "loading", "500 images of the test part of photos", "layer1=shrink50,&lt;2&gt;"})
    EXPECT_TRUE(has(page, part)) << part;
  EXPECT_FALSE(has(page, "not kept"));
  report.searches[0].within = false;
  EXPECT_TRUE(has(sound_page(report), "not kept"));
}

TEST(ElasticPage, ShowsExits) {
  ElasticReport report = some_report();
  ExitsRecord found{.judged = {"100 images of photos that were held out", 100, "a machine"}, .made = true};
  found.variant = "original?0.9";
  found.accuracy = 0.89;
  found.original_accuracy = 0.9;
  found.measured_s = 0.007;
  found.original_s = 0.01;
  found.exits = {{"first", 0.7, 0.25, 0.003}, {"second", 0.8, 0.5, 0.006}};
  report.exits = {found};
  const std::string page = sound_page(report);
  for (const char* part : {"Exits", "7.00 ms (70", "original?0.9", "first 25", "second 50", "held out"})
    EXPECT_TRUE(has(page, part)) << part;
}

}  // namespace
}  // namespace limber
