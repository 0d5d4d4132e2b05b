// What this machine does for networks, as goals of a porting want to know it.
#pragma once

#include "jobs/source.h"
#include "porting/executor.h"

namespace limber {

// Its best at computing and moving (device/roofline.h), both by the share of it that `model` gets: then the
// prediction for `model` is what was measured. `cost`: of the model.
Result<DeviceProfile> measure_profile(const Model& model, const PortCost& cost,
                                      const std::vector<std::shared_ptr<Backend>>& backends, int threads);

struct DeviceProfileOptions : EngineOptions {
  std::string output;  // file
};
// The same by a small residual network, written to a file.
Result<DeviceProfile> write_profile(const DeviceProfileOptions& options);

}  // namespace limber
