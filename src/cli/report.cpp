// limber report: a page about trainings, from what they recorded.
#include "cli/commands.h"
#include "cli/json.h"
#include "report/summary.h"
#include "report/training_page.h"

namespace limber {
namespace {

constexpr size_t kMostWarnings = 10;  // for a run

struct ReportCommand {
  std::vector<std::string> runs;
  std::string output;
  bool json = false;
};

void warn_of_damage(const RunLog& run) {
  for (size_t i = 0; i < std::min(run.damaged.size(), kMostWarnings); ++i)
    fmt::print(stderr, "warning: {}; the line is left out\n", run.damaged[i]);
  if (run.damaged.size() > kMostWarnings)
    fmt::print(stderr, "warning: {}: {} more damaged lines are left out\n", run.path,
               run.damaged.size() - kMostWarnings);
}

template <typename T>
void set_known(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json.set(key, *value);
}

Json summary_json(const RunSummary& s, const RunLog& run) {
  Json out = Json::object({{"run", s.run},
                           {"path", s.path},
                           {"strategy", s.strategy},
                           {"epochs", s.epochs},
                           {"planned_epochs", s.planned_epochs},
                           {"steps", s.steps}});
  set_known(out, "rho", s.rho);
  set_known(out, "best_accuracy", s.best_accuracy);
  set_known(out, "best_epoch", s.best_epoch);
  set_known(out, "last_accuracy", s.last_accuracy);
  set_known(out, "train_s", s.seconds);
  set_known(out, s.ratio_of_step ? "step_ratio_to_full" : "ratio_to_full", s.ratio);
  out.set("selections", run.selections.size());
  set_known(out, "tensors_chosen", s.chosen);
  set_known(out, "tensors", s.tensors);
  set_known(out, "time_share", s.share);
  set_known(out, "arena_bytes", s.arena_bytes);
  set_known(out, "left", s.left);
  set_known(out, "returned", s.returned);
  set_known(out, "prediction_error", s.prediction_error);
  set_known(out, "overhead_s", s.overhead_s);
  out.set("resumed", run.resumed);
  out.set("damaged_lines", run.damaged.size());
  Json missing = Json::array();
  for (const std::string& note : what_is_missing(run, s)) missing.push(note);
  out.set("missing", missing);
  return out;
}

Result<int> write_report(const ReportCommand& options) {
  if (options.json && !options.output.empty())
    return usage_error(invalid("--json prints the summary and writes no page; give it or -o, not both"));
  std::vector<RunLog> runs;
  for (const std::string& path : options.runs) {
    LIMBER_ASSIGN(RunLog run, read_run(path));
    warn_of_damage(run);
    runs.push_back(std::move(run));
  }
  if (options.json) {
    const std::vector<RunSummary> summaries = summarise(runs);
    Json list = Json::array();
    for (size_t i = 0; i < runs.size(); ++i) list.push(summary_json(summaries[i], runs[i]));
    fmt::print("{}\n", Json::object({{"runs", list}}).text());
    return kExitDone;
  }
  const std::string output = options.output.empty() ? options.runs[0] + "/report.html" : options.output;
  LIMBER_TRY(os_files().write(output, training_page(runs)));
  fmt::print("report: {}\n", output);
  return kExitDone;
}

}  // namespace

void add_report(CommandLine& line) {
  auto options = std::make_shared<ReportCommand>();
  ReportCommand& o = *options;
  Arguments arguments = line.add("report", "A page about trainings: accuracy, time, what was trained when",
                                 [options] { return write_report(*options); });
  arguments.texts("runs", o.runs, "RUN", "Folders of trainings, one or more to compare",
                  Arguments::Need::kRequired);
  arguments.text("-o,--output", o.output, "FILE", "The page; default report.html in the first RUN");
  arguments.flag("--json", o.json, "Print the summary as JSON instead");
  arguments.footer(
      "The page is one HTML file that loads nothing else. It is made from RUN/history.jsonl alone, also "
      "while\n"
      "the training goes on; lines that cannot be read are named and left out.\n"
      "Examples:\n"
      "  limber report run                                one training, into run/report.html\n"
      "  limber report full elastic last -o compare.html  several, with times against that of strategy full\n"
      "  limber report full elastic --json                the numbers of the summary");
}

}  // namespace limber
