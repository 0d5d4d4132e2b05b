#include "report/svg.h"

#include <fmt/core.h>

#include <algorithm>

namespace limber {
namespace {

constexpr size_t kPalette = 7;

}  // namespace

double text_width(std::string_view text) { return 7.2 * static_cast<double>(text.size()); }

double PlotScale::operator()(double value) const {
  const double share = (value - from_low) / (from_high - from_low);
  return to_low + std::clamp(share, 0.0, 1.0) * (to_high - to_low);
}

SvgCanvas::SvgCanvas(std::string_view title, double height) : title_(title), height_(height) {}

void SvgCanvas::line(std::string_view css, double x1, double y1, double x2, double y2) {
  body_ += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", css,
                       x1, y1, x2, y2);
}

void SvgCanvas::rect(std::string_view css, double x, double y, double width, double height) {
  body_ += fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
                       css, x, y, width, height);
}

void SvgCanvas::text(std::string_view css, double x, double y, std::string_view text) {
  body_ +=
      fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", css, x, y, escape_markup(text));
}

std::string SvgCanvas::svg() const {
  return fmt::format(
      "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "aria-label=\"{}\">\n{}</svg>\n",
      kPlotWidth, height_, escape_markup(title_), body_);
}

void draw_x_axis(SvgCanvas& canvas, const PlotArea& area, const Ticks& ticks, std::string_view label,
                 bool grid) {
  const PlotScale x{ticks.low, ticks.high, area.left, area.right};
  double free_from = 0;
  for (const double value : ticks.at) {
    if (grid) canvas.line("grid", x(value), area.top, x(value), area.bottom);
    canvas.line("axis", x(value), area.bottom, x(value), area.bottom + 4);
    const std::string text = ticks.text(value);
    const double half = text_width(text) / 2, middle = std::min(x(value), kPlotWidth - half - 2);
    if (middle - half < free_from) continue;
    canvas.text("tick middle", middle, area.bottom + 18, text);
    free_from = middle + half + 6;
  }
  canvas.line("axis", area.left, area.bottom, area.right, area.bottom);
  canvas.text("label middle", (area.left + area.right) / 2, area.bottom + 38, label);
}

void draw_y_axis(SvgCanvas& canvas, const PlotArea& area, const Ticks& ticks, std::string_view label) {
  const PlotScale y{ticks.low, ticks.high, area.bottom, area.top};
  for (const double value : ticks.at) {
    canvas.line("grid", area.left, y(value), area.right, y(value));
    canvas.text("tick end", area.left - 7, y(value) + 4, ticks.text(value));
  }
  canvas.text("label", 4, area.top - 17, label);
}

std::string stroke_class(size_t colour) { return fmt::format("s{}", colour % kPalette); }
std::string fill_class(size_t colour) { return fmt::format("f{}", colour % kPalette); }

std::string svg_mark(size_t colour, double x, double y, std::string_view hint) {
  constexpr const char* kShapes[] = {"m-4.4 0a4.4 4.4 0 1 0 8.8 0a4.4 4.4 0 1 0-8.8 0z", "m-4-4h8v8h-8z",
                                     "m0-5.4l5.2 9h-10.4z", "m0-5.6l5.6 5.6l-5.6 5.6l-5.6-5.6z"};
  const std::string title = hint.empty() ? "" : fmt::format("<title>{}</title>", escape_markup(hint));
  return fmt::format("<path class=\"mark {}\" d=\"M{:.1f} {:.1f}{}\">{}</path>", fill_class(colour), x, y,
                     kShapes[colour % std::size(kShapes)], title);
}

}  // namespace limber
