#include "cli/elastic_console.h"

#include <fmt/format.h>

#include <charconv>
#include <csignal>

#include "base/file.h"

namespace limber {
namespace {

constexpr size_t kMaxFile = 4096;

std::atomic<bool> hung_up{false};

void note_hang_up(int) { hung_up = true; }

std::optional<double> parse_share(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  double share = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), share);
  const bool whole = problem == std::errc() && end == text.data() + text.size();
  return whole && share > 0 && share <= 1 ? std::optional(share) : std::nullopt;
}

}  // namespace

ElasticConsole::ElasticConsole(ElasticTrainer& elastic, Progress& progress, std::string run,
                               std::atomic<bool>& stop)
    : elastic_(elastic), progress_(progress), run_(std::move(run)), stop_(stop) {
  struct sigaction action {};
  action.sa_handler = note_hang_up;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGHUP, &action, nullptr);
}

Status ElasticConsole::on_step_begin(TrainingSession& /*session*/, const TrainingState& /*state*/) {
  if (hung_up.exchange(false)) read_rho();
  return {};
}

void ElasticConsole::read_rho() {
  const std::string path = run_ + "/rho";
  const auto text = os_files().read(path, kMaxFile);
  if (!text.ok()) {
    stop_ = true;
    return;
  }
  progress_.clear();
  const std::optional<double> share = parse_share(*text);
  if (!share) {
    fmt::print(stderr, "warning: {} should hold one number above 0 and at most 1; --rho stays {:g}\n", path,
               elastic_.rho());
    return;
  }
  fmt::print(stderr, "note: the share of time is {:g} from now on and was {:g}\n", *share, elastic_.rho());
  elastic_.set_rho(*share);
}

Status ElasticConsole::on_step_end(TrainingSession& /*session*/, const StepReport& report) {
  const std::string now = elastic_.summary();
  if (now.empty() || now == said_) return {};
  progress_.clear();
  fmt::print(stderr, "step {}: {}\n", report.state.step, now);
  if (!elastic_.selection().within) {
    fmt::print(stderr,
               "warning: no choice is as fast as --rho {:g}; the fastest takes {:.0f} % of the time of all\n",
               elastic_.rho(), 100 * elastic_.selection().share);
  }
  said_ = now;
  return {};
}

}  // namespace limber
