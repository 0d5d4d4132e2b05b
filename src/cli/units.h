// Numbers with units, as people write them on the command line.
#pragma once

#include <string>

namespace limber {

// All return what is wrong with the text, or nothing.
std::string parse_bytes(const std::string& text, size_t& to);    // "512M", "2G", "100000"
std::string parse_count(const std::string& text, double& to);    // "1.5M" is 1,500,000, "20K", "300000"
std::string parse_seconds(const std::string& text, double& to);  // "90s", "20min", "1.5h", "12ms", "90"
// "60%" sets the share of a latency, "12ms" the seconds.
std::string parse_latency(const std::string& text, double& seconds, double& share);

}  // namespace limber
