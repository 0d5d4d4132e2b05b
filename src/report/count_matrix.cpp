#include <fmt/core.h>

#include <algorithm>

#include "report/svg.h"

namespace limber {
namespace {

constexpr double kMatrixLeft = 150, kMatrixTop = 26, kMatrixRight = 10;  // pixels around the cells
constexpr double kLargestCell = 44;     // pixels: two classes should not fill the screen
constexpr double kRoomForNumbers = 24;  // pixels: three digits
constexpr size_t kLongestName = 16;     // characters that fit left of the cells

// Mistakes grow in strength with their share of the row; what is right has a colour of its own.
int level_of(int64_t count, int64_t total, bool right) {
  if (count == 0) return 0;
  if (right) return kHeatChosen;
  const double share = static_cast<double>(count) / static_cast<double>(std::max<int64_t>(total, 1));
  constexpr double kLimits[] = {0.02, 0.05, 0.1, 0.25};  // shares at which the next level begins
  int level = 1;
  for (const double limit : kLimits) level += share > limit ? 1 : 0;
  return level;
}

std::string start_of(const std::string& text) {
  if (text.size() <= kLongestName) return text;
  size_t end = kLongestName - 1;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "\xE2\x80\xA6";
}

void draw_matrix_row(SvgCanvas& canvas, const CountMatrix& matrix, size_t r, double cell) {
  const double y = kMatrixTop + cell * static_cast<double>(r);
  const double base = y + cell / 2 + 4;
  canvas.text("tick end", kMatrixLeft - 32, base, start_of(matrix.names[r]));
  canvas.text("tick end", kMatrixLeft - 8, base, fmt::format("{}", r + 1));
  for (size_t c = 0; c < matrix.names.size(); ++c) {
    const int64_t count = matrix.counts[r][c];
    const double x = kMatrixLeft + cell * static_cast<double>(c);
    canvas.raw(fmt::format("<g><title>{}</title>",
                           escape_markup(fmt::format("{} of {} {} taken for {}", count, matrix.row_totals[r],
                                                     matrix.names[r], matrix.names[c]))));
    canvas.rect(fmt::format("h{} framed", level_of(count, matrix.row_totals[r], r == c)), x, y, cell, cell);
    if (count > 0 && cell >= kRoomForNumbers)
      canvas.text(r == c ? "middle on6" : "middle", x + cell / 2, y + cell / 2 + 4, fmt::format("{}", count));
    canvas.raw("</g>\n");
  }
}

}  // namespace

std::string draw_counts(const CountMatrix& matrix) {
  if (matrix.names.empty()) return "";
  const auto count = static_cast<double>(matrix.names.size());
  const double cell = std::min((kPlotWidth - kMatrixLeft - kMatrixRight) / count, kLargestCell);
  SvgCanvas canvas(matrix.title, kMatrixTop + cell * count + 8);
  const size_t every = cell >= kRoomForNumbers ? 1 : 2;  // numbers of two digits side by side
  for (size_t c = 0; c < matrix.names.size(); c += every)
    canvas.text("tick middle", kMatrixLeft + cell * (static_cast<double>(c) + 0.5), kMatrixTop - 8,
                fmt::format("{}", c + 1));
  for (size_t r = 0; r < matrix.names.size(); ++r) draw_matrix_row(canvas, matrix, r, cell);
  return canvas.svg();
}

}  // namespace limber
