#include <fmt/core.h>

#include <algorithm>

#include "report/svg.h"

namespace limber {
namespace {

constexpr double kLeft = 150, kTop = 40;  // pixels, for names of rows and for marks
constexpr double kLabelRoom = 13;         // pixels of a line of text

// Tall enough to see every row, low enough to see them together.
double row_height(size_t rows) {
  const auto count = static_cast<double>(std::max<size_t>(rows, 1));
  return std::max(std::clamp(640 / count, 3.0, 16.0) * std::min(1.0, 1500 / (3 * count)), 0.5);
}

// The first `depth` parts of a name such as "layer3.0.conv1.weight".
std::string_view name_start(std::string_view name, size_t depth) {
  size_t at = 0;
  for (size_t k = 0; k < depth; ++k) {
    at = name.find_first_of("./", at + 1);
    if (at == std::string_view::npos) return name;
  }
  return name.substr(0, at);
}

struct RowLabel {
  size_t row = 0;
  std::string text;
};

std::vector<RowLabel> group_labels(const std::vector<HeatMap::Row>& rows, size_t depth) {
  std::vector<RowLabel> labels;
  for (size_t r = 0; r < rows.size(); ++r) {
    const std::string_view start = name_start(rows[r].name, depth);
    if (labels.empty() || labels.back().text != start) labels.push_back({r, std::string(start)});
  }
  return labels;
}

// Every name where there is room; otherwise the finest groups of names that leave room for one another.
std::vector<RowLabel> row_labels(const std::vector<HeatMap::Row>& rows, double height) {
  std::vector<RowLabel> labels;
  if (height >= kLabelRoom - 2) {
    for (size_t r = 0; r < rows.size(); ++r) labels.push_back({r, rows[r].name});
    return labels;
  }
  const double room = height * static_cast<double>(rows.size()) / kLabelRoom;
  for (size_t depth = 3; depth > 0; --depth) {
    labels = group_labels(rows, depth);
    if (static_cast<double>(labels.size()) <= room) break;
  }
  return labels;
}

std::string fitted(const std::string& text) {
  constexpr size_t kMost = 20;  // characters in kLeft pixels
  if (text.size() <= kMost) return text;
  size_t from = text.size() - (kMost - 1);
  while (from < text.size() && (static_cast<uint8_t>(text[from]) & 0xC0U) == 0x80U) ++from;
  return "\xE2\x80\xA6" + text.substr(from);
}

void draw_labels(SvgCanvas& canvas, const HeatMap& map, const PlotArea& area, double height) {
  double free_from = 0;
  for (const RowLabel& label : row_labels(map.rows, height)) {
    const double top = area.top + height * static_cast<double>(label.row);
    const double y = top + std::min(height / 2 + 4, 10.0);
    if (y < free_from && height < kLabelRoom - 2) continue;
    if (height < kLabelRoom - 2) canvas.line("axis", area.left - 6, top, area.left - 1, top);
    canvas.text("tick end", area.left - 9, y, fitted(label.text));
    free_from = y + kLabelRoom;
  }
}

void draw_row(SvgCanvas& canvas, const HeatMap& map, const HeatMap::Row& row, const PlotScale& x, double y,
              double height) {
  canvas.raw(fmt::format("<g><title>{}</title>", escape_markup(row.hint)));
  canvas.rect("h0", x.to_low, y, x.to_high - x.to_low, height);
  std::string paths[kHeatChosen + 1];
  const size_t columns = std::min(row.levels.size(), map.edges.size() - 1);
  for (size_t c = 0, end = 0; c < columns; c = end) {
    for (end = c + 1; end < columns && row.levels[end] == row.levels[c]; ++end) {
    }
    const double from = x(map.edges[c]), width = x(map.edges[end]) - from;
    paths[std::min(row.levels[c], kHeatChosen)] +=
        fmt::format("M{:.1f} {:.2f}h{:.1f}v{:.2f}h-{:.1f}z", from, y, width, height, width);
  }
  for (size_t level = 1; level <= kHeatChosen; ++level) {
    if (!paths[level].empty()) canvas.raw(fmt::format("<path class=\"h{}\" d=\"{}\"/>", level, paths[level]));
  }
  canvas.raw("</g>\n");
}

void draw_marks(SvgCanvas& canvas, const HeatMap& map, const PlotArea& area, const PlotScale& x) {
  double free_from = area.left;
  for (const PlotPoint& mark : map.marks) {
    const double at = x(mark.x);
    canvas.line("axis", at, area.top - 5, at, area.top - 1);
    const double half = 3.6 * static_cast<double>(mark.hint.size());
    const double middle = std::min(at, kPlotWidth - half - 2);
    if (middle - half < free_from) continue;
    canvas.text("tick middle", middle, area.top - 9, mark.hint);
    free_from = middle + half + 8;
  }
}

std::string heat_legend(const HeatMap& map) {
  std::string items;
  for (const auto& [level, text] : map.legend) {
    items += fmt::format(
        "<li><svg class=\"key\" viewBox=\"0 0 30 14\" aria-hidden=\"true\"><rect class=\"h{} framed\" "
        "x=\"1\" y=\"1\" "
        "width=\"28\" height=\"12\"/></svg>{}</li>\n",
        level, escape_markup(text));
  }
  return items.empty() ? "" : "<ul class=\"legend\">\n" + items + "</ul>\n";
}

}  // namespace

std::string draw_heat_map(const HeatMap& map) {
  if (map.rows.empty() || map.edges.size() < 2) return {};
  const double height = row_height(map.rows.size());
  const PlotArea area{kLeft, kTop, kPlotWidth - 16, kTop + height * static_cast<double>(map.rows.size())};
  const Ticks ticks = nice_ticks(map.edges.front(), map.edges.back(), 6, TickRange::kTight, /*whole=*/true);
  SvgCanvas canvas(map.title, area.bottom + 46);
  const PlotScale x{ticks.low, ticks.high, area.left, area.right};
  canvas.raw("<g class=\"cells\">\n");
  for (size_t r = 0; r < map.rows.size(); ++r)
    draw_row(canvas, map, map.rows[r], x, area.top + height * static_cast<double>(r), height);
  canvas.raw("</g>\n");
  draw_labels(canvas, map, area, height);
  draw_marks(canvas, map, area, x);
  draw_x_axis(canvas, area, ticks, map.x_label, /*grid=*/false);
  canvas.text("label", 4, area.top - 9, map.top_label);
  canvas.text("label", 4, area.bottom + 16, map.bottom_label);
  return canvas.svg() + heat_legend(map);
}

}  // namespace limber
