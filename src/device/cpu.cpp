#include "device/cpu.h"

#include <sys/utsname.h>

#include <fstream>
#include <string_view>

#include "base/parallel.h"

namespace limber {
namespace {

std::string architecture() {
  utsname names{};
  return uname(&names) == 0 ? names.machine : "unknown";
}

// The value of the first "key : value" line of /proc/cpuinfo, or nothing.
std::string cpuinfo_field(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    if (value != std::string::npos) return line.substr(value);
  }
  return {};
}

std::vector<std::string> vector_features() {
  std::vector<std::string> found;
#if defined(__x86_64__)
#define LIMBER_FEATURE(name) \
  if (__builtin_cpu_supports(name)) found.emplace_back(name)
  LIMBER_FEATURE("sse4.2");
  LIMBER_FEATURE("avx");
  LIMBER_FEATURE("avx2");
  LIMBER_FEATURE("fma");
  LIMBER_FEATURE("avx512f");
  LIMBER_FEATURE("avx512bw");
  LIMBER_FEATURE("avx512vl");
  LIMBER_FEATURE("avx512dq");
  LIMBER_FEATURE("avx512vnni");
  LIMBER_FEATURE("avx512bf16");
#undef LIMBER_FEATURE
#elif defined(__aarch64__)
  found.emplace_back("neon");
#endif
  return found;
}

}  // namespace

CpuInfo cpu_info() {
  CpuInfo info;
  info.cores = available_cores();
  info.features = vector_features();
  info.name = cpuinfo_field("model name");
  if (info.name.empty()) info.name = architecture();
  return info;
}

}  // namespace limber
