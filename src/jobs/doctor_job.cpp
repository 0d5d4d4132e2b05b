#include "jobs/doctor_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "backend/cpu/cpu_backend.h"
#include "base/show.h"
#include "jobs/measured_step.h"
#include "runtime/timing.h"

namespace limber {
namespace {

constexpr const char* kProbe = "builtin:resnet14";  // small, and of the layers that networks are made of
constexpr double kProbeSeconds = 0.5;               // of runs one after the other; somebody waits for it
constexpr size_t kLeastProbes = 20;                 // so that there is a slowest tenth
constexpr double kUnsteady = 1.3;  // a tenth of the runs this much slower than quick ones: times mean little

bool has(const CpuInfo& cpu, const char* feature) {
  return std::find(cpu.features.begin(), cpu.features.end(), feature) != cpu.features.end();
}

// How long one network takes, and how steadily.
Status probe(const DoctorJobOptions& options, DoctorReport& report) {
  JobOptions how;
  static_cast<EngineOptions&>(how) = options;
  how.model = kProbe;
  how.tune = Tune::kOff;  // the machine is looked at, not the cache
  LIMBER_ASSIGN(const Model model, load(how));
  LIMBER_ASSIGN(auto plan, build(model, how, false));
  LIMBER_ASSIGN(const auto session, Session::create(std::move(plan)));
  fill_random(*session, 0);
  LIMBER_ASSIGN(auto times, time_each([&] { return session->run(); }, kProbeSeconds, kLeastProbes));
  std::sort(times.begin(), times.end());
  report.quick_s = quick_time(times);
  report.slow_s = times[times.size() * 9 / 10];
  return {};
}

}  // namespace

std::vector<Finding> diagnose(const DoctorReport& report, const EngineOptions& options) {
  std::vector<Finding> found;
  const auto say = [&](std::string what, std::string remedy) {
    found.push_back({std::move(what), std::move(remedy)});
  };
  const CpuInfo& cpu = report.cpu;
  const HostInfo& host = report.host;
  const bool x86 = has(cpu, "sse4.2") || cpu.features.empty();
  if (options.reference)
    say("the reference kernels are on: correct, and hundreds of times slower", "use the cpu backend");
  if (x86 && !has(cpu, "avx2"))
    say("this CPU has no AVX2: kernels take four numbers at a time or fewer",
        "use a CPU of 2013 or later, or let the virtual machine see its host's CPU");
  if (host.cpu_limit > 0 && host.cpu_limit < report.threads - 0.01)  // a quota of whole cores is rounded
    say(fmt::format("{} threads share {:.2g} cores' worth of time that a control group allows: they wait for "
                    "each other",
                    report.threads, host.cpu_limit),
        fmt::format("use {} threads", std::max(1, static_cast<int>(host.cpu_limit))));
  if (report.threads > cpu.cores)
    say(fmt::format("{} threads on {} cores wait for each other", report.threads, cpu.cores),
        fmt::format("use {} threads", cpu.cores));
  if (report.threads == 1 && cpu.cores > 1)
    say(fmt::format("one thread is used of {} cores", cpu.cores), "leave threads at 0 to use every core");
  if (host.load > 0.5 * cpu.cores + 0.5)
    say(fmt::format("other work keeps the machine busy: {:.1f} processes want its {} cores", host.load,
                    host.online_cores),
        "wait for it, or give Limber fewer threads than cores");
  if (host.governor == "powersave" || host.governor == "conservative")
    say(fmt::format("the clock is governed by '{}', which is slow to rise", host.governor),
        "as root: cpupower frequency-set -g performance");
  if (report.quick_s > 0 && report.slow_s > kUnsteady * report.quick_s)
    say(fmt::format("times are unsteady: every tenth run of a network takes {} or more, quick ones {}",
                    show_seconds(report.slow_s), show_seconds(report.quick_s)),
        "repeat what is measured when the machine is idle; limber compares in turns, which helps");
  const uint64_t memory = host.memory_limit > 0 ? host.memory_limit : host.memory_bytes;
  if (memory > 0 && memory < uint64_t{1} << 30)
    say(fmt::format("there is {} of memory", show_bytes(static_cast<double>(memory))),
        "train with small batches");
  const TuneCacheInfo& cache = report.tune_cache;
  if (cache.path.empty())
    say("timings of tuning are kept nowhere: every process measures again", "set HOME or XDG_CACHE_HOME");
  if (cache.there && !cache.readable)
    say(fmt::format("{} cannot be read or is of another version: every process measures again", cache.path),
        "remove it");
  return found;
}

TuneCacheInfo inspect_tune_cache(const std::string& path) {
  TuneCacheInfo info{.path = path};
  std::error_code problem;
  if (path.empty() || !std::filesystem::exists(path, problem)) return info;
  info.there = true;
  info.bytes = std::filesystem::file_size(path, problem);
  const auto written = std::filesystem::last_write_time(path, problem);
  if (!problem)
    info.age_s =
        std::chrono::duration<double>(std::filesystem::file_time_type::clock::now() - written).count();
  if (const auto counts = count_tune_cache(path)) {
    info.readable = true;
    info.machines = counts->machines;
    info.entries = counts->entries;
  }
  return info;
}

Result<DoctorReport> run_doctor(const DoctorJobOptions& options, const JobControl& control) {
  if (options.threads < 0) return invalid("threads is {}; expected 0 or more", options.threads);
  DoctorReport report;
  report.cpu = cpu_info();
  report.host = host_info();
  report.kernels = cpu_backend_version();
  report.threads = thread_count({.threads = options.threads});
  report.tune_cache = inspect_tune_cache(options.tune_cache);
  control.progress({"measuring", -1, ""});
  report.roofline = measure_roofline(report.threads);
  LIMBER_TRY(probe(options, report));
  report.findings = diagnose(report, options);
  return report;
}

}  // namespace limber
