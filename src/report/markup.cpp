#include "report/markup.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace limber {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The bytes of the UTF-8 sequence `text` begins with; 0 where it is none, or one that XML does not allow.
size_t sequence_length(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  uint32_t code = first & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    if ((next & 0xC0U) != 0x80U) return 0;
    code = code << 6U | (next & 0x3FU);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  const bool control = code >= 0x80 && code < 0xA0;
  const bool allowed = code >= kSmallest[length] && code <= 0x10FFFF && !surrogate && !control;
  return allowed && (code & 0xFFFEU) != 0xFFFEU ? length : 0;
}

std::string_view entity_of(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const std::string_view entity = entity_of(text[0]);
    out += length == 0 ? kReplacement : entity.empty() ? text.substr(0, length) : entity;
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k)
      word = word << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string duration_text(double seconds) {
  if (!(seconds < 1e12)) return "?";
  if (seconds < 9.995) return fmt::format("{:.2f} s", seconds);
  if (seconds < 99.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  const int64_t minutes = (whole + 30) / 60;
  return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

std::string step_time_text(double seconds) {
  if (seconds < 0.09995) return fmt::format("{:.2f} ms", 1e3 * seconds);
  return seconds < 0.9995 ? fmt::format("{:.0f} ms", 1e3 * seconds) : fmt::format("{:.2f} s", seconds);
}

std::string percent_text(double fraction) { return fmt::format("{:.1f}\xC2\xA0%", 100 * fraction); }

std::string size_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (unit < 4 && bytes >= 1024) bytes /= 1024, ++unit;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string Ticks::text(double value) const {
  if (std::abs(value) < step * 1e-6) return "0";
  const double largest = std::max(std::abs(low), std::abs(high));
  if (largest >= 1e7 || step < 1e-5) return fmt::format("{:.4g}", value);
  const int digits = std::max(0, static_cast<int>(-std::floor(std::log10(step * 1.000001))));
  return fmt::format("{:.{}f}", value, digits);
}

Ticks nice_ticks(double low, double high, int count, TickRange range, bool whole) {
  constexpr double kLargest = 1e15;  // doubles up to here tell neighbouring marks apart
  low = std::isfinite(low) ? std::clamp(low, -kLargest, kLargest) : 0;
  high = std::isfinite(high) ? std::clamp(high, -kLargest, kLargest) : low + 1;
  if (high < low) std::swap(low, high);
  // Closer together than doubles can tell apart along an axis.
  const double smallest = std::max({std::abs(low), std::abs(high), 1e-12}) * 1e-9;
  if (high - low < smallest) {
    const double around = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= low == 0 ? 0 : around;
    high += around;
  }
  const double rough = (high - low) / std::max(count, 1);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough * 0.999) step = factor * power;
  }
  if (whole) step = std::max(1.0, step);
  Ticks ticks{low, high, step, {}};
  if (range == TickRange::kRound) {
    ticks.low = std::floor(low / step + 1e-6) * step;
    ticks.high = std::ceil(high / step - 1e-6) * step;
  }
  const double slack = step * 1e-6;
  for (double k = std::ceil((ticks.low - slack) / step); k * step <= ticks.high + slack; k += 1)
    ticks.at.push_back(k * step);
  return ticks;
}

}  // namespace limber
