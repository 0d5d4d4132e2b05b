#include "device/gpu.h"

#include <dlfcn.h>

#include <algorithm>

namespace limber {
// The part of NVML's interface that is used, as its documentation has it. 0 is success.
struct Gpu::Library {
  using Handle = void*;
  struct Utilization {
    unsigned gpu, memory;  // percent
  };
  struct Memory {
    unsigned long long total, free, used;
  };

  void* opened = nullptr;
  bool started = false;
  int (*start)() = nullptr;
  int (*stop)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, Handle*) = nullptr;
  int (*utilization)(Handle, Utilization*) = nullptr;
  int (*memory)(Handle, Memory*) = nullptr;
  int (*power)(Handle, unsigned*) = nullptr;             // milliwatts
  int (*energy)(Handle, unsigned long long*) = nullptr;  // millijoules; older devices have none

  ~Library() {
    if (started && stop != nullptr) stop();
    if (opened != nullptr) dlclose(opened);
  }
  template <typename Function>
  bool find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(dlsym(opened, name));
    return function != nullptr;
  }
};

std::unique_ptr<Gpu> Gpu::open(const std::string& library, int device) {
  if (library.empty() || device < 0) return nullptr;
  auto nvml = std::make_unique<Library>();
  nvml->opened = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (nvml->opened == nullptr) return nullptr;
  if (!nvml->find("nvmlInit_v2", nvml->start) || !nvml->find("nvmlShutdown", nvml->stop) ||
      !nvml->find("nvmlDeviceGetCount_v2", nvml->count) ||
      !nvml->find("nvmlDeviceGetHandleByIndex_v2", nvml->device))
    return nullptr;
  nvml->find("nvmlDeviceGetUtilizationRates", nvml->utilization);
  nvml->find("nvmlDeviceGetMemoryInfo", nvml->memory);
  nvml->find("nvmlDeviceGetPowerUsage", nvml->power);
  nvml->find("nvmlDeviceGetTotalEnergyConsumption", nvml->energy);
  nvml->started = nvml->start() == 0;
  unsigned devices = 0;
  Library::Handle handle = nullptr;
  if (!nvml->started || nvml->count(&devices) != 0 || static_cast<unsigned>(device) >= devices ||
      nvml->device(static_cast<unsigned>(device), &handle) != 0)
    return nullptr;
  return std::unique_ptr<Gpu>(new Gpu(std::move(nvml), handle));
}

Gpu::Gpu(std::unique_ptr<Library> library, void* device) : library_(std::move(library)), device_(device) {}
Gpu::~Gpu() = default;

GpuUse Gpu::read(double time_s) {
  GpuUse use;
  Library::Utilization utilization{};
  if (library_->utilization != nullptr && library_->utilization(device_, &utilization) == 0)
    use.busy = std::min(1.0, utilization.gpu / 100.0);
  Library::Memory memory{};
  if (library_->memory != nullptr && library_->memory(device_, &memory) == 0 && memory.total > 0) {
    use.memory_used = std::min(1.0, static_cast<double>(memory.used) / static_cast<double>(memory.total));
    use.free_bytes = static_cast<int64_t>(memory.free);
  }
  unsigned milliwatts = 0;
  if (library_->power != nullptr && library_->power(device_, &milliwatts) == 0) {
    use.power_w = milliwatts * 1e-3;
    if (last_watts_ && last_time_)
      added_joules_ += std::max(0.0, time_s - *last_time_) * (*use.power_w + *last_watts_) / 2;
    use.energy_j = added_joules_;
  }
  last_watts_ = use.power_w;
  last_time_ = time_s;
  unsigned long long millijoules = 0;
  if (library_->energy != nullptr && library_->energy(device_, &millijoules) == 0) {
    const double joules = static_cast<double>(millijoules) * 1e-3;
    if (!first_joules_) first_joules_ = joules;
    use.energy_j = std::max(0.0, joules - *first_joules_);
  }
  return use;
}

}  // namespace limber
