// What was measured of applications in many domains: what a simulation draws its world from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sched/application.h"

namespace limber::sched {

// Of one application in one domain.
struct DomainProfile {
  std::string name;
  std::vector<double> features;       // what it looks like, by the deviation over the application's domains
  std::vector<double> before, after;  // accuracy, by option
};

struct ApplicationProfile {
  Application application;  // accuracies of its options are those of the first domain
  double requests_per_s = 0;
  std::vector<DomainProfile> domains;
};

struct Profiles {
  Window window;
  std::vector<ApplicationProfile> applications;
};

// Of a file's text, docs/scheduling.md says how it looks. kCorrupt says what is wrong.
Result<Profiles> parse_profiles(std::string_view text);
// The same from a file.
Result<Profiles> read_profiles(const std::string& path);

// The application with what its options are in a domain. REQUIRES: there is one
Application in_domain(const ApplicationProfile& profile, size_t domain);
// Root mean square over features.
double distance(const DomainProfile& a, const DomainProfile& b);

}  // namespace limber::sched
