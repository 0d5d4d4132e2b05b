// Plots as inline SVG. Colours come from the classes of the page (page.h), so that a plot follows its theme;
// every text is escaped here. What is drawn is a function of the arguments alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace limber {

struct PlotPoint {
  double x = 0, y = 0;  // points that are no numbers are left out
  std::string hint;     // shown on hover
};

enum class SeriesStyle : uint8_t {
  kLine,       // with marks; of many points, at the last alone
  kDashed,     // without
  kReference,  // a thin grey line without marks
  kPoints,     // marks alone
};

struct PlotSeries {
  std::string name;   // in the legend; empty: not there
  size_t colour = 0;  // of the page's palette, which repeats; also decides the shape of the marks
  SeriesStyle style = SeriesStyle::kLine;
  std::vector<PlotPoint> points;  // in the order they are joined
};

struct PlotAxis {
  std::string label;
  bool whole = false;               // marks only at whole numbers
  bool zero = false;                // 0 is shown too
  std::optional<double> low, high;  // never shown below and above these
};

// A part of the x axis that is set apart, from top to bottom.
struct PlotSpan {
  double from = 0, to = 0;
  std::string name;  // written into it
};

struct LinePlot {
  std::string title;
  PlotAxis x, y;
  std::vector<PlotSeries> series;
  std::vector<PlotSpan> shaded;
};
// With its legend below. Empty where there is no point to draw.
std::string draw_lines(const LinePlot& plot);

// The same as one element with the legend inside it.
struct PlotPicture {
  std::string svg;
  double height = 0;  // it is kPlotWidth wide (svg.h)
};
PlotPicture draw_lines_alone(const LinePlot& plot);

// Groups of bars side by side, from 0 up.
struct BarPlot {
  struct Group {
    std::string name;
    std::vector<PlotPoint> bars;  // y counts; one for each series, in their colours
  };
  std::string title;
  PlotAxis y;
  std::vector<std::string> series;  // in the legend; the colour is the place in this list
  std::vector<Group> groups;
};
// With its legend below. Empty where there is no bar.
std::string draw_bars(const BarPlot& plot);

struct ScatterPlot {
  std::string title;
  PlotAxis x, y;  // both have the range of all values, so that the diagonal is where they are equal
  size_t colour = 0;
  std::vector<PlotPoint> points;
};
std::string draw_scatter(const ScatterPlot& plot);

// Rows of coloured cells, the first row on top. Level 0 is empty, kHeatChosen is in a colour of its own, what
// is between grows in strength.
inline constexpr uint8_t kHeatChosen = 6;
struct HeatMap {
  std::string title;
  std::string x_label, top_label, bottom_label;
  struct Row {
    std::string name, hint;
    std::vector<uint8_t> levels;  // one for each column, at most kHeatChosen
  };
  std::vector<Row> rows;
  std::vector<double> edges;  // ascending; one more than columns
  // Above the cells: places with a short text.
  std::vector<PlotPoint> marks;
  std::vector<std::pair<uint8_t, std::string>> legend;
};
std::string draw_heat_map(const HeatMap& map);

// What is taken for what: a square of counts with the same names on both sides. Empty without names.
struct CountMatrix {
  std::string title;
  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> counts;  // by row and column, as many as names
  std::vector<int64_t> row_totals;           // may be more than what the columns have
};
std::string draw_counts(const CountMatrix& matrix);

}  // namespace limber
