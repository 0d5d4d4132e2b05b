#include "device/pressure.h"

#include <algorithm>
#include <array>

namespace limber {

PressureShares Pressure::read(double time_s) {
  std::array<char, 256> buffer;
  std::string_view text = file_.read(buffer);
  const std::string_view line = take_line(text);  // "some avg10=0.12 avg60=... avg300=... total=MICROSECONDS"
  PressureShares shares;
  if (const auto percent = number_after(line, "some avg10="))
    shares.recent = std::clamp(*percent / 100, 0.0, 1.0);
  std::optional<double> total;
  if (const size_t at = line.find("total="); at != std::string_view::npos)
    total = number_after(line.substr(at), "total=");
  const auto seconds = time_.since_last(time_s), waited = total_.since_last(total);
  if (seconds && *seconds > 0 && waited) shares.stalled = std::clamp(*waited * 1e-6 / *seconds, 0.0, 1.0);
  return shares;
}

}  // namespace limber
