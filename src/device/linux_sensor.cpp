#include "device/linux_sensor.h"

#include <algorithm>
#include <array>
#include <vector>

#include "device/control_group.h"
#include "device/cpu_use.h"
#include "device/energy_counter.h"
#include "device/pressure.h"
#include "device/thermal.h"

namespace limber {
namespace {

constexpr size_t kMostClocks = 8;  // cores whose frequency is asked for; the others are taken to be like them

int64_t whole_bytes(double bytes) { return static_cast<int64_t>(std::clamp(bytes, 0.0, 9e15)); }

}  // namespace

struct LinuxSensor::Files {
  struct CoreClock {
    KernelFile now;
    double highest = 0;
  };

  explicit Files(const std::string& root)
      : cpu(root),
        group(root),
        cpu_pressure(root + "/proc/pressure/cpu"),
        memory_pressure(root + "/proc/pressure/memory"),
        thermometer(root),
        energy(root),
        meminfo(root + "/proc/meminfo"),
        clocks(find_clocks(root, cpu.cores())) {}

  static std::vector<CoreClock> find_clocks(const std::string& root, std::vector<int> cores);
  void read_cpu(DeviceSample& sample);
  void read_memory(const GroupUse& use, DeviceSample& sample) const;

  CpuUse cpu;
  ControlGroup group;
  Pressure cpu_pressure, memory_pressure;
  Thermometer thermometer;
  EnergyCounter energy;
  KernelFile meminfo;
  std::vector<CoreClock> clocks;
};

std::vector<LinuxSensor::Files::CoreClock> LinuxSensor::Files::find_clocks(const std::string& root,
                                                                           std::vector<int> cores) {
  if (cores.empty()) cores.push_back(0);
  const size_t stride = (cores.size() + kMostClocks - 1) / kMostClocks;
  std::vector<CoreClock> clocks;
  for (size_t i = 0; i < cores.size(); i += stride) {
    const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(cores[i]) + "/cpufreq";
    CoreClock clock{KernelFile(folder + "/scaling_cur_freq"),
                    KernelFile(folder + "/cpuinfo_max_freq").number().value_or(0)};
    if (clock.now.there() && clock.highest > 0) clocks.push_back(std::move(clock));
  }
  return clocks;
}

void LinuxSensor::Files::read_cpu(DeviceSample& sample) {
  if (const auto shares = cpu.read()) {
    sample.cpu_busy = shares->busy;
    sample.cpu_own = shares->own;
    sample.cpu_others = shares->others;
  }
  double sum = 0;
  int told = 0;
  for (const CoreClock& clock : clocks) {
    const auto now = clock.now.number();
    if (!now || *now <= 0) continue;
    sum += std::min(1.0, *now / clock.highest);
    ++told;
  }
  if (told > 0) sample.clock_share = sum / told;
}

void LinuxSensor::Files::read_memory(const GroupUse& use, DeviceSample& sample) const {
  std::array<char, 4096> buffer;
  const std::string_view text = meminfo.read(buffer);
  const auto total = number_after(text, "MemTotal:"), free = number_after(text, "MemAvailable:");
  if (total && free && *total > 0) {
    sample.memory_used = std::clamp(1 - *free / *total, 0.0, 1.0);
    sample.memory_free_bytes = whole_bytes(*free * 1024);
  }
  // The limit of a group that is larger than the machine is none.
  if (!use.memory_limit || (total && *use.memory_limit >= *total * 1024)) return;
  sample.memory_limit_bytes = whole_bytes(*use.memory_limit);
  if (!use.memory_used) return;
  const double used = std::clamp(*use.memory_used / *use.memory_limit, 0.0, 1.0);
  const int64_t left = whole_bytes(*use.memory_limit - *use.memory_used);
  sample.memory_used = std::max(sample.memory_used.value_or(0), used);
  sample.memory_free_bytes = std::min(sample.memory_free_bytes.value_or(left), left);
}

LinuxSensor::LinuxSensor(const LinuxSensorOptions& options)
    : files_(std::make_unique<Files>(options.root)),
      gpu_(Gpu::open(options.gpu_library, options.gpu)),
      clock_(options.clock) {
  (void)sample();
}

LinuxSensor::~LinuxSensor() = default;

Result<DeviceSample> LinuxSensor::sample() {
  DeviceSample now{.time_s = clock_()};
  files_->read_cpu(now);
  const GroupUse use = files_->group.read(now.time_s);
  now.cpu_limit = use.cpu_limit;
  now.quota_used = use.quota_used;
  now.throttled = use.throttled;
  files_->read_memory(use, now);
  const PressureShares cpu = files_->cpu_pressure.read(now.time_s),
                       memory = files_->memory_pressure.read(now.time_s);
  now.cpu_pressure = cpu.recent;
  now.cpu_stalled = cpu.stalled;
  now.memory_pressure = memory.recent;
  now.memory_stalled = memory.stalled;
  now.temperature_c = files_->thermometer.read(now.time_s);
  now.energy_j = files_->energy.read(now.time_s);
  if (gpu_ != nullptr) {
    const GpuUse gpu = gpu_->read(now.time_s);
    now.gpu_busy = gpu.busy;
    now.gpu_memory_used = gpu.memory_used;
    now.gpu_free_bytes = gpu.free_bytes;
    now.gpu_power_w = gpu.power_w;
    now.gpu_energy_j = gpu.energy_j;
  }
  return now;
}

}  // namespace limber
