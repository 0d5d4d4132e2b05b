// limber demo: the whole story on built-in data.
#include <fmt/core.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/demo_output.h"
#include "cli/job_words.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "jobs/demo_job.h"

namespace limber {
namespace {

constexpr const char* kFolder = "limber-demo";

struct DemoCommand {
  std::string output;
  int threads = 0;
  uint64_t seed = 0;
  bool quick = false, json = false;
};

// Tells the story in lines, with the commands that do the same.
class Teller : public DemoTeller {
 public:
  Teller(std::FILE* to, Console& console) : to_(to), console_(console) {}
  void on_chapter(int number, int of, const std::string& title, const std::string& why) override {
    std::string indented;
    for (const char c : why) indented += c == '\n' ? "\n     " : std::string(1, c);
    say(fmt::format("\n{}/{}  {}\n     {}\n", number, of, title, indented));
  }
  std::string on_call(const DemoCall& call) override {
    const std::string line = command_line(call);
    say(fmt::format("   $ {}\n", line));
    return line;
  }
  void on_result(const std::string& text) override { say(fmt::format("   -> {}\n", text)); }

 private:
  void say(const std::string& text) {
    console_.clear();
    fmt::print(to_, "{}", text);
    std::fflush(to_);
  }

  std::FILE* const to_;
  Console& console_;
};

// The folder that was asked for, or the first of "limber-demo", "limber-demo-2" .. that is not there.
std::string choose_folder(const std::string& asked) {
  if (!asked.empty()) return asked;
  std::string folder = kFolder;
  for (int i = 2; std::filesystem::exists(folder); ++i) folder = fmt::format("{}-{}", kFolder, i);
  return folder;
}

void print_tables(const DemoReport& report) {
  fmt::print("\nWhat was gained\n\n");
  Table trainings({{"learning the new domain"}, {"time", true}, {"faster", true}, {"accuracy", true}});
  trainings.add({"nothing: the first model", "", "", show_percent(report.base_shifted)});
  for (const DemoTraining& t : report.trainings)
    trainings.add({t.name, fmt::format("{:.1f} s", t.seconds),
                   fmt::format("{:.2f}x", report.trainings[0].seconds / t.seconds),
                   show_percent(t.accuracy)});
  fmt::print("{}\n", trainings.text());
  Table budgets({{"running within a budget"},
                 {"promised", true},
                 {"measured", true},
                 {"of original", true},
                 {"kept"},
                 {"accuracy", true},
                 {"parameters", true}});
  budgets.add({"original", "", show_seconds(report.original_s), "100 %", "",
               show_percent(report.original_accuracy), fmt::format("{}", report.original_parameters)});
  for (const DemoBudget& b : report.budgets)
    budgets.add({fmt::format("{:.0f} %", 100 * b.share), show_seconds(b.promised_s),
                 show_seconds(b.measured_s), fmt::format("{:.0f} %", 100 * report.measured_share(b)),
                 report.within(b) ? "yes" : "NO", show_percent(b.accuracy), fmt::format("{}", b.parameters)});
  fmt::print("{}\n", budgets.text());
  Table serving({{"served within " + show_seconds(report.serving.budget_s)},
                 {"machine"},
                 {"in time", true},
                 {"p50", true},
                 {"p95", true},
                 {"accuracy", true},
                 {"switches", true}});
  for (const DemoServed& run : report.serving.runs)
    for (const DemoPhase& p : run.phases)
      serving.add({run.name, p.busy ? "busy neighbour" : "idle", show_percent(p.share_within()),
                   show_seconds(p.p50_s), show_seconds(p.p95_s), show_percent(p.accuracy),
                   fmt::format("{}", p.switches)});
  fmt::print("{}\n", serving.text());
  fmt::print("Accuracies are of {} images that played no part before; all was measured here, in {:.0f} s.\n",
             report.judged_images, report.seconds);
}

Result<int> demo(const DemoCommand& options) {
  DemoJobOptions job = options.quick ? quick_demo() : DemoJobOptions{};
  job.folder = choose_folder(options.output);
  job.seed = options.seed;
  job.threads = options.threads;
  std::FILE* const talk = options.json ? stderr : stdout;
  ConsoleControl console;
  Teller teller(talk, console.console);
  fmt::print(
      talk,
      "A model learns, meets a changed world, learns again in about half the time, changes its shape to fit\n"
      "a budget, and keeps it beside a busy neighbour. {}; all files go to {}. Ctrl-C stops.\n",
      options.quick ? "With --quick less well, in a minute or two" : "It takes about five minutes",
      job.folder);
  const Result<DemoReport> told = run_demo(job, console.control, &teller);
  console.console.clear();
  if (!told.ok()) {
    if (!stop_asked()) return told.status();
    say("limber: stopped; what was done is in {}\n", job.folder);
    return kExitFailed;
  }
  if (options.json) {
    fmt::print("{}\n", demo_json(*told).text());
    return kExitDone;
  }
  print_tables(*told);
  fmt::print("\nThe report, with plots: {0}\n  xdg-open {0}\n",
             std::filesystem::absolute(job.folder + "/report.html").lexically_normal().string());
  return kExitDone;
}

}  // namespace

void add_demo(CommandLine& line) {
  auto options = std::make_shared<DemoCommand>();
  Arguments arguments =
      line.add("demo", "The whole story on built-in data, in minutes", [options] { return demo(*options); });
  arguments.text("-o,--output", options->output, "DIR",
                 "Folder to make; default limber-demo, or limber-demo-2 and so on where that is there");
  arguments.seed("--seed", options->seed, "Of the data and of all that is random; default 0");
  arguments.number("--threads", options->threads, 0, 1024, "Threads to use; default every core");
  arguments.flag("--quick", options->quick, "Less data and less time: a minute or two, and smaller gains");
  arguments.flag("--json", options->json, "The numbers as JSON; the story goes to stderr");
  arguments.footer(
      "Needs no file and no network. Ctrl-C stops it; what was done until then stays in the folder.\n"
      "Examples:\n"
      "  limber demo\n"
      "  limber demo --quick --seed 3 -o story");
}

}  // namespace limber
