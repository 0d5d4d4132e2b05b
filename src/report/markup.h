// Text for pages: escaped, and numbers as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace limber {

// Safe between tags and inside double quotes, in HTML and in XML. What is no UTF-8, or no character that XML
// allows, becomes U+FFFD.
std::string escape_markup(std::string_view text);

std::string base64(std::string_view bytes);  // for images inside a page

std::string duration_text(double seconds);   // "0.42 s", "12.3 s", "4 min 05 s", "3 h 20 min"
std::string step_time_text(double seconds);  // of one step: "1.25 ms", "0.31 s"
std::string percent_text(double fraction);   // "45.3 %", never parted at the end of a line
std::string size_text(double bytes);         // "24.0 MiB"

// Marks of an axis: multiples of 1, 2 or 5 times a power of ten.
struct Ticks {
  double low = 0, high = 1;  // of the axis
  double step = 1;
  std::vector<double> at;  // inside [low, high], ascending
  std::string text(double value) const;
};

enum class TickRange : uint8_t {
  kRound,  // the axis ends at marks, at or beyond `low` and `high`
  kTight,  // it ends where it is told to
};
// About `count` marks for values from `low` to `high`. A range that is empty or no numbers is replaced by one
// that can be drawn. `whole`: marks only at whole numbers.
Ticks nice_ticks(double low, double high, int count, TickRange range = TickRange::kRound, bool whole = false);

}  // namespace limber
