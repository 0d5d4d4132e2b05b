#include "device/host.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "device/control_group.h"

namespace limber {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// 0 when it says "max", or nothing that is a number.
double number_in(const std::string& text) {
  std::istringstream words(text);
  double value = 0;
  return words >> value && value > 0 ? value : 0;
}

void read_groups(const std::string& root, HostInfo& info) {
  const GroupUse use = ControlGroup(root).read(0);
  info.cpu_limit = use.cpu_limit.value_or(0);
  // One that is larger than the machine is none.
  const double memory = use.memory_limit.value_or(0);
  if (info.memory_bytes == 0 || memory < static_cast<double>(info.memory_bytes))
    info.memory_limit = static_cast<uint64_t>(memory);
}

void read_memory(const std::string& root, HostInfo& info) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    uint64_t kilobytes = 0;
    words >> key >> kilobytes;
    if (key == "MemTotal:") info.memory_bytes = kilobytes * 1024;
    if (key == "MemAvailable:") info.free_bytes = kilobytes * 1024;
  }
}

}  // namespace

HostInfo host_info(const std::string& root) {
  HostInfo info;
  utsname names{};
  if (uname(&names) == 0)
    info.system = std::string(names.sysname) + " " + names.release + " " + names.machine;
  info.online_cores = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  read_memory(root, info);
  read_groups(root, info);
  info.load = number_in(first_line(root + "/proc/loadavg"));
  info.governor = first_line(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  return info;
}

}  // namespace limber
