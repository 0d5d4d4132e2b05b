#include "device/host.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

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

void keep_lowest(double value, double& limit) {
  if (value > 0 && (limit == 0 || value < limit)) limit = value;
}

// A control group is limited by all that it lies in.
void read_groups(const std::string& root, HostInfo& info) {
  const std::string mounted = root + "/sys/fs/cgroup";
  double memory = 0;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;
    for (std::string group = line.substr(3);; group.resize(group.rfind('/'))) {
      if (group == "/") group.clear();
      const std::string cpu = first_line(mounted + group + "/cpu.max");  // "QUOTA PERIOD" in microseconds
      std::istringstream words(cpu);
      double quota = 0, period = 0;
      if (words >> quota >> period && period > 0) keep_lowest(quota / period, info.cpu_limit);
      keep_lowest(number_in(first_line(mounted + group + "/memory.max")), memory);
      if (group.empty()) break;
    }
  }
  // The first version of control groups.
  const double period = number_in(first_line(mounted + "/cpu/cpu.cfs_period_us"));
  if (period > 0)
    keep_lowest(number_in(first_line(mounted + "/cpu/cpu.cfs_quota_us")) / period, info.cpu_limit);
  keep_lowest(number_in(first_line(mounted + "/memory/memory.limit_in_bytes")), memory);
  // "No limit" is a number near the largest there is.
  if (memory > 0 && (info.memory_bytes == 0 || memory < static_cast<double>(info.memory_bytes)))
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
