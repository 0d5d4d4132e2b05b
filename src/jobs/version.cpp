#include "jobs/version.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "device/cpu.h"
#include "io/onnx.h"

namespace limber {
namespace {

// Models older than this use operators in ways that are not tested.
constexpr int kOldestOpset = 7;

int64_t newest_opset() {
  int64_t newest = 0;
  for (const SupportedOperator& op : supported_operators()) newest = std::max(newest, op.last_version);
  return newest;
}

}  // namespace

std::string version_number() { return LIMBER_VERSION; }

std::string version_text() {
  const CpuInfo cpu = cpu_info();
  return fmt::format(
      "limber {}\n"
      "build    {} (compiler {})\n"
      "ONNX     operator sets {} to {}\n"
      "kernels  {}\n"
      "CPU      {}, {} cores ({})",
      LIMBER_VERSION, LIMBER_BUILD, __VERSION__, kOldestOpset, newest_opset(), cpu_backend_version(),
      cpu.name, cpu.cores, fmt::join(cpu.features, " "));
}

}  // namespace limber
