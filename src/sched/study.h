// What a study before an application was deployed tells of domains that were not in it.
#pragma once

#include "sched/expectations.h"
#include "sched/profile.h"

namespace limber::sched {

// What an option should bring in a domain, by the others alone: a plane through what it brings there, by
// features, the more similar domains counting more.
Expected study_elsewhere(const ApplicationProfile& profile, size_t domain, size_t option);

}  // namespace limber::sched
