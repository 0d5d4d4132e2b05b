#include "report/picture.h"

#include <fmt/core.h>

#include <algorithm>

#include "report/markup.h"
#include "report/page.h"
#include "report/svg.h"

namespace limber {

std::string svg_picture(std::string_view title, const std::vector<LinePlot>& plots) {
  constexpr double kEdge = 16, kHeading = 30, kGap = 28;  // pixels around, above and between plots
  constexpr std::string_view kElement = "<svg ";
  std::string body;
  double x = kEdge, tallest = 0;
  for (const LinePlot& plot : plots) {
    const PlotPicture picture = draw_lines_alone(plot);
    if (picture.svg.empty()) continue;
    body += fmt::format("<text class=\"heading\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + 4, kEdge + 14,
                        escape_markup(plot.title));
    body += fmt::format("<svg x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" {}", x,
                        kEdge + kHeading, kPlotWidth, picture.height, picture.svg.substr(kElement.size()));
    x += kPlotWidth + kGap;
    tallest = std::max(tallest, picture.height);
  }
  const double width = std::max(x - kGap + kEdge, 2 * kEdge), height = tallest + kHeading + 2 * kEdge;
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\">\n<style>{3}"
      "svg text {{ font-family: system-ui, -apple-system, \"Segoe UI\", Roboto, \"DejaVu Sans\", sans-serif; "
      "}} "
      "svg .heading {{ font-size: 17px; font-weight: 600; }} .paper {{ fill: var(--paper); }}\n</style>\n"
      "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n{4}</svg>\n",
      width, height, escape_markup(title), drawing_style(), body);
}

}  // namespace limber
