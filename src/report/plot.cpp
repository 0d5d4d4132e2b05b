#include "report/plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/svg.h"

namespace limber {
namespace {

constexpr double kLineHeight = 320, kScatterHeight = 440;
constexpr size_t kMostMarks = 24;     // of a series; more would hide the line
constexpr size_t kMostPoints = 1200;  // of a series; more than there are pixels

struct ValueRange {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

bool drawable(const PlotPoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

// At most kMostPoints of those that can be drawn, with the first and the last.
std::vector<PlotPoint> thinned(const std::vector<PlotPoint>& points) {
  std::vector<PlotPoint> good;
  std::copy_if(points.begin(), points.end(), std::back_inserter(good), drawable);
  if (good.size() <= kMostPoints) return good;
  std::vector<PlotPoint> kept;
  for (size_t k = 0; k < kMostPoints; ++k) kept.push_back(good[k * (good.size() - 1) / (kMostPoints - 1)]);
  return kept;
}

Ticks axis_ticks(const PlotAxis& axis, ValueRange values, int count, TickRange range) {
  if (axis.zero) values.add(0);
  Ticks ticks = nice_ticks(values.low, values.high, count, range, axis.whole);
  ticks.low = std::max(ticks.low, axis.low.value_or(ticks.low));
  ticks.high = std::min(ticks.high, axis.high.value_or(ticks.high));
  if (!(ticks.low < ticks.high)) return nice_ticks(values.low, values.high, count, range, axis.whole);
  std::erase_if(ticks.at, [&](double value) {
    return value < ticks.low - ticks.step * 1e-6 || value > ticks.high + ticks.step * 1e-6;
  });
  return ticks;
}

const char* dash_class(const PlotSeries& series) {
  if (series.style == SeriesStyle::kReference) return "reference";
  return series.style == SeriesStyle::kDashed ? "line dashed" : "line";
}

void draw_series(SvgCanvas& canvas, const PlotSeries& series, const std::vector<PlotPoint>& points,
                 const PlotScale& x, const PlotScale& y) {
  if (points.empty()) return;
  std::string path;
  for (const PlotPoint& p : points)
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(p.x), y(p.y));
  const bool loose = series.style == SeriesStyle::kPoints;
  if (!loose)
    canvas.raw(fmt::format("<path class=\"{} {}\" d=\"{}\"/>\n", dash_class(series),
                           stroke_class(series.colour), path));
  if (series.style == SeriesStyle::kReference) return;
  const bool marked = loose || (series.style == SeriesStyle::kLine && points.size() <= kMostMarks);
  const auto is_hint = [](const PlotPoint& p) { return !p.hint.empty(); };
  const auto from_end = std::find_if(points.rbegin(), points.rend(), is_hint);
  const PlotPoint* last_hint = from_end == points.rend() ? nullptr : &*from_end;
  for (const PlotPoint& p : points) {
    if (p.hint.empty()) continue;
    const bool last = &p == last_hint && series.style == SeriesStyle::kLine;
    if (marked || last || points.size() == 1) {
      canvas.raw(svg_mark(series.colour, x(p.x), y(p.y), p.hint) + "\n");
    } else {
      canvas.raw(fmt::format(
          "<circle class=\"hit\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"><title>{}</title></circle>\n", x(p.x),
          y(p.y), escape_markup(p.hint)));
    }
  }
}

std::string line_legend(const std::vector<PlotSeries>& all) {
  std::string items;
  for (const PlotSeries& series : all) {
    if (series.name.empty()) continue;
    const bool loose = series.style == SeriesStyle::kPoints;
    const bool marked = loose || series.style == SeriesStyle::kLine;
    const std::string line =
        fmt::format("<path class=\"{} {}\" d=\"M1 7H29\"/>", dash_class(series), stroke_class(series.colour));
    items += fmt::format(
        "<li><svg class=\"key\" viewBox=\"0 0 30 14\" aria-hidden=\"true\">{}{}</svg>{}</li>\n",
        loose ? "" : line, marked ? svg_mark(series.colour, 15, 7, "") : "", escape_markup(series.name));
  }
  return items.empty() ? "" : "<ul class=\"legend\">\n" + items + "</ul>\n";
}

}  // namespace

std::string draw_lines(const LinePlot& plot) {
  std::vector<std::vector<PlotPoint>> points;
  ValueRange xs, ys;
  for (const PlotSeries& series : plot.series) {
    points.push_back(thinned(series.points));
    for (const PlotPoint& p : points.back()) xs.add(p.x), ys.add(p.y);
  }
  if (xs.empty()) return {};
  const PlotArea area{52, 38, kPlotWidth - 16, kLineHeight - 46};
  const Ticks x_ticks = axis_ticks(plot.x, xs, 8, TickRange::kTight);
  const Ticks y_ticks = axis_ticks(plot.y, ys, 6, TickRange::kRound);
  SvgCanvas canvas(plot.title, kLineHeight);
  draw_y_axis(canvas, area, y_ticks, plot.y.label);
  draw_x_axis(canvas, area, x_ticks, plot.x.label, /*grid=*/false);
  const PlotScale x{x_ticks.low, x_ticks.high, area.left, area.right};
  const PlotScale y{y_ticks.low, y_ticks.high, area.bottom, area.top};
  for (size_t i = 0; i < plot.series.size(); ++i) draw_series(canvas, plot.series[i], points[i], x, y);
  return canvas.svg() + line_legend(plot.series);
}

std::string draw_scatter(const ScatterPlot& plot) {
  const std::vector<PlotPoint> points = thinned(plot.points);
  ValueRange values;
  for (const PlotPoint& p : points) values.add(p.x), values.add(p.y);
  if (values.empty()) return {};
  const PlotArea area{52, 38, kPlotWidth - 16, kScatterHeight - 46};
  const Ticks ticks = axis_ticks(plot.x, values, 6, TickRange::kRound);
  SvgCanvas canvas(plot.title, kScatterHeight);
  draw_y_axis(canvas, area, ticks, plot.y.label);
  draw_x_axis(canvas, area, ticks, plot.x.label, /*grid=*/true);
  canvas.line("reference", area.left, area.bottom, area.right, area.top);
  const PlotScale x{ticks.low, ticks.high, area.left, area.right};
  const PlotScale y{ticks.low, ticks.high, area.bottom, area.top};
  for (const PlotPoint& p : points) canvas.raw(svg_mark(plot.colour, x(p.x), y(p.y), p.hint) + "\n");
  return canvas.svg();
}

}  // namespace limber
