// Drawing on a rectangle with axes: what the plots share.
#pragma once

#include <string>
#include <string_view>

#include "report/markup.h"
#include "report/plot.h"

namespace limber {

inline constexpr double kPlotWidth = 560;

// Room that a text needs, about.
double text_width(std::string_view text);

// From values to places on the picture.
struct PlotScale {
  double from_low = 0, from_high = 1, to_low = 0, to_high = 1;
  double operator()(double value) const;
};

// A picture kPlotWidth wide with an area for data.
class SvgCanvas {
 public:
  SvgCanvas(std::string_view title, double height);

  void raw(std::string_view markup) { body_ += markup; }
  void line(std::string_view css, double x1, double y1, double x2, double y2);
  void rect(std::string_view css, double x, double y, double width, double height);
  void text(std::string_view css, double x, double y, std::string_view text);
  std::string svg() const;  // the whole element

 private:
  std::string title_, body_;
  double height_;
};

// Where the data goes.
struct PlotArea {
  double left = 0, top = 0, right = 0, bottom = 0;
};

void draw_x_axis(SvgCanvas& canvas, const PlotArea& area, const Ticks& ticks, std::string_view label,
                 bool grid);
void draw_y_axis(SvgCanvas& canvas, const PlotArea& area, const Ticks& ticks, std::string_view label);

// One mark, "<path ...>": a shape of its own for each of the first colours. With `hint` shown on hover.
std::string svg_mark(size_t colour, double x, double y, std::string_view hint);
// The classes that give a palette colour to strokes and fills.
std::string stroke_class(size_t colour);
std::string fill_class(size_t colour);

}  // namespace limber
