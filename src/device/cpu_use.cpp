#include "device/cpu_use.h"

#include <algorithm>
#include <array>

namespace limber {
namespace {

constexpr int kMostCores = 8192;   // the most that Linux is built for
constexpr double kLeastTicks = 2;  // of 10 ms, per core, for a share that means something

// Of a line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. What follows is counted in
// user and nice already.
constexpr size_t kTimes = 8, kIdle = 3, kWaiting = 4;

// The number of "cpu12 ..."; -1 for the sum of all and for other lines. `line` keeps what follows.
int take_core(std::string_view& line) {
  if (!line.starts_with("cpu") || line.starts_with("cpu ")) return -1;
  line.remove_prefix(3);
  const auto core = take_number(line);
  return core && *core >= 0 && *core < kMostCores ? static_cast<int>(*core) : -1;
}

// User and system time of all threads: the 14th and the 15th word. The second is the name of the program in
// brackets, which may hold anything.
std::optional<double> own_ticks(std::string_view text) {
  const size_t name = text.rfind(')');
  if (name == std::string_view::npos) return std::nullopt;
  text.remove_prefix(name + 1);
  for (int word = 3; word < 14; ++word) {
    const size_t start = text.find_first_not_of(' ');
    if (start == std::string_view::npos) return std::nullopt;
    text.remove_prefix(std::min(text.find(' ', start), text.size()));
  }
  const auto user = take_number(text), system = take_number(text);
  return user && system ? std::optional<double>(*user + *system) : std::nullopt;
}

}  // namespace

std::vector<int> parse_core_list(std::string_view text) {
  std::vector<int> cores;
  while (!text.empty()) {
    const auto first = take_number(text);
    auto last = first;
    if (first && text.starts_with('-')) {
      text.remove_prefix(1);
      last = take_number(text);
    }
    if (!first || !last || *first < 0 || *last < *first || *last >= kMostCores) return {};
    for (int core = static_cast<int>(*first); core <= static_cast<int>(*last); ++core) cores.push_back(core);
    if (text.empty()) break;
    if (!text.starts_with(',') || cores.size() > kMostCores) return {};
    text.remove_prefix(1);
  }
  return cores;
}

CpuUse::CpuUse(const std::string& root) : stat_(root + "/proc/stat"), self_(root + "/proc/self/stat") {
  const std::string status = kernel_text(root + "/proc/self/status");
  constexpr std::string_view kAllowed = "Cpus_allowed_list:";
  for (std::string_view rest = status; !rest.empty();) {
    std::string_view line = take_line(rest);
    if (!line.starts_with(kAllowed)) continue;
    line.remove_prefix(kAllowed.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    cores_ = parse_core_list(line);
  }
  // Lines of cores come first, and are all that is needed of a long file.
  const std::string stat = kernel_text(root + "/proc/stat");
  size_t cores = 1;
  for (std::string_view rest = stat; !rest.empty();) cores += take_line(rest).starts_with("cpu") ? 1 : 0;
  buffer_.resize(cores * 200);
  read();
}

std::optional<CpuUse::Ticks> CpuUse::ticks() {
  Ticks now;
  for (std::string_view rest = stat_.read(buffer_); rest.starts_with("cpu");) {
    if (rest.find('\n') == std::string_view::npos) break;  // cut off
    std::string_view line = take_line(rest);
    const int core = take_core(line);
    if (core < 0 || (!cores_.empty() && !std::binary_search(cores_.begin(), cores_.end(), core))) continue;
    ++now.cores;
    for (size_t i = 0; i < kTimes; ++i) {
      const double time = take_number(line).value_or(0);
      now.all += time;
      if (i != kIdle && i != kWaiting) now.busy += time;
    }
  }
  if (now.cores == 0) return std::nullopt;
  std::array<char, 1024> buffer;
  const auto own = own_ticks(self_.read(buffer));
  now.own = own.value_or(0);
  now.own_known = own.has_value();
  return now;
}

std::optional<CpuShares> CpuUse::read() {
  const auto now = ticks();
  // A core that comes or goes makes sums that cannot be compared.
  if (!now || !last_ || now->cores != last_->cores || now->own_known != last_->own_known ||
      now->all < last_->all) {
    last_ = now;
    shares_.reset();
    return shares_;
  }
  const double all = now->all - last_->all;
  if (all < kLeastTicks * now->cores) return shares_;
  const auto share = [&](double ticks) { return std::clamp(ticks / all, 0.0, 1.0); };
  CpuShares shares{.busy = share(now->busy - last_->busy)};
  if (now->own_known) {
    // The two are counted differently, and may disagree by a tick.
    shares.own = share(now->own - last_->own);
    shares.others = std::max(0.0, shares.busy - *shares.own);
  }
  last_ = now;
  shares_ = shares;
  return shares_;
}

}  // namespace limber
