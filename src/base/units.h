// Numbers with units, as people write them on the command line and in files.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace limber {

// The text as a whole; infinity and "not a number" are none.
std::optional<double> parse_number(const std::string& text);
// "0.5" or "0.4,0.4,0.2"; empty when one of them cannot be read.
std::vector<double> parse_numbers(const std::string& text);
// The same for whole numbers, which may be written as 1e3.
std::optional<int64_t> parse_integer(const std::string& text);

// All return what is wrong with the text, or nothing.
std::string parse_bytes(const std::string& text, size_t& to);  // "512M", "2G", "100000"
std::string parse_count(const std::string& text, double& to);  // "1.5M" is 1,500,000, "20K", "300000"
std::string parse_seconds(const std::string& text,
                          double& to);  // "90s", "20min", "1.5h", "12ms"; a unit is needed
std::string parse_share(const std::string& text, double& to);  // "25%": above 0 %, at most 100 %
// "60%" sets the share of a latency, "12ms" the seconds.
std::string parse_latency(const std::string& text, double& seconds, double& share);

}  // namespace limber
