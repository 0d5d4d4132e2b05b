// What this machine is like for Limber: what is slow here and why, and what belongs into a bug report.
#pragma once

#include <string>
#include <vector>

#include "device/cpu.h"
#include "device/host.h"
#include "device/roofline.h"
#include "jobs/source.h"

namespace limber {

struct DoctorJobOptions : EngineOptions {};

// The file of timings that tuning keeps.
struct TuneCacheInfo {
  std::string path;  // empty: nowhere
  bool there = false, readable = false;
  uint64_t bytes = 0;
  int64_t entries = 0;   // timings of layers, reorders and whole plans, of all machines in it
  int64_t machines = 0;  // machine, threads and library versions that it knows
  double age_s = 0;      // since it was last written
};

// Something that makes Limber slow or its times useless, and what to do about it.
struct Finding {
  std::string what, remedy;
};

struct DoctorReport {
  CpuInfo cpu;
  HostInfo host;
  std::string kernels;  // of which library, and for which instructions
  int threads = 1;      // that would be used
  Roofline roofline;    // measured now
  double quick_s = 0,
         slow_s = 0;  // of the same small network: its quick time, and what every tenth run exceeds
  TuneCacheInfo tune_cache;
  std::vector<Finding> findings;  // the worst first; none: nothing is wrong
};

Result<DoctorReport> run_doctor(const DoctorJobOptions& options, const JobControl& control = {});

// What there is to say about facts. Reads nothing.
std::vector<Finding> diagnose(const DoctorReport& report, const EngineOptions& options);
TuneCacheInfo inspect_tune_cache(const std::string& path);

}  // namespace limber
