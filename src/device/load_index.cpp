#include "device/load_index.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace limber {
namespace {

std::optional<double> processor_load(const DeviceSample& sample, LoadOf whose) {
  if (whose == LoadOf::kOthers) return sample.cpu_others;
  if (!sample.cpu_busy || !sample.quota_used) return sample.cpu_busy ? sample.cpu_busy : sample.quota_used;
  return std::max(*sample.cpu_busy, *sample.quota_used);
}

}  // namespace

std::string LoadWeights::problem() const {
  const auto wrong = [](double weight) { return !std::isfinite(weight) || weight < 0; };
  if (wrong(cpu) || wrong(gpu) || wrong(memory))
    return fmt::format("weights of the load are {}, {} and {}; expected 0 or more", cpu, gpu, memory);
  if (cpu + gpu + memory <= 0) return "all weights of the load are 0; expected one above it";
  return {};
}

std::optional<double> load_index(const DeviceSample& sample, LoadOf whose, const LoadWeights& weights) {
  LIMBER_ASSERT(weights.problem().empty());
  double sum = 0, all = 0;
  const auto add = [&](double weight, const std::optional<double>& used) {
    if (!used) return;
    sum += weight * *used;
    all += weight;
  };
  add(weights.cpu, processor_load(sample, whose));
  add(weights.gpu, sample.gpu_busy);
  add(weights.memory, sample.memory_used);
  return all > 0 ? std::optional<double>(std::clamp(sum / all, 0.0, 1.0)) : std::nullopt;
}

}  // namespace limber
