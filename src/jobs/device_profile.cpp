#include "jobs/device_profile.h"

#include "base/file.h"
#include "device/cpu.h"
#include "device/host.h"
#include "device/roofline.h"
#include "jobs/output.h"
#include "variant/elastic_model.h"
#include "variant/measure.h"

namespace limber {
namespace {

constexpr const char* kYardstick = "builtin:resnet14";
constexpr double kProfileSeconds = 0.3;

}  // namespace

Result<DeviceProfile> measure_profile(const Model& model, const PortCost& cost,
                                      const std::vector<std::shared_ptr<Backend>>& backends, int threads) {
  LIMBER_ASSIGN(const double seconds, measure_latency(model.graph, model.params, backends,
                                                      {.threads = threads, .seconds = kProfileSeconds}));
  const Roofline roofline = measure_roofline(threads);
  DeviceProfile profile{
      .name = cpu_info().name, .operations_per_s = roofline.flops, .bytes_per_s = roofline.bytes()};
  const double share = profile.latency(cost) / seconds;
  profile.operations_per_s *= share;
  profile.bytes_per_s *= share;
  const HostInfo host = host_info();
  const uint64_t memory = host.memory_limit > 0 ? host.memory_limit : host.memory_bytes;
  if (memory > 0) profile.memory = static_cast<double>(memory);
  return profile;
}

Result<DeviceProfile> write_profile(const DeviceProfileOptions& options) {
  LIMBER_TRY(check_output_parent(options.output));
  JobOptions engine;
  static_cast<EngineOptions&>(engine) = options;
  const BuildSpec spec = build_spec(engine, false);
  LIMBER_ASSIGN(const Model model, load_model(kYardstick));
  LIMBER_ASSIGN(const GraphCost cost, cost_of(model.graph));
  LIMBER_ASSIGN(const DeviceProfile profile,
                measure_profile(model, {.operations = cost.flops, .moved_bytes = cost.moved_bytes},
                                make_backends(spec), thread_count(spec)));
  LIMBER_TRY(os_files().write(options.output, format_profile(profile) + "\n"));
  return profile;
}

}  // namespace limber
