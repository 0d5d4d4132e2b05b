// Numbers for people.
#pragma once

#include <cstdint>
#include <string>

namespace limber {

std::string show_seconds(double seconds);  // "12.3 us", "4.56 ms", "1.2 s"
std::string show_bytes(double bytes);      // "1.5 MiB"
std::string show_count(double count);      // "3.50 M"
std::string show_rate(double per_second);  // the number of G per second: "123.4"
std::string show_percent(double fraction);
// "91.20 %"; where the images are so few that it says little, with the 95 % interval: "90.00 % (69.9 to 97.2)"
std::string show_accuracy(double share, int64_t images);

}  // namespace limber
