// limber device: how busy this machine is now, and how busy it will be.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "base/show.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/device_text.h"
#include "jobs/device_profile.h"

namespace limber {
namespace {

struct DeviceCommand {
  DeviceJobOptions job;
  DeviceProfileOptions profile;
  bool json = false, once = false;
};

// Lines that are written over by the next ones. A line that the terminal would break is cut: it would count
// as two.
class LivePanel {
 public:
  void show(const std::vector<std::string>& lines) {
    if (shown_ > 0) fmt::print("\x1b[{}A", shown_);
    const size_t width = terminal_width();
    for (const std::string& line : lines) fmt::print("\r{}\x1b[K\n", line.substr(0, width));
    fmt::print("\x1b[J");  // what is left of a longer panel
    std::fflush(stdout);
    shown_ = lines.size();
  }

 private:
  static size_t terminal_width() {
    winsize size{};
    const bool told = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return told ? size.ws_col - 1U : 79U;
  }
  size_t shown_ = 0;
};

void print_lines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) fmt::print("{}\n", line);
}

// Each reading in the form that suits where it goes.
class Printer {
 public:
  Printer(const DeviceCommand& command, bool terminal, bool single)
      : command_(command), terminal_(terminal), single_(single) {}

  void show_facts() {
    if (std::exchange(facts_shown_, true) || command_.json || !command_.job.replay.empty()) return;
    print_lines(facts_lines(device_facts()));
    fmt::print("\n");
    std::fflush(stdout);
  }

  void show(const DeviceReading& reading) {
    const double time = reading.sample.time_s;
    if (!first_) first_ = time;
    // A trace has its own interval; before its second sample nobody knows it.
    const double step = last_ && !command_.job.replay.empty() ? time - *last_ : command_.job.interval_s;
    const double ahead = step * command_.job.forecast_steps;
    last_ = time;
    show_facts();
    if (command_.json) {
      Json out = reading_json(reading);
      out.set("ahead_s", ahead);
      if (single_ && command_.job.replay.empty()) out.set("machine", facts_json(device_facts()));
      fmt::print("{}\n", single_ ? out.text() : out.line());
    } else if (single_) {
      print_lines(reading_lines(reading, ahead));
    } else if (terminal_) {
      panel_.show(reading_lines(reading, ahead));
    } else {
      fmt::print("{}\n", reading_line(reading, time - *first_));
    }
    std::fflush(stdout);
  }

 private:
  const DeviceCommand& command_;
  const bool terminal_, single_;
  bool facts_shown_ = false;
  std::optional<double> first_, last_;
  LivePanel panel_;
};

Result<int> profile(const DeviceCommand& command) {
  LIMBER_ASSIGN(const DeviceProfile found, write_profile(command.profile));
  if (command.json) {
    fmt::print("{}\n", format_profile(found));
  } else {
    fmt::print("{}: {} G operations/s, {} GB/s for networks\n", command.profile.output,
               show_rate(found.operations_per_s), show_rate(found.bytes_per_s));
  }
  return kExitDone;
}

Result<int> device(const DeviceCommand& command) {
  if (!command.profile.output.empty()) return profile(command);
  const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  DeviceJobOptions job = command.job;
  const bool endless = job.seconds <= 0 && job.record.empty() && job.replay.empty();
  const bool single = command.once || (!terminal && endless);
  if (single) job.readings = 1;
  job.replay_paced = terminal && !command.json;
  if (const Status wrong = check(job); !wrong.ok()) return usage_error(wrong);
  ConsoleControl console;
  Printer printer(command, terminal, single);
  if (terminal) printer.show_facts();  // before the first reading is there
  LIMBER_ASSIGN(const DeviceReport report,
                run_device(
                    job, [&](const DeviceReading& reading) { printer.show(reading); }, console.control));
  if (!command.json && !single && report.readings > 0) {
    fmt::print("\n");
    print_lines(report_lines(report, job.forecast_steps));
  }
  return kExitDone;
}

}  // namespace

void add_device(CommandLine& line) {
  auto options = std::make_shared<DeviceCommand>();
  DeviceJobOptions& job = options->job;
  Arguments arguments = line.add("device", "How busy this machine is, and how busy it will be",
                                 [options] { return device(*options); });
  arguments.flag("--json", options->json, "Machine-readable output; one object a line for several readings");
  arguments.flag("--once", options->once, "One reading, as without a terminal");
  arguments.number("--seconds", job.seconds, 0.0, 1e9, "How long to watch; 0 (default): until Ctrl-C");
  arguments.number("--interval", job.interval_s, 0.01, 3600.0, "Seconds between readings; default 1");
  arguments.number("--ahead", job.forecast_steps, 1, 1000,
                   "Readings that the forecast looks ahead; default 5");
  arguments.text("--record", job.record, "FILE", "Write each reading to this new file, a trace");
  arguments.text("--replay", job.replay, "FILE", "Show a trace instead of this machine");
  arguments.text("--profile", options->profile.output, "FILE",
                 "Write what this machine does for networks to FILE, for goals of 'limber port', and end");
  arguments.number("--threads", options->profile.threads, 0, 1024,
                   "With --profile: threads of networks; 0 (default): every core");
  arguments.footer(
      "In a terminal the readings are written over each other until Ctrl-C. Elsewhere there is one, or with\n"
      "--seconds, --record or --replay one line for each.\n"
      "Examples:\n"
      "  limber device\n"
      "  limber device --once --json\n"
      "  limber device --record busy.jsonl --seconds 600 --interval 0.5\n"
      "  limber device --replay busy.jsonl\n"
      "  limber device --profile board.json --threads 2");
}

}  // namespace limber
