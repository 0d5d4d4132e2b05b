#include "sched/profile.h"

#include <cmath>

#include "base/file.h"
#include "io/json_fields.h"

namespace limber::sched {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "limber-app-profiles";
constexpr int kVersion = 1, kDepth = 8;
constexpr size_t kMaxBytes = 64 << 20;
constexpr double kLargest = 1e12;
constexpr size_t kMaxDomains = 4096, kMaxFeatures = 256;

Status read_numbers(JsonFields& in, const char* key, size_t most, std::vector<double>& to) {
  const json* list = in.find(key);
  if (list == nullptr) return in.status();
  if (!list->is_array() || list->size() > most) {
    in.fail(key, fmt::format("is no list of at most {} numbers", most));
    return in.status();
  }
  for (const json& one : *list) {
    if (!one.is_number() || !(std::abs(one.get<double>()) <= kLargest)) {
      in.fail(key, "has an element that is no number");
      return in.status();
    }
    to.push_back(one.get<double>());
  }
  return {};
}

// Each object of a list, with its place in messages.
template <typename Take>
Status read_objects(JsonFields& in, const char* key, const std::string& where, size_t most, Take take) {
  const json* list = in.find(key);
  if (list == nullptr) return in.status();
  if (!list->is_array() || list->empty() || list->size() > most) {
    in.fail(key, fmt::format("is no list of 1 to {} objects", most));
    return in.status();
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string place = fmt::format("{}{}[{}]", where, key, i);
    if (!(*list)[i].is_object()) return corrupt("{} is no object", place);
    LIMBER_TRY(take((*list)[i], place));
  }
  return {};
}

void read_optional(const json& object, JsonFields& in, const char* key, double& to) {
  if (object.contains(key)) in.read(key, to);
}

Status read_option(const json& object, const std::string& where, Option& option) {
  JsonFields in(object, where);
  in.read("name", option.name);
  in.read("size", option.size);
  read_optional(object, in, "latency_s", option.latency_s);
  LIMBER_TRY(in.status());
  if (object.contains("seconds")) LIMBER_TRY(read_numbers(in, "seconds", kMaxThreads, option.seconds));
  return {};
}

Status read_domain(const json& object, const std::string& where, size_t options, DomainProfile& domain) {
  JsonFields in(object, where);
  in.read("name", domain.name);
  LIMBER_TRY(in.status());
  if (object.contains("features")) LIMBER_TRY(read_numbers(in, "features", kMaxFeatures, domain.features));
  LIMBER_TRY(read_numbers(in, "before", kMaxOptions, domain.before));
  LIMBER_TRY(read_numbers(in, "after", kMaxOptions, domain.after));
  if (domain.before.size() != options || domain.after.size() != options)
    return corrupt("{}: {} accuracies before and {} after; expected one for each of {} options", where,
                   domain.before.size(), domain.after.size(), options);
  return {};
}

Status read_application(const json& object, const std::string& where, int threads,
                        ApplicationProfile& profile) {
  JsonFields in(object, where);
  Application& application = profile.application;
  in.read("name", application.name);
  read_optional(object, in, "importance", application.importance);
  read_optional(object, in, "latency_budget_s", application.latency_budget_s);
  read_optional(object, in, "minimum_accuracy", application.minimum_accuracy);
  read_optional(object, in, "requests_per_s", profile.requests_per_s);
  LIMBER_TRY(in.status());
  LIMBER_TRY(read_objects(in, "options", where + ": ", kMaxOptions, [&](const json& one, const auto& place) {
    return read_option(one, place, application.options.emplace_back());
  }));
  for (Option& option : application.options)
    option.load = profile.requests_per_s * option.latency_s / threads;
  const size_t options = application.options.size();
  LIMBER_TRY(read_objects(in, "domains", where + ": ", kMaxDomains, [&](const json& one, const auto& place) {
    return read_domain(one, place, options, profile.domains.emplace_back());
  }));
  for (const DomainProfile& domain : profile.domains)
    if (domain.features.size() != profile.domains[0].features.size())
      return corrupt("{}: domain '{}' has {} features, the first has {}", where, domain.name,
                     domain.features.size(), profile.domains[0].features.size());
  return {};
}

// So that none counts more for its unit.
void standardise(std::vector<DomainProfile>& domains) {
  const auto count = static_cast<double>(domains.size());
  for (size_t j = 0; j < domains[0].features.size(); ++j) {
    double mean = 0, square = 0;
    for (const DomainProfile& domain : domains) mean += domain.features[j] / count;
    for (const DomainProfile& domain : domains)
      square += (domain.features[j] - mean) * (domain.features[j] - mean) / count;
    const double deviation = std::isfinite(square) && square > 0 ? std::sqrt(square) : 1;
    for (DomainProfile& domain : domains) domain.features[j] = (domain.features[j] - mean) / deviation;
  }
}

Status check_domains(const Profiles& profiles) {
  for (const ApplicationProfile& profile : profiles.applications)
    for (size_t d = 0; d < profile.domains.size(); ++d) {
      const Application application = in_domain(profile, d);
      if (const Status wrong = check(std::span(&application, 1), profiles.window); !wrong.ok())
        return corrupt("domain '{}': {}", profile.domains[d].name, wrong.message());
    }
  return {};
}

}  // namespace

Result<Profiles> parse_profiles(std::string_view text) {
  LIMBER_ASSIGN(const json object, parse_json_object(text, kDepth));
  JsonFields in(object, "");
  LIMBER_TRY(check_format(in, kFormat, kVersion, "record it anew"));
  Profiles profiles;
  in.read("window_s", profiles.window.seconds);
  in.read("threads", profiles.window.threads, 1, kMaxThreads);
  LIMBER_TRY(in.status());
  const int threads = profiles.window.threads;
  LIMBER_TRY(read_objects(in, "applications", "", kMaxApplications, [&](const json& one, const auto& place) {
    return read_application(one, place, threads, profiles.applications.emplace_back());
  }));
  LIMBER_TRY(check_domains(profiles));
  for (ApplicationProfile& profile : profiles.applications) {
    profile.application = in_domain(profile, 0);
    standardise(profile.domains);
  }
  return profiles;
}

Result<Profiles> read_profiles(const std::string& path) {
  LIMBER_ASSIGN(const std::string text, os_files().read(path, kMaxBytes));
  auto profiles = parse_profiles(text);
  if (!profiles.ok()) return profiles.status().in(path);
  return profiles;
}

Application in_domain(const ApplicationProfile& profile, size_t domain) {
  Application application = profile.application;
  const DomainProfile& here = profile.domains.at(domain);
  for (size_t i = 0; i < application.options.size(); ++i) {
    application.options[i].before = here.before[i];
    application.options[i].after = here.after[i];
  }
  return application;
}

double distance(const DomainProfile& a, const DomainProfile& b) {
  if (a.features.empty()) return &a == &b ? 0 : 1;
  double square = 0;
  for (size_t i = 0; i < a.features.size(); ++i)
    square += (a.features[i] - b.features[i]) * (a.features[i] - b.features[i]);
  return std::sqrt(square / static_cast<double>(a.features.size()));
}

}  // namespace limber::sched
