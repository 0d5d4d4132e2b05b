#include "cli/device_text.h"

#include <fmt/format.h>

#include <cmath>

#include "base/show.h"
#include "cli/machine_text.h"
#include "cli/progress.h"

namespace limber {
namespace {

std::string line(const char* name, const std::string& text) { return fmt::format("{:<8} {}", name, text); }

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string bytes(int64_t count) { return show_bytes(static_cast<double>(count)); }

std::string load_text(const LoadReading& load, double ahead_s) {
  return fmt::format("{:.2f} {}  in {:g} s: {:.2f}{}", load.now, progress_bar(load.now),
                     std::round(100 * ahead_s) / 100, load.ahead, load.fitted ? "" : " (if it stays)");
}

std::string cpu_text(const DeviceSample& sample) {
  std::string text = percent(*sample.cpu_busy) + " busy";
  if (sample.cpu_own && sample.cpu_others)
    text +=
        fmt::format(": {} this process, {} others", percent(*sample.cpu_own), percent(*sample.cpu_others));
  return text;
}

std::string memory_text(const DeviceSample& sample) {
  std::string text = percent(*sample.memory_used) + " used";
  if (sample.memory_free_bytes) text += fmt::format(", {} free", bytes(*sample.memory_free_bytes));
  if (sample.memory_limit_bytes) text += fmt::format(" of a limit of {}", bytes(*sample.memory_limit_bytes));
  return text;
}

std::string waits_text(const DeviceSample& sample) {
  std::string text = fmt::format("for the processor {} of the time", percent(*sample.cpu_stalled));
  if (sample.memory_stalled) text += fmt::format(", for memory {}", percent(*sample.memory_stalled));
  return text;
}

std::string quota_text(const DeviceSample& sample) {
  std::string text = fmt::format("{:.2g} cores' worth of time", *sample.cpu_limit);
  if (sample.quota_used) text += fmt::format(", {} used", percent(*sample.quota_used));
  if (sample.throttled) text += fmt::format(", ran out in {} of its periods", percent(*sample.throttled));
  return text;
}

std::string gpu_text(const DeviceSample& sample) {
  std::string text = percent(*sample.gpu_busy) + " busy";
  if (sample.gpu_memory_used)
    text += fmt::format(", {} of its memory used", percent(*sample.gpu_memory_used));
  if (sample.gpu_power_w) text += fmt::format(", {:.0f} W", *sample.gpu_power_w);
  return text;
}

std::string energy_text(const DeviceReading& reading) {
  std::string text = fmt::format("{:.1f} J", *reading.sample.energy_j);
  if (reading.power_w) text += fmt::format(", {:.1f} W now", *reading.power_w);
  return text;
}

void set_load(Json& out, const std::string& name, const std::optional<LoadReading>& load) {
  if (!load) return;
  out.set(name, load->now);
  out.set(name + "_ahead", load->ahead);
  out.set(name + "_fitted", load->fitted);
}

// Every declared field of a sample under its own name.
struct JsonFields {
  Json& out;
  template <typename T>
  void operator()(std::string_view key, const T& value) {
    out.set(key, value);
  }
  template <typename T>
  void operator()(std::string_view key, const std::optional<T>& value) {
    if (value) out.set(key, *value);
  }
};

}  // namespace

std::vector<std::string> facts_lines(const DeviceFacts& facts) {
  const HostInfo& host = facts.host;
  return {line("machine", facts.cpu.name),
          line("system", host.system),
          line("cores", fmt::format("{} usable of {}", facts.cpu.cores, host.online_cores)),
          line("caches", cache_text(facts.caches)),
          line("limits", limit_text(host)),
          line("memory", show_bytes(static_cast<double>(host.memory_bytes)))};
}

std::vector<std::string> reading_lines(const DeviceReading& reading, double ahead_s) {
  const DeviceSample& sample = reading.sample;
  std::vector<std::string> lines;
  std::string untold;
  const auto add = [&](const char* name, bool told, const auto& text) {
    if (told) {
      lines.push_back(line(name, text()));
    } else {
      untold += fmt::format("{}{}", untold.empty() ? "" : ", ", name);
    }
  };
  add("load", reading.load.has_value(), [&] { return load_text(*reading.load, ahead_s); });
  add("others", reading.others.has_value(), [&] { return load_text(*reading.others, ahead_s); });
  add("cpu", sample.cpu_busy.has_value(), [&] { return cpu_text(sample); });
  add("clock", sample.clock_share.has_value(),
      [&] { return percent(*sample.clock_share) + " of its highest"; });
  add("memory", sample.memory_used.has_value(), [&] { return memory_text(sample); });
  add("waits", sample.cpu_stalled.has_value(), [&] { return waits_text(sample); });
  if (sample.cpu_limit) lines.push_back(line("quota", quota_text(sample)));
  add("heat", sample.temperature_c.has_value(),
      [&] { return fmt::format("{:.0f} C", *sample.temperature_c); });
  add("gpu", sample.gpu_busy.has_value(), [&] { return gpu_text(sample); });
  add("energy", sample.energy_j.has_value(), [&] { return energy_text(reading); });
  if (!untold.empty()) lines.push_back(line("not told", untold));
  return lines;
}

std::string reading_line(const DeviceReading& reading, double since_s) {
  const DeviceSample& sample = reading.sample;
  std::string text = fmt::format("{:8.1f} s", since_s);
  if (reading.load) text += fmt::format("  load {:.2f} -> {:.2f}", reading.load->now, reading.load->ahead);
  if (reading.others)
    text += fmt::format("  others {:.2f} -> {:.2f}", reading.others->now, reading.others->ahead);
  if (sample.cpu_busy) text += fmt::format("  cpu {:>5}", percent(*sample.cpu_busy));
  if (sample.memory_used) text += fmt::format("  memory {:>5}", percent(*sample.memory_used));
  if (sample.gpu_busy) text += fmt::format("  gpu {:>5}", percent(*sample.gpu_busy));
  return text;
}

std::vector<std::string> report_lines(const DeviceReport& report, int forecast_steps) {
  std::vector<std::string> lines = {
      fmt::format("{} reading{} in {:.1f} s: load {:.2f} on average, {:.2f} at most", report.readings,
                  report.readings == 1 ? "" : "s", report.seconds, report.mean_load, report.highest_load)};
  if (report.readings > forecast_steps)
    lines.push_back(
        fmt::format("{} ahead, the fitted forecast was lately wrong by {:.3f}, 'it stays' by {:.3f}",
                    forecast_steps, report.forecast_error, report.stay_error));
  return lines;
}

Json facts_json(const DeviceFacts& facts) {
  const HostInfo& host = facts.host;
  const auto cache = [](const CacheLevel& of) {
    return Json::object({{"level", of.level}, {"bytes", of.bytes}});
  };
  return Json::object({{"system", host.system},
                       {"cpu", facts.cpu.name},
                       {"cores", facts.cpu.cores},
                       {"online_cores", host.online_cores},
                       {"cpu_limit", host.cpu_limit},
                       {"memory_bytes", host.memory_bytes},
                       {"memory_limit", host.memory_limit},
                       {"governor", host.governor},
                       {"features", Json::list(facts.cpu.features)},
                       {"caches", Json::list(facts.caches, cache)}});
}

Json reading_json(const DeviceReading& reading) {
  Json out = Json::object();
  set_load(out, "load", reading.load);
  set_load(out, "others", reading.others);
  JsonFields fields{out};
  DeviceSample::fields(reading.sample, fields);
  if (reading.power_w) out.set("power_w", *reading.power_w);
  return out;
}

}  // namespace limber
