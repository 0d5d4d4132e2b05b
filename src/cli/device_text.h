// How busy a machine is, in words and as JSON.
#pragma once

#include <string>
#include <vector>

#include "jobs/device_job.h"
#include "jobs/json.h"

namespace limber {

// What does not change, one thing a line.
std::vector<std::string> facts_lines(const DeviceFacts& facts);
// All that a reading tells, one thing a line, and what this machine does not tell in the last.
// `ahead_s`: how far ahead its forecast is.
std::vector<std::string> reading_lines(const DeviceReading& reading, double ahead_s);
// The most important of it, on one line.
std::string reading_line(const DeviceReading& reading, double since_s);
std::vector<std::string> report_lines(const DeviceReport& report, int forecast_steps);

Json facts_json(const DeviceFacts& facts);
Json reading_json(const DeviceReading& reading);

}  // namespace limber
