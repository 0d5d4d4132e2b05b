#include "device/energy.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/assert.h"

namespace limber {
namespace {

// Between a board of 2 W a core and a server of 8; idle cores sleep; a memory module or two.
constexpr double kWattsPerCore = 4, kIdleWattsPerCore = 0.5, kMemoryWatts = 4;
constexpr double kUsualHitRate = 0.9;  // of convolutions, whose kernels are cut to fit the caches
constexpr int kEnough = 3;             // observations, for two factors
// Of what is 100 observations old a third counts; the spread lets a few observations say more than the guess.
constexpr double kFactorForgetting = 0.99, kFactorSpread = 100;

double known(double value) { return std::isfinite(value) && value > 0 ? value : 0; }

}  // namespace

double EnergyModel::joules(double cpu_work, double gpu_work, double memory_work) const {
  const auto part = [](double work, double watts, double per_second) {
    return per_second > 0 ? known(work) * watts / per_second : 0;
  };
  return part(cpu_work, cpu_watts * hit_rate, cpu_flops) + part(gpu_work, gpu_watts, gpu_flops) +
         part(memory_work, memory_watts * (1 - hit_rate), memory_bytes);
}

std::string EnergyModel::problem() const {
  for (const double value :
       {cpu_watts, cpu_flops, gpu_watts, gpu_flops, memory_watts, memory_bytes, idle_watts})
    if (!std::isfinite(value) || value < 0)
      return fmt::format("the energy model has {} watts or units of work a second; expected 0 or more",
                         value);
  if (!(hit_rate >= 0 && hit_rate <= 1))
    return fmt::format("the energy model has a hit rate of {}; expected 0 to 1", hit_rate);
  return {};
}

EnergyModel guess_energy_model(int cores, const Roofline& roofline) {
  const double count = std::max(1, cores);
  return {.cpu_watts = kWattsPerCore * count,
          .cpu_flops = known(roofline.flops),
          .memory_watts = kMemoryWatts,
          .memory_bytes = known(roofline.bytes()),
          .hit_rate = kUsualHitRate,
          .idle_watts = kIdleWattsPerCore * count};
}

double cache_hit_rate(double hit_s, double miss_s, double mean_s) {
  const double rate = (miss_s - mean_s) / (miss_s - hit_s);
  return std::isfinite(rate) && miss_s > hit_s ? std::clamp(rate, 0.0, 1.0) : 0;
}

EnergyMeter::EnergyMeter(const EnergyModel& model)
    : model_(model), factors_({1, 1}, kFactorForgetting, kFactorSpread) {
  LIMBER_ASSERT(model.problem().empty());
}

EnergyMeter::Parts EnergyMeter::parts(double work_flops, double work_bytes, double seconds) const {
  return {model_.joules(work_flops, 0, work_bytes), model_.idle_watts * known(seconds)};
}

double EnergyMeter::joules(double work_flops, double work_bytes, double seconds) const {
  const auto [work, idle] = parts(work_flops, work_bytes, seconds);
  return work * std::max(0.0, factors_.weights()[0]) + idle * std::max(0.0, factors_.weights()[1]);
}

// Relative to what was guessed, so that a short run counts as much as a long one.
void EnergyMeter::observe(double work_flops, double work_bytes, double seconds, double measured_joules) {
  const auto [work, idle] = parts(work_flops, work_bytes, seconds);
  const double guessed = work + idle;
  if (!std::isfinite(guessed) || guessed <= 0 || !std::isfinite(measured_joules) || measured_joules < 0)
    return;
  factors_.add(std::array{work / guessed, idle / guessed}, measured_joules / guessed);
  ++observed_;
}

bool EnergyMeter::estimated() const { return observed_ < kEnough; }

}  // namespace limber
