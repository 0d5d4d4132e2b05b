// limber doctor: what this machine is, what is slow on it and why, and what to paste into a bug report.
#include <fmt/format.h>

#include "base/show.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/machine_text.h"
#include "jobs/doctor_job.h"
#include "jobs/json.h"
#include "jobs/version.h"

namespace limber {
namespace {

struct DoctorCommand {
  DoctorJobOptions job;
  bool json = false;
};

std::string show_age(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.0f} h", seconds / 3600);
  return fmt::format("{:.0f} days", seconds / 86400);
}

std::string tuning_text(const TuneCacheInfo& cache) {
  if (cache.path.empty()) return "none";
  if (!cache.there) return cache.path + " (not there yet: it is made by the first tuning)";
  return fmt::format("{}, {}, {} timings of {} machine{}, written {} ago", cache.path,
                     show_bytes(static_cast<double>(cache.bytes)), cache.entries, cache.machines,
                     cache.machines == 1 ? "" : "s", show_age(cache.age_s));
}

void print_report(const DoctorReport& report) {
  const HostInfo& host = report.host;
  fmt::print("{}\n", version_text());
  const auto line = [](const char* name, const std::string& text) { fmt::print("{:<8} {}\n", name, text); };
  line("system", host.system);
  line("cores", fmt::format("{} usable of {}; {} thread{} would be used", report.cpu.cores, host.online_cores,
                            report.threads, report.threads == 1 ? "" : "s"));
  line("limits", limit_text(host));
  line("memory", fmt::format("{}, {} free", show_bytes(static_cast<double>(host.memory_bytes)),
                             show_bytes(static_cast<double>(host.free_bytes))));
  line("load", fmt::format("{:.2f} (last minute)", host.load));
  line("clock", host.governor.empty() ? "unknown governor" : "governor " + host.governor);
  line("ceiling", fmt::format("{} Gflop/s, {} GB/s", show_rate(report.roofline.flops),
                              show_rate(report.roofline.bytes())));
  line("network", fmt::format("a small one takes {}, every tenth run {} or more",
                              show_seconds(report.quick_s), show_seconds(report.slow_s)));
  line("tuning", tuning_text(report.tune_cache));
  if (report.findings.empty()) {
    fmt::print("\nNothing here makes Limber slow.\n");
    return;
  }
  fmt::print("\nWhat is slow here, and what helps\n");
  for (const Finding& finding : report.findings) fmt::print("- {}\n  {}\n", finding.what, finding.remedy);
}

Json report_json(const DoctorReport& report) {
  const HostInfo& host = report.host;
  const TuneCacheInfo& cache = report.tune_cache;
  const auto finding = [](const Finding& one) {
    return Json::object({{"what", one.what}, {"remedy", one.remedy}});
  };
  return Json::object({{"version", version_number()},
                       {"kernels", report.kernels},
                       {"system", host.system},
                       {"cpu", report.cpu.name},
                       {"cores", report.cpu.cores},
                       {"online_cores", host.online_cores},
                       {"threads", report.threads},
                       {"cpu_limit", host.cpu_limit},
                       {"memory_bytes", host.memory_bytes},
                       {"free_bytes", host.free_bytes},
                       {"memory_limit", host.memory_limit},
                       {"load", host.load},
                       {"governor", host.governor},
                       {"flops_per_s", report.roofline.flops},
                       {"bytes_per_s", report.roofline.bytes()},
                       {"quick_s", report.quick_s},
                       {"slow_s", report.slow_s},
                       {"features", Json::list(report.cpu.features)},
                       {"tune_cache", Json::object({{"path", cache.path},
                                                    {"there", cache.there},
                                                    {"readable", cache.readable},
                                                    {"bytes", cache.bytes},
                                                    {"entries", cache.entries},
                                                    {"machines", cache.machines},
                                                    {"age_s", cache.age_s}})},
                       {"findings", Json::list(report.findings, finding)}});
}

Result<int> doctor(const DoctorCommand& options) {
  LIMBER_ASSIGN(const DoctorReport report, on_console(run_doctor, options.job));
  if (options.json) {
    fmt::print("{}\n", report_json(report).text());
  } else {
    print_report(report);
  }
  return kExitDone;
}

}  // namespace

void add_doctor(CommandLine& line) {
  auto options = std::make_shared<DoctorCommand>();
  DoctorJobOptions& job = options->job;
  Arguments arguments = line.add("doctor", "What this machine is, and what is slow on it and why",
                                 [options] { return doctor(*options); });
  arguments.flag("--json", options->json, "Machine-readable output");
  arguments.number("--threads", job.threads, 0, 1024, "Threads to use; 0 (default): every core");
  arguments.text("--tune-cache", job.tune_cache, "FILE",
                 "Where timings are kept; default ~/.cache/limber/tune.json");
  arguments.footer(
      "Takes about a second, and writes nothing. Paste what it prints into a bug report: it holds no name "
      "of\n"
      "a user, a host or a file but that of the cache.\n"
      "Examples:\n"
      "  limber doctor\n"
      "  limber doctor --json");
}

}  // namespace limber
