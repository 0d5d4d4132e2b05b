// How busy this machine is at one moment, as plain numbers.
//
// Shares are 0..1. What this machine or this kernel does not tell is empty, never 0. "Since the last sample"
// is since the one that the same sensor gave before it, or since the sensor was made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "record/fields.h"

namespace limber {

struct DeviceSample {
  static constexpr std::string_view kKind = "device.sample", kOldKind = "";

  double time_s = 0;  // on a clock that never goes back; only differences mean something

  // The cores that this process may use, since the last sample.
  std::optional<double> cpu_busy;     // by anybody, with what a hypervisor took away
  std::optional<double> cpu_own;      // by this process
  std::optional<double> cpu_others;   // by everybody else: the part that this process cannot cause
  std::optional<double> clock_share;  // current frequency over the highest

  std::optional<double> memory_used;         // of the machine, or of a control group that has less left
  std::optional<int64_t> memory_free_bytes;  // that could be had without swapping

  // Tasks that could have run waited for it: over the last ten seconds, and since the last sample.
  std::optional<double> cpu_pressure, cpu_stalled;
  std::optional<double> memory_pressure, memory_stalled;

  // What the control group that binds tightest allows; empty: there is no limit.
  std::optional<double> cpu_limit;   // cores' worth of time
  std::optional<double> quota_used;  // of it, since the last sample
  std::optional<double> throttled;   // share of the periods, since the last sample, in which it ran out
  std::optional<int64_t> memory_limit_bytes;

  std::optional<double> temperature_c;  // the hottest place of the processor

  std::optional<double> gpu_busy, gpu_memory_used;
  std::optional<int64_t> gpu_free_bytes;
  std::optional<double> gpu_power_w;

  // Since the sensor was made. Of the whole machine or its processors, whoever caused it.
  std::optional<double> energy_j, gpu_energy_j;

  static void fields(auto& self, auto& field) {
    field("time_s", self.time_s);
    field("cpu_busy", self.cpu_busy);
    field("cpu_own", self.cpu_own);
    field("cpu_others", self.cpu_others);
    field("clock_share", self.clock_share);
    field("memory_used", self.memory_used);
    field("memory_free_bytes", self.memory_free_bytes);
    field("cpu_pressure", self.cpu_pressure);
    field("cpu_stalled", self.cpu_stalled);
    field("memory_pressure", self.memory_pressure);
    field("memory_stalled", self.memory_stalled);
    field("cpu_limit", self.cpu_limit);
    field("quota_used", self.quota_used);
    field("throttled", self.throttled);
    field("memory_limit_bytes", self.memory_limit_bytes);
    field("temperature_c", self.temperature_c);
    field("gpu_busy", self.gpu_busy);
    field("gpu_memory_used", self.gpu_memory_used);
    field("gpu_free_bytes", self.gpu_free_bytes);
    field("gpu_power_w", self.gpu_power_w);
    field("energy_j", self.energy_j);
    field("gpu_energy_j", self.gpu_energy_j);
  }
  std::string problem() const;  // a share outside 0..1, a number that cannot be
};

}  // namespace limber
