#include "base/show.h"

#include <fmt/core.h>

#include <cmath>

#include "base/interval.h"

namespace limber {
namespace {

std::string scaled(double value, double base, const char* const* units, int count) {
  int unit = 0;
  while (unit + 1 < count && std::abs(value) >= base) value /= base, ++unit;
  const int digits = unit == 0 || std::abs(value) >= 100 ? 0 : std::abs(value) >= 10 ? 1 : 2;
  return fmt::format("{:.{}f}{}", value, digits, units[unit]);
}

}  // namespace

std::string show_seconds(double seconds) {
  if (seconds < 999.5e-6) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.{}f} ms", seconds * 1e3, seconds < 0.01 ? 3 : 2);
  return fmt::format("{:.2f} s", seconds);
}

std::string show_bytes(double bytes) {
  static constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  return scaled(bytes, 1024, kUnits, 5);
}

std::string show_count(double count) {
  static constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  return scaled(count, 1000, kUnits, 5);
}

std::string show_rate(double per_second) {
  const double giga = per_second / 1e9;
  return fmt::format("{:.{}f}", giga, giga >= 100 ? 0 : giga >= 10 ? 1 : 2);
}

std::string show_percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }

std::string show_accuracy(double share, int64_t images) {
  constexpr double kWide = 0.03;  // beyond it the digits of a percentage say more than is known
  const Interval interval = interval_of(share, images);
  const std::string text = fmt::format("{:.2f} %", 100 * share);
  if (interval.width() <= kWide) return text;
  return fmt::format("{} ({:.1f} to {:.1f})", text, 100 * interval.low, 100 * interval.high);
}

}  // namespace limber
