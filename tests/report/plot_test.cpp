#include "report/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "report/markup.h"
#include "report/page.h"
#include "tests/report/xml.h"

namespace limber {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Escape, LeavesNothingThatMarkupUnderstands) {
  EXPECT_EQ(escape_markup("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
  EXPECT_EQ(escape_markup("</script><img src=x onerror=1>").find('<'), std::string::npos);
  EXPECT_EQ(escape_markup("caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x99\x82"),
            "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x99\x82");
}

TEST(Escape, ReplacesWhatIsNoCharacter) {
  const std::string odd = "\xEF\xBF\xBD";
  EXPECT_EQ(escape_markup(std::string_view("a\0b", 3)), "a" + odd + "b");
  EXPECT_EQ(escape_markup("\x1B[1m\n"), odd + "[1m\n");
  EXPECT_EQ(escape_markup("x\xFFy"), "x" + odd + "y");
  EXPECT_EQ(escape_markup("\xC3"), odd);                      // cut off
  EXPECT_EQ(escape_markup("\xC0\xBC"), odd + odd);            // '<' in two bytes
  EXPECT_EQ(escape_markup("\xED\xA0\x80"), odd + odd + odd);  // half of a pair
  EXPECT_EQ(escape_markup("\xEF\xBF\xBF"), odd + odd + odd);  // U+FFFF
  EXPECT_EQ(escape_markup("\xF4\x90\x80\x80"), odd + odd + odd + odd);
}

TEST(Numbers, AreAsPeopleReadThem) {
  EXPECT_EQ(duration_text(0.4249), "0.42 s");
  EXPECT_EQ(duration_text(12.34), "12.3 s");
  EXPECT_EQ(duration_text(245), "4 min 05 s");
  EXPECT_EQ(duration_text(12000), "3 h 20 min");
  EXPECT_EQ(duration_text(kNaN), "?");
  EXPECT_EQ(step_time_text(0.00125), "1.25 ms");
  EXPECT_EQ(step_time_text(0.317), "317 ms");
  EXPECT_EQ(step_time_text(1.5), "1.50 s");
  EXPECT_EQ(percent_text(0.4526), "45.3\xC2\xA0%");
  EXPECT_EQ(size_text(512), "512 B");
  EXPECT_EQ(size_text(25182208), "24.0 MiB");
}

TEST(TicksOfAnAxis, AreRoundNumbersAroundTheValues) {
  const Ticks ticks = nice_ticks(0.13, 0.87, 6);
  EXPECT_DOUBLE_EQ(ticks.step, 0.2);
  ASSERT_EQ(ticks.at.size(), 6U);
  EXPECT_EQ(ticks.text(ticks.at[0]), "0");
  EXPECT_EQ(ticks.text(ticks.at[1]), "0.2");
  EXPECT_EQ(ticks.text(ticks.at[5]), "1.0");
  const Ticks percent = nice_ticks(63, 91, 6);
  EXPECT_EQ(percent.text(percent.at.front()), "60");
  EXPECT_EQ(percent.text(percent.at.back()), "95");
}

TEST(TicksOfAnAxis, StayInsideATightRange) {
  const Ticks ticks = nice_ticks(16, 377, 8, TickRange::kTight);
  EXPECT_EQ(ticks.low, 16);
  EXPECT_EQ(ticks.high, 377);
  EXPECT_EQ(ticks.at.front(), 50);
  EXPECT_EQ(ticks.at.back(), 350);
  const Ticks whole = nice_ticks(1, 3, 8, TickRange::kTight, true);
  EXPECT_EQ(whole.at, (std::vector<double>{1, 2, 3}));
}

TEST(TicksOfAnAxis, ExistForAnyRange) {
  const double values[] = {0, 1, -1, 1e-300, 1e300, -1e300, 5e-7, 123456789, kNaN, kInfinity, -kInfinity};
  for (const double low : values) {
    for (const double high : values) {
      for (const TickRange range : {TickRange::kRound, TickRange::kTight}) {
        const Ticks ticks = nice_ticks(low, high, 6, range);
        EXPECT_LT(ticks.low, ticks.high) << low << " " << high;
        EXPECT_TRUE(std::isfinite(ticks.low) && std::isfinite(ticks.high)) << low << " " << high;
        EXPECT_LE(ticks.at.size(), 20U) << low << " " << high;
        for (const double at : ticks.at) EXPECT_LT(ticks.text(at).size(), 20U) << ticks.text(at);
      }
    }
  }
}

TEST(Lines, DrawEverySeriesWithMarksAndLegend) {
  LinePlot plot{.title = "a < b", .x = {.label = "x & y"}, .y = {.label = "\"z\""}};
  plot.series.push_back(
      {.name = "<one>", .points = {{0, 1, "first"}, {1, 2, "<second>"}, {2, kNaN, "none"}}});
  plot.series.push_back(
      {.name = "two", .colour = 1, .style = SeriesStyle::kDashed, .points = {{0, 3, "third"}}});
  const std::string drawn = draw_lines(plot);
  EXPECT_EQ(xml_problem("<div>" + drawn + "</div>"), "");
  EXPECT_EQ(occurrences(drawn, "<title>"), 3U);
  EXPECT_EQ(occurrences(drawn, "<li>"), 2U);
  EXPECT_NE(drawn.find("&lt;one&gt;"), std::string::npos);
  EXPECT_EQ(drawn.find("nan"), std::string::npos);
}

TEST(Lines, OfNothingAreNothing) {
  EXPECT_EQ(draw_lines({}), "");
  LinePlot plot;
  plot.series.push_back({.name = "x", .points = {{kNaN, kInfinity, ""}}});
  EXPECT_EQ(draw_lines(plot), "");
  EXPECT_EQ(draw_scatter({}), "");
  EXPECT_EQ(draw_heat_map({}), "");
}

TEST(Lines, ThinOutWhatNoScreenShows) {
  LinePlot plot;
  plot.series.push_back({.name = "long"});
  for (int i = 0; i < 100'000; ++i) plot.series[0].points.push_back({i * 1.0, std::sin(i), "point"});
  const std::string drawn = draw_lines(plot);
  EXPECT_LT(drawn.size(), 300'000U);
  EXPECT_EQ(xml_problem("<div>" + drawn + "</div>"), "");
}

TEST(Scatter, HasOneRangeForBothAxes) {
  const ScatterPlot plot{.title = "t", .points = {{1, 5, "low"}, {10, 2, "high"}}};
  const std::string drawn = draw_scatter(plot);
  EXPECT_EQ(xml_problem(drawn), "");
  EXPECT_EQ(occurrences(drawn, ">10</text>"), 2U);
  EXPECT_EQ(occurrences(drawn, "class=\"reference\""), 1U);
  EXPECT_EQ(occurrences(drawn, "<title>"), 2U);
}

HeatMap map_of(size_t rows, size_t columns) {
  HeatMap map{.title = "map", .x_label = "step"};
  for (size_t r = 0; r < rows; ++r) {
    map.rows.push_back({"layer" + std::to_string(r / 12) + "." + std::to_string(r) + ".weight", "row", {}});
    for (size_t c = 0; c < columns; ++c)
      map.rows.back().levels.push_back(static_cast<uint8_t>((r + c) % (kHeatChosen + 1)));
  }
  for (size_t c = 0; c <= columns; ++c) map.edges.push_back(static_cast<double>(10 * c));
  map.marks = {{0, 0, "epoch 1"}, {1, 0, "epoch 2"}, {20, 0, "epoch 3"}};
  map.legend = {{kHeatChosen, "chosen"}, {0, "<not>"}};
  return map;
}

TEST(Heat, HasARowForEveryTensorAndLabelsThatDoNotOverlap) {
  for (const size_t rows : {1U, 20U, 157U, 400U, 3000U}) {
    const std::string drawn = draw_heat_map(map_of(rows, 6));
    EXPECT_EQ(xml_problem("<div>" + drawn + "</div>"), "") << rows;
    EXPECT_EQ(occurrences(drawn, "<g><title>row</title>"), rows);
    EXPECT_LE(occurrences(drawn, "class=\"tick end\""), 150U) << rows;
    EXPECT_GE(occurrences(drawn, "class=\"tick end\""), std::min<size_t>(rows, 10)) << rows;
  }
}

TEST(Heat, JoinsCellsOfOneLevel) {
  HeatMap map{.rows = {{"w", "w", {6, 6, 6, 0}}}, .edges = {0, 1, 2, 3, 4}};
  const std::string drawn = draw_heat_map(map);
  EXPECT_EQ(occurrences(drawn, "class=\"h6\""), 1U);
  EXPECT_EQ(occurrences(drawn, "h-"), 1U) << drawn;
}

TEST(Page, NeedsNothingElseAndIsWellFormed) {
  HtmlPage page("a & b");
  page.text("<b>");
  page.note("odd");
  page.section("part");
  page.table({{{"x"}, {"y", true, "a \"hint\""}}, {{"<1>", "2"}}});
  page.folded("more", {{{"x"}}, {{"1"}}});
  page.begin_columns();
  page.figure("one", "", "caption");
  page.next_column();
  page.figure("two", draw_scatter({.points = {{1, 1, ""}}}), "");
  page.end_columns();
  const std::string html = page.html("the end");
  const std::string body = html.substr(html.find("<html"));
  EXPECT_EQ(xml_problem(body), "");
  for (const char* part : {"<script", "<link", "url(", "@import", "src="})
    EXPECT_EQ(html.find(part), std::string::npos) << part;
  EXPECT_NE(html.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_NE(html.find("width=device-width"), std::string::npos);
}

TEST(Bars, StandInGroupsFromZero) {
  BarPlot plot{.title = "t", .y = {.label = "ms"}, .series = {"a<", "b"}};
  EXPECT_EQ(draw_bars(plot), "");
  plot.groups = {{"one", {{0, 2, "two"}, {0, kNaN, ""}}}, {"other", {{0, 1, "one"}, {0, 4, "four"}}}};
  const std::string drawing = draw_bars(plot);
  EXPECT_EQ(xml_problem("<p>" + drawing + "</p>"), "");
  EXPECT_EQ(occurrences(drawing, "<rect class=\"f"), 3U + 2U) << "bars, and keys of the legend";
  EXPECT_EQ(occurrences(drawing, "a&lt;"), 1U);
  EXPECT_EQ(occurrences(drawing, ">0<"), 1U);
}

TEST(Lines, AloneHaveTheirLegendInside) {
  LinePlot plot{.title = "t"};
  EXPECT_EQ(draw_lines_alone(plot).svg, "");
  plot.series = {{.name = "a", .points = {{0, 0, ""}, {1, 1, ""}}},
                 {.name = std::string(60, 'b'), .points = {{0, 1, ""}}}};
  const PlotPicture wide = draw_lines_alone(plot);
  EXPECT_EQ(xml_problem(wide.svg), "");
  EXPECT_EQ(occurrences(wide.svg, "<svg"), 1U);
  plot.series.pop_back();
  EXPECT_LT(draw_lines_alone(plot).height, wide.height) << "a long name needs a row of its own";
}

TEST(Base64, IsThatOfTheStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xFF\xFE"), "//4=");
}

}  // namespace
}  // namespace limber
