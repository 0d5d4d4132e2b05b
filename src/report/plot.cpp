#include "report/plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/svg.h"

namespace limber {
namespace {

constexpr double kLineHeight = 320, kScatterHeight = 440;  // pixels; a scatter's area is square
constexpr size_t kMostMarks = 24;                          // of a series; more would hide the line
constexpr size_t kMostPoints = 1200;                       // of a series; more than there are pixels

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

// The picture of a series in a legend, 30 by 14.
std::string series_key(const PlotSeries& series) {
  const bool loose = series.style == SeriesStyle::kPoints;
  const bool marked = loose || series.style == SeriesStyle::kLine;
  const std::string line =
      fmt::format("<path class=\"{} {}\" d=\"M1 7H29\"/>", dash_class(series), stroke_class(series.colour));
  return (loose ? "" : line) + (marked ? svg_mark(series.colour, 15, 7, "") : "");
}

std::string legend_item(const std::string& key, const std::string& name) {
  return fmt::format("<li><svg class=\"key\" viewBox=\"0 0 30 14\" aria-hidden=\"true\">{}</svg>{}</li>\n",
                     key, escape_markup(name));
}

std::string legend_list(const std::string& items) {
  return items.empty() ? "" : "<ul class=\"legend\">\n" + items + "</ul>\n";
}

std::string line_legend(const std::vector<PlotSeries>& all) {
  std::string items;
  for (const PlotSeries& series : all) {
    if (!series.name.empty()) items += legend_item(series_key(series), series.name);
  }
  return legend_list(items);
}

void draw_span(SvgCanvas& canvas, const PlotSpan& span, const PlotArea& area, const PlotScale& x) {
  const double left = x(span.from), right = x(span.to);
  canvas.rect("shade", left, area.top, right - left, area.bottom - area.top);
  canvas.text("tick middle", (left + right) / 2, area.top + 14, span.name);
}

// Axes and series on the upper kLineHeight of the canvas. False where there is no point to draw.
bool draw_lines_on(SvgCanvas& canvas, const LinePlot& plot) {
  std::vector<std::vector<PlotPoint>> points;
  ValueRange xs, ys;
  for (const PlotSeries& series : plot.series) {
    points.push_back(thinned(series.points));
    for (const PlotPoint& p : points.back()) xs.add(p.x), ys.add(p.y);
  }
  if (xs.empty()) return false;
  const PlotArea area{52, 38, kPlotWidth - 16, kLineHeight - 46};
  const Ticks x_ticks = axis_ticks(plot.x, xs, 8, TickRange::kTight);
  const Ticks y_ticks = axis_ticks(plot.y, ys, 6, TickRange::kRound);
  const PlotScale x{x_ticks.low, x_ticks.high, area.left, area.right};
  for (const PlotSpan& span : plot.shaded) draw_span(canvas, span, area, x);
  draw_y_axis(canvas, area, y_ticks, plot.y.label);
  draw_x_axis(canvas, area, x_ticks, plot.x.label, /*grid=*/false);
  const PlotScale y{y_ticks.low, y_ticks.high, area.bottom, area.top};
  for (size_t i = 0; i < plot.series.size(); ++i) draw_series(canvas, plot.series[i], points[i], x, y);
  return true;
}

}  // namespace

std::string draw_lines(const LinePlot& plot) {
  SvgCanvas canvas(plot.title, kLineHeight);
  if (!draw_lines_on(canvas, plot)) return {};
  return canvas.svg() + line_legend(plot.series);
}

PlotPicture draw_lines_alone(const LinePlot& plot) {
  constexpr double kRow = 20, kLeft = 52, kGap = 18, kKeyWidth = 36;
  // Where the keys go: in rows, as many beside each other as fit.
  struct Place {
    const PlotSeries* series;
    double x, y;
  };
  std::vector<Place> places;
  double x = kLeft, y = kLineHeight + 4;
  for (const PlotSeries& series : plot.series) {
    if (series.name.empty()) continue;
    const double width = kKeyWidth + text_width(series.name);
    if (x > kLeft && x + width > kPlotWidth) x = kLeft, y += kRow;
    places.push_back({&series, x, y});
    x += width + kGap;
  }
  const double height = y + (places.empty() ? 0 : kRow);
  SvgCanvas canvas(plot.title, height);
  if (!draw_lines_on(canvas, plot)) return {};
  for (const Place& at : places) {
    canvas.raw(fmt::format("<g transform=\"translate({:.1f} {:.1f})\">{}</g>\n", at.x, at.y,
                           series_key(*at.series)));
    canvas.text("key", at.x + kKeyWidth, at.y + 11.5, at.series->name);
  }
  return {canvas.svg(), height};
}

std::string draw_bars(const BarPlot& plot) {
  ValueRange values;
  for (const BarPlot::Group& group : plot.groups) {
    for (const PlotPoint& bar : group.bars) {
      if (std::isfinite(bar.y)) values.add(bar.y);
    }
  }
  if (values.empty()) return {};
  values.add(0);
  const PlotArea area{52, 38, kPlotWidth - 16, kLineHeight - 46};
  const Ticks ticks = axis_ticks(plot.y, values, 6, TickRange::kRound);
  SvgCanvas canvas(plot.title, kLineHeight);
  draw_y_axis(canvas, area, ticks, plot.y.label);
  const PlotScale y{ticks.low, ticks.high, area.bottom, area.top};
  const double room = (area.right - area.left) / static_cast<double>(plot.groups.size());
  for (size_t g = 0; g < plot.groups.size(); ++g) {
    const BarPlot::Group& group = plot.groups[g];
    const double width = 0.7 * room / static_cast<double>(std::max<size_t>(1, group.bars.size()));
    const double left = area.left + room * (static_cast<double>(g) + 0.15);
    for (size_t i = 0; i < group.bars.size(); ++i) {
      const PlotPoint& bar = group.bars[i];
      if (!std::isfinite(bar.y)) continue;
      canvas.raw(
          fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
                      "height=\"{:.1f}\"><title>{}</title></rect>\n",
                      fill_class(i), left + width * static_cast<double>(i), y(bar.y),
                      std::max(1.0, width - 2), area.bottom - y(bar.y), escape_markup(bar.hint)));
    }
    canvas.text("tick middle", left + 0.35 * room, area.bottom + 18, group.name);
  }
  canvas.line("axis", area.left, area.bottom, area.right, area.bottom);
  std::string items;
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const std::string key =
        fmt::format("<rect class=\"{}\" x=\"9\" y=\"1\" width=\"12\" height=\"12\"/>", fill_class(i));
    items += legend_item(key, plot.series[i]);
  }
  return canvas.svg() + legend_list(items);
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
