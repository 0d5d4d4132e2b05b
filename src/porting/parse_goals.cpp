#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "io/json_fields.h"
#include "porting/goals.h"

namespace limber {
namespace {

using nlohmann::json;

constexpr int kFormat = 1, kDepth = 8;
constexpr size_t kMostGoals = 100'000, kMostName = 64;
constexpr double kGiga = 1e9;
constexpr std::string_view kHere = "here";

using Units = std::vector<std::pair<std::string_view, double>>;

const Units& time_units() {
  static const Units units = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};
  return units;
}
const Units& byte_units() {
  static const Units units = {{"K", 1024.0}, {"M", 1024.0 * 1024}, {"G", 1024.0 * 1024 * 1024}};
  return units;
}
const Units& count_units() {
  static const Units units = {{"K", 1e3}, {"M", 1e6}, {"G", 1e9}};
  return units;
}

// "12ms" as 0.012; nothing when it is no number with one of the units, or none.
std::optional<double> quantity(const std::string& text, const Units& units) {
  double number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc()) return std::nullopt;
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (unit.empty()) return number;
  const auto found =
      std::find_if(units.begin(), units.end(), [&](const auto& one) { return one.first == unit; });
  return found == units.end() ? std::nullopt : std::optional(number * found->second);
}

// One object of the file; its first wrong part is remembered.
class Part {
 public:
  Part(const json& object, std::string path, Status& status)
      : object_(object), path_(std::move(path)), status_(status) {
    if (!object.is_object()) fail("", "expected an object");
  }

  std::string path(std::string_view key) const {
    return key.empty() ? path_ : path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  }
  void fail(std::string_view key, const std::string& why) {
    const std::string at = path(key);
    if (status_.ok()) status_ = invalid("{}: {}", at.empty() ? "the file" : at, why);
  }
  // What is misspelt would be a goal that nobody keeps.
  void only(std::initializer_list<std::string_view> known) {
    if (!object_.is_object()) return;
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        fail(key, fmt::format("is not known; expected {}", fmt::join(known, ", ")));
    }
  }
  const json* find(const char* key) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  std::optional<double> number(const char* key, const Units& units, std::string_view example) {
    const json* value = find(key);
    if (value == nullptr) return std::nullopt;
    std::optional<double> number;
    if (value->is_number()) number = value->get<double>();
    if (value->is_string()) number = quantity(value->get<std::string>(), units);
    if (number && *number > 0 && std::isfinite(*number)) return number;
    fail(key, fmt::format("is {}; expected {}", value->dump(-1, ' ', false, json::error_handler_t::replace),
                          example));
    return std::nullopt;
  }
  double need(const char* key, std::string_view example) {
    const auto value = number(key, {}, example);
    if (!value) fail(key, fmt::format("is missing; expected {}", example));
    return value.value_or(1);
  }
  std::string text(const char* key, std::string_view example) {
    const json* value = find(key);
    if (value != nullptr && value->is_string()) return value->get<std::string>();
    fail(key, fmt::format("{}; expected {}", value == nullptr ? "is missing" : "is no text", example));
    return {};
  }
  void check_format() {
    const json* value = find("format");
    if (value == nullptr || !value->is_number_integer() || *value != kFormat)
      fail("format", fmt::format("expected {}, the version of the format", kFormat));
  }
  bool ok() const { return status_.ok(); }

 private:
  const json& object_;
  const std::string path_;
  Status& status_;
};

void read_figures(Part& in, DeviceProfile& to) {
  to.operations_per_s = kGiga * in.need("gflops", "10^9 operations a second, as in 20");
  to.bytes_per_s = kGiga * in.need("gbs", "10^9 bytes a second, as in 6.4");
  to.memory = in.number("memory", byte_units(), "bytes, as in \"512M\"").value_or(to.memory);
}

// A name that is fit for a folder on any system.
bool is_plain(const std::string& name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= kMostName && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), plain);
}

class Reader {
 public:
  explicit Reader(const ReadProfile& read_profile) : read_profile_(read_profile) {}

  Result<std::vector<Goal>> read(const json& file) {
    Part whole(file, "", status_);
    whole.only({"format", "devices", "goals"});
    whole.check_format();
    if (const json* devices = whole.find("devices"); devices != nullptr) {
      if (!devices->is_object()) whole.fail("devices", "expected an object: profiles by name");
      for (const auto& [name, device] : devices->items()) {
        if (!status_.ok()) break;
        if (name == kHere) whole.fail("devices.here", "is this machine; choose another name");
        devices_[name] = device_of(device, "devices." + name, name);
      }
    }
    const json* goals = whole.find("goals");
    if (goals == nullptr || !goals->is_array() || goals->empty() || goals->size() > kMostGoals)
      whole.fail("goals", fmt::format("expected a list of 1 to {} goals", kMostGoals));
    for (size_t i = 0; status_.ok() && i < goals->size(); ++i) add((*goals)[i], fmt::format("goals[{}]", i));
    if (!status_.ok()) return status_;
    return std::move(goals_);
  }

 private:
  DeviceProfile device_of(const json& value, const std::string& path, const std::string& name) {
    DeviceProfile device{.name = name};
    Part in(value, path, status_);
    if (in.find("profile") == nullptr) {
      in.only({"name", "gflops", "gbs", "memory"});
      if (in.find("name") != nullptr) device.name = in.text("name", "text");
      read_figures(in, device);
      return device;
    }
    in.only({"profile"});
    const std::string file = in.text("profile", "the file that 'limber device --profile' wrote");
    if (!status_.ok()) return device;
    const auto text = read_profile_(file);
    if (!text.ok()) return in.fail("profile", text.status().message()), device;
    const auto object = parse_json_object(*text, kDepth);
    if (!object.ok()) return in.fail("profile", file + ": " + object.status().message()), device;
    Part profile(*object, path + ".profile", status_);
    profile.check_format();
    read_figures(profile, device);
    return device;
  }

  DeviceProfile device_of(Part& goal) {
    const json* value = goal.find("device");
    if (value == nullptr) return goal.fail("device", "is missing"), DeviceProfile();
    if (value->is_object()) return device_of(*value, goal.path("device"), "");
    if (!value->is_string()) return goal.fail("device", "expected a name or a profile"), DeviceProfile();
    const std::string name = value->get<std::string>();
    if (name == kHere) return {.name = name, .operations_per_s = kGiga, .bytes_per_s = kGiga, .here = true};
    const auto found = devices_.find(name);
    if (found != devices_.end()) return found->second;
    std::vector<std::string> known = {std::string(kHere)};
    for (const auto& [other, device] : devices_) known.push_back(other);
    goal.fail("device", fmt::format("'{}' is none of the devices ({})", name, fmt::join(known, ", ")));
    return {};
  }

  void add(const json& value, const std::string& path) {
    Goal goal{.name = fmt::format("goal{}", goals_.size()), .path = path};
    Part in(value, path, status_);
    in.only({"name", "device", "targets"});
    if (in.find("name") != nullptr) {
      goal.name = in.text("name", "text");
      if (!is_plain(goal.name))
        in.fail("name",
                fmt::format("expected 1 to {} letters, digits, '-', '_' and '.', no '.' first", kMostName));
    }
    if (!names_.insert(goal.name).second) in.fail("name", fmt::format("'{}' is there twice", goal.name));
    goal.device = device_of(in);
    const json* targets = in.find("targets");
    if (targets == nullptr) return in.fail("targets", "is missing");
    Part t(*targets, in.path("targets"), status_);
    t.only({"latency", "memory", "parameters", "accuracy"});
    goal.targets.latency = t.number("latency", time_units(), "seconds above 0, as in \"12ms\" or 0.012");
    goal.targets.memory = t.number("memory", byte_units(), "bytes above 0, as in \"4M\"");
    goal.targets.parameters = t.number("parameters", count_units(), "a number above 0, as in \"300K\"");
    goal.targets.accuracy = t.number("accuracy", {}, "a share above 0 and at most 1, as in 0.9");
    if (goal.targets.accuracy.value_or(1) > 1) t.fail("accuracy", "expected a share, at most 1");
    if (t.ok() && targets->empty()) in.fail("targets", "expected one or more");
    goals_.push_back(std::move(goal));
  }

  const ReadProfile& read_profile_;
  Status status_;
  std::map<std::string, DeviceProfile> devices_;
  std::set<std::string> names_;
  std::vector<Goal> goals_;
};

}  // namespace

Result<std::vector<Goal>> parse_goals(std::string_view text, const ReadProfile& read_profile) {
  auto file = parse_json_object(text, kDepth);
  if (!file.ok()) return invalid("{}", file.status().message());
  return Reader(read_profile).read(*file);
}

std::string format_profile(const DeviceProfile& profile) {
  nlohmann::ordered_json object = {{"format", kFormat},
                                   {"name", profile.name},
                                   {"gflops", profile.operations_per_s / kGiga},
                                   {"gbs", profile.bytes_per_s / kGiga}};
  if (std::isfinite(profile.memory)) object["memory"] = profile.memory;
  return format_json(object);
}

}  // namespace limber
