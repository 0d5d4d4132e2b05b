#include <fmt/core.h>
#include <fmt/ranges.h>

#include "backend/cpu/cpu_backend.h"
#include "cli/commands.h"
#include "device/cpu.h"

namespace limber {

std::string version_text() {
  const CpuInfo cpu = cpu_info();
  return fmt::format(
      "limber {}\n"
      "build    {} (gcc-compatible {})\n"
      "ONNX     operator sets 7 to 18 (see 'limber check' for a model)\n"
      "kernels  {}\n"
      "CPU      {}, {} cores ({})",
      LIMBER_VERSION, LIMBER_BUILD, __VERSION__, cpu_backend_version(), cpu.name, cpu.cores,
      fmt::join(cpu.features, " "));
}

}  // namespace limber
