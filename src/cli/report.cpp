// limber report: a page about trainings, or about streams that were followed, from what they recorded, or
// about an elastic model.
#include "cli/commands.h"
#include "cli/say.h"
#include "jobs/elastic_report.h"
#include "jobs/json.h"
#include "jobs/output.h"
#include "report/adapt_page.h"
#include "report/summary.h"
#include "report/training_page.h"
#include "variant/elastic_folder.h"

namespace limber {
namespace {

constexpr size_t kMostWarnings = 10;  // for a run

struct ReportCommand {
  std::vector<std::string> runs;
  std::string output;
  bool json = false;
};

void warn_of_damage(const std::string& folder, const std::vector<std::string>& damaged) {
  for (size_t i = 0; i < std::min(damaged.size(), kMostWarnings); ++i)
    say("warning: {}; the line is left out\n", damaged[i]);
  if (damaged.size() > kMostWarnings)
    say("warning: {}: {} more damaged lines are left out\n", folder, damaged.size() - kMostWarnings);
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
  out.set("missing", Json::list(what_is_missing(run, s)));
  return out;
}

Status write_page(const ReportCommand& options, const std::string& page) {
  const std::string output = options.output.empty() ? options.runs[0] + "/report.html" : options.output;
  LIMBER_TRY(check_output_parent(output));
  LIMBER_TRY(os_files().write(output, page));
  fmt::print("report: {}\n", output);
  return {};
}

Json elastic_json(const ElasticReport& report) {
  const auto point = [](const VariantPoint& p) {
    return Json::object(
        {{"variant", p.name}, {"seconds", p.seconds()}, {"accuracy", p.accuracy}, {"images", p.images}});
  };
  const auto machine = [&](const ElasticReport::Machine& of) {
    return Json::object(
        {{"machine", of.name}, {"evaluated", of.points.size()}, {"front", Json::list(of.front, point)}});
  };
  const auto search = [](const SearchRecord& s) {
    return Json::object({{"variant", s.variant},
                         {"limit_s", s.limit_s},
                         {"measured_s", s.measured_s},
                         {"accuracy", s.accuracy},
                         {"within", s.within},
                         {"seconds", s.seconds}});
  };
  const auto exits = [](const ExitsRecord& e) {
    return Json::object({{"variant", e.variant},
                         {"measured_s", e.measured_s},
                         {"original_s", e.original_s},
                         {"accuracy", e.accuracy},
                         {"seconds", e.seconds}});
  };
  return Json::object({{"blocks", report.blocks},
                       {"alternatives", report.alternatives.size()},
                       {"variants", report.variants},
                       {"machines", Json::list(report.machines, machine)},
                       {"searches", Json::list(report.searches, search)},
                       {"exits", Json::list(report.exits, exits)}});
}

Result<int> write_elastic_report(const ReportCommand& options) {
  if (options.runs.size() > 1)
    return usage_error(
        invalid("{} is an elastic model; a page about it is about nothing else, but {} folders "
                "are given",
                options.runs[0], options.runs.size()));
  LIMBER_ASSIGN(const ElasticReport report, read_elastic_report(options.runs[0]));
  warn_of_damage(options.runs[0], report.damaged);
  if (options.json) {
    fmt::print("{}\n", elastic_json(report).text());
    return kExitDone;
  }
  LIMBER_TRY(write_page(options, elastic_page(report)));
  return kExitDone;
}

Json adapt_summary_json(const AdaptLog& run) {
  const AdaptSummary sum = summarise(run);
  Json out = Json::object({{"run", run.name},
                           {"path", run.path},
                           {"strategy", run.option("strategy")},
                           {"guarded", run.option("guard") != "off"},
                           {"frames", sum.frames},
                           {"labelled_frames", sum.labelled},
                           {"accuracy", sum.accuracy},
                           {"frozen_accuracy", sum.frozen},
                           {"estimate_error", sum.estimate_error},
                           {"alarms", sum.alarms},
                           {"adapted", sum.adapted},
                           {"rejected", sum.rejected},
                           {"rolled_back", sum.rolled_back},
                           {"returned", sum.returned},
                           {"failed", sum.failed},
                           {"resumed", run.resumed},
                           {"damaged_lines", run.damaged.size()}});
  if (run.end) set_known(out, "worst_below_frozen", run.end->worst_below_frozen);
  return out;
}

Result<int> write_adapt_report(const ReportCommand& options) {
  std::vector<AdaptLog> runs;
  for (const std::string& path : options.runs) {
    LIMBER_ASSIGN(AdaptLog run, read_adapt_run(path));
    warn_of_damage(run.path, run.damaged);
    runs.push_back(std::move(run));
  }
  if (options.json) {
    fmt::print("{}\n", Json::object({{"runs", Json::list(runs, adapt_summary_json)}}).text());
    return kExitDone;
  }
  LIMBER_TRY(write_page(options, adapt_page(runs)));
  return kExitDone;
}

// Of a folder where several strategies were compared: theirs.
std::vector<std::string> expand_adapt_runs(const std::vector<std::string>& given) {
  std::vector<std::string> runs;
  for (const std::string& path : given) {
    std::vector<std::string> inside;
    if (!is_adapt_run(path)) inside = adapt_runs_in(path);
    if (inside.empty()) inside.push_back(path);
    runs.insert(runs.end(), inside.begin(), inside.end());
  }
  return runs;
}

Result<int> write_report(ReportCommand& options) {
  if (options.json && !options.output.empty())
    return usage_error(invalid("--json prints the summary and writes no page; give it or -o, not both"));
  if (is_elastic(options.runs[0])) return write_elastic_report(options);
  const std::vector<std::string> followed = expand_adapt_runs(options.runs);
  if (is_adapt_run(followed[0])) {
    if (options.output.empty()) options.output = options.runs[0] + "/report.html";
    options.runs = followed;
    return write_adapt_report(options);
  }
  std::vector<RunLog> runs;
  for (const std::string& path : options.runs) {
    LIMBER_ASSIGN(RunLog run, read_run(path));
    warn_of_damage(run.path, run.damaged);
    runs.push_back(std::move(run));
  }
  if (options.json) {
    const std::vector<RunSummary> summaries = summarise(runs);
    Json list = Json::array();
    for (size_t i = 0; i < runs.size(); ++i) list.push(summary_json(summaries[i], runs[i]));
    fmt::print("{}\n", Json::object({{"runs", list}}).text());
    return kExitDone;
  }
  LIMBER_TRY(write_page(options, training_page(runs)));
  return kExitDone;
}

}  // namespace

void add_report(CommandLine& line) {
  auto options = std::make_shared<ReportCommand>();
  ReportCommand& o = *options;
  Arguments arguments =
      line.add("report", "A page about trainings, streams that were followed, or an elastic model's variants",
               [options] { return write_report(*options); });
  arguments.texts("runs", o.runs, "RUN",
                  "Folders of trainings, or of streams that were followed, one or more to compare, or one of "
                  "an elastic model",
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
      "  limber report full elastic --json                the numbers of the summary\n"
      "  limber report followed                           what 'limber adapt' did with each strategy\n"
      "  limber report shapes                             variants that searches of an elastic model found");
}

}  // namespace limber
