#include "record/accuracy.h"

#include <fmt/core.h>

#include "base/assert.h"

namespace limber {

Interval accuracy_interval(int64_t correct, int64_t images) {
  LIMBER_ASSERT(correct >= 0 && correct <= images);
  if (images == 0) return {};
  return interval_of(static_cast<double>(correct) / static_cast<double>(images), images);
}

std::string accuracy_text(int64_t correct, int64_t images, std::string_view which) {
  const std::string what =
      fmt::format("{}{}image{}", which, which.empty() ? "" : " ", images == 1 ? "" : "s");
  if (images == 0) return "no " + what;
  const Interval interval = accuracy_interval(correct, images);
  const bool wide = 100 * (interval.high - interval.low) >= kWidePoints;
  const double percent = 100 * static_cast<double>(correct) / static_cast<double>(images);
  const std::string text = fmt::format("{:.{}f} % of {} {}", percent, wide ? 1 : 2, images, what);
  if (!wide) return text;
  return fmt::format("{} ({:.1f} to {:.1f} %)", text, 100 * interval.low, 100 * interval.high);
}

}  // namespace limber
