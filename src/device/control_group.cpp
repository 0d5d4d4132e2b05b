#include "device/control_group.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace limber {
namespace {

constexpr double kNoLimit = 4e18;  // the first version says so with the largest number of whole pages
constexpr int kDeepest = 64;  // groups within groups, a few in truth: a bound for a file that makes no sense

// The group of `controller` ("" for the second version) below where it is mounted, and all that it lies in.
// The last is always the mount itself: what a container sees of its own group.
std::vector<std::string> folders_of(const std::string& root, const std::string& controller,
                                    const std::string& mounted) {
  std::vector<std::string> folders;
  const std::string text = kernel_text(root + "/proc/self/cgroup");
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = take_line(rest);  // "4:cpu,cpuacct:/group", "0::/group"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string names = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    if (controller.empty() ? names != ",," : names.find("," + controller + ",") == std::string::npos)
      continue;
    std::string group(line.substr(second + 1));
    for (int depth = 0; depth < kDeepest && group.size() > 1; ++depth) {
      folders.push_back(mounted + group);
      group.resize(std::min(group.rfind('/'), group.size()));
    }
  }
  folders.push_back(mounted);
  return folders;
}

std::optional<double> cpu_limit_of(const KernelFile& cpu_max) {
  std::array<char, 64> buffer;
  std::string_view text = cpu_max.read(buffer);  // "QUOTA PERIOD" in microseconds
  const auto quota = take_number(text), period = take_number(text);
  return quota && period && *quota > 0 && *period > 0 ? std::optional<double>(*quota / *period)
                                                      : std::nullopt;
}

std::optional<double> cpu_limit_of(const KernelFile& quota_file, const KernelFile& period_file) {
  const auto quota = quota_file.number(), period = period_file.number();
  return quota && period && *quota > 0 && *period > 0 ? std::optional<double>(*quota / *period)
                                                      : std::nullopt;
}

std::optional<double> memory_limit_of(const KernelFile& file) {
  const auto limit = file.number();
  return limit && *limit > 0 && *limit < kNoLimit ? limit : std::nullopt;
}

// The folder with the lowest limit; the process's own when none has one.
template <typename Limit>
const std::string& tightest(const std::vector<std::string>& folders, const Limit& limit_of) {
  double lowest = std::numeric_limits<double>::infinity();
  const std::string* found = &folders.front();
  for (const std::string& folder : folders) {
    const std::optional<double> limit = limit_of(folder);
    if (!limit || *limit >= lowest) continue;
    lowest = *limit;
    found = &folder;
  }
  return *found;
}

}  // namespace

ControlGroup::ControlGroup(const std::string& root) {
  const std::string mounted = root + "/sys/fs/cgroup";
  std::vector<std::string> second = folders_of(root, "", mounted);
  for (const std::string& folder : folders_of(root, "", mounted + "/unified")) second.push_back(folder);

  const std::string cpu = tightest(
      second, [](const std::string& folder) { return cpu_limit_of(KernelFile(folder + "/cpu.max")); });
  cpu_max_ = KernelFile(cpu + "/cpu.max");
  cpu_stat_ = KernelFile(cpu + "/cpu.stat");
  if (!cpu_limit_of(cpu_max_)) {
    const auto first = folders_of(root, "cpu", mounted + "/cpu");
    const std::string old = tightest(first, [](const std::string& folder) {
      return cpu_limit_of(KernelFile(folder + "/cpu.cfs_quota_us"),
                          KernelFile(folder + "/cpu.cfs_period_us"));
    });
    quota_ = KernelFile(old + "/cpu.cfs_quota_us");
    period_ = KernelFile(old + "/cpu.cfs_period_us");
    // The two controllers are mounted together nearly everywhere.
    cpuacct_ = KernelFile(old + "/cpuacct.usage");
    if (quota_.there()) cpu_stat_ = KernelFile(old + "/cpu.stat");
  }

  const std::string memory = tightest(
      second, [](const std::string& folder) { return memory_limit_of(KernelFile(folder + "/memory.max")); });
  memory_max_ = KernelFile(memory + "/memory.max");
  memory_now_ = KernelFile(memory + "/memory.current");
  memory_stat_ = KernelFile(memory + "/memory.stat");
  if (!memory_limit_of(memory_max_)) {
    const auto first = folders_of(root, "memory", mounted + "/memory");
    const std::string old = tightest(first, [](const std::string& folder) {
      return memory_limit_of(KernelFile(folder + "/memory.limit_in_bytes"));
    });
    if (KernelFile limit(old + "/memory.limit_in_bytes"); limit.there()) {
      memory_max_ = std::move(limit);
      memory_now_ = KernelFile(old + "/memory.usage_in_bytes");
      memory_stat_ = KernelFile(old + "/memory.stat");
    }
  }
}

std::optional<double> ControlGroup::cpu_limit() const {
  const auto limit = cpu_limit_of(cpu_max_);
  return limit ? limit : cpu_limit_of(quota_, period_);
}

void ControlGroup::read_cpu(double time_s, GroupUse& use) {
  std::array<char, 1024> buffer;
  const std::string_view stat = cpu_stat_.read(buffer);
  std::optional<double> used_s = number_after(stat, "usage_usec ");
  if (used_s) *used_s *= 1e-6;
  if (const auto nanoseconds = cpuacct_.number()) used_s = *nanoseconds * 1e-9;
  const auto seconds = time_.since_last(time_s), used = used_s_.since_last(used_s);
  const auto periods = periods_.since_last(number_after(stat, "nr_periods ")),
             throttled = throttled_.since_last(number_after(stat, "nr_throttled "));
  use.cpu_limit = cpu_limit();
  if (!use.cpu_limit) return;
  if (seconds && *seconds > 0 && used)
    use.quota_used = std::clamp(*used / (*seconds * *use.cpu_limit), 0.0, 1.0);
  if (periods && throttled) use.throttled = *periods > 0 ? std::clamp(*throttled / *periods, 0.0, 1.0) : 0;
}

void ControlGroup::read_memory(GroupUse& use) const {
  use.memory_limit = memory_limit_of(memory_max_);
  if (!use.memory_limit) return;
  use.memory_used = memory_now_.number();
  if (!use.memory_used) return;
  std::array<char, 4096> buffer;
  const std::string_view stat = memory_stat_.read(buffer);
  auto droppable = number_after(stat, "total_inactive_file ");
  if (!droppable) droppable = number_after(stat, "inactive_file ");
  use.memory_used = std::max(0.0, *use.memory_used - droppable.value_or(0));
}

GroupUse ControlGroup::read(double time_s) {
  GroupUse use;
  read_cpu(time_s, use);
  read_memory(use);
  return use;
}

}  // namespace limber
