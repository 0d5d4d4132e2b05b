// How hot the processor is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/kernel_file.h"

namespace limber {

class Thermometer {
 public:
  // Zones and sensors whose name says that they are the processor's; when none does, all zones.
  explicit Thermometer(const std::string& root);
  // The hottest, in degrees Celsius. Some sensors answer slowly: they are asked once in a second.
  std::optional<double> read(double time_s);

 private:
  std::vector<KernelFile> files_;
  std::optional<double> degrees_, asked_;
};

}  // namespace limber
