// How busy a GPU is, where there is one: NVML, looked for when the program runs and never linked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace limber {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

struct GpuUse {
  std::optional<double> busy, memory_used;  // shares; busy: of the library's own last moment
  std::optional<int64_t> free_bytes;
  std::optional<double> power_w;
  std::optional<double> energy_j;  // since the first reading
};

class Gpu {
 public:
  // Null when there is no library, no driver or no such device.
  static std::unique_ptr<Gpu> open(const std::string& library = kNvmlLibrary, int device = 0);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  GpuUse read(double time_s);

 private:
  struct Library;
  Gpu(std::unique_ptr<Library> library, void* device);

  std::unique_ptr<Library> library_;
  void* device_;
  std::optional<double> first_joules_, last_watts_, last_time_;
  double added_joules_ = 0;  // of devices that tell only their power
};

}  // namespace limber
