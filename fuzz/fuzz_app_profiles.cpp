// What is read of a profile can be scheduled: small ones are, and no baseline trips over them.
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "sched/baselines.h"
#include "sched/optimise.h"
#include "sched/profile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace limber;
  using namespace limber::sched;
  const auto profiles = parse_profiles({reinterpret_cast<const char*>(data), size});
  if (!profiles.ok() || profiles->applications.size() > 4) return 0;
  std::vector<Application> applications;
  for (const ApplicationProfile& profile : profiles->applications) {
    if (profile.application.options.size() > 8) return 0;
    applications.push_back(profile.application);
  }
  OptimiseOptions options;
  options.steps = 1000;
  options.tries = 100;
  const auto schedule = optimise(applications, profiles->window, options);
  if (schedule.ok()) LIMBER_ASSERT(schedule->value <= schedule->bound + 1e-9);
  thief(applications, profiles->window, 0);
  uniform(applications);
  return 0;
}
