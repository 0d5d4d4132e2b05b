// limber search: the best variant of an elastic model within a budget, on this machine.
#include <fmt/core.h>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/elastic_arguments.h"
#include "cli/options.h"
#include "cli/say.h"
#include "cli/table.h"
#include "jobs/json.h"
#include "jobs/search_job.h"

namespace limber {
namespace {

struct SearchCommand {
  SearchJobOptions job;
  bool json = false;
};

void print_json(const SearchOutcome& outcome) {
  const auto scored = [&](const Scored& s) {
    return Json::object(
        {{"variant", print(outcome.model, s.variant)}, {"predicted_s", s.seconds}, {"accuracy", s.accuracy}});
  };
  const Scored& best = outcome.best;
  const Json out =
      Json::object({{"variant", print(outcome.model, best.variant)},
                    {"accuracy", best.accuracy},
                    {"predicted_s", best.seconds},
                    {"measured_s", outcome.best_s},
                    {"limit_s", outcome.limit_s},
                    {"within", outcome.within},
                    {"original_s", outcome.original_s},
                    {"original_accuracy", outcome.original_accuracy},
                    {"images", outcome.images.count},
                    {"judged_on", outcome.images.text()},
                    {"evaluated", outcome.evaluated},
                    {"known", outcome.known},
                    {"reuse_saving", outcome.reuse_saving},
                    {"parameter_bytes", outcome.best_cost.parameter_bytes},
                    {"parameters", outcome.best_parameters},
                    {"original_parameters", outcome.original_parameters},
                    {"memory_bytes", outcome.best_memory},
                    {"flops", outcome.best_cost.flops},
                    {"seconds", outcome.seconds},
                    {"accuracy_95", interval_json(interval_of(best.accuracy, outcome.images.count))},
                    {"front", Json::list(outcome.front, scored)}});
  fmt::print("{}\n", out.text());
}

void print_table(const SearchOutcome& outcome) {
  Table table({{""}, {"latency", true}, {"of original", true}, {"accuracy", true}, {"variant"}});
  const auto row = [&](const std::string& name, double seconds, const std::string& accuracy,
                       const Variant& variant) {
    table.add({name, show_seconds(seconds), show_percent(seconds / outcome.original_s), accuracy,
               print(outcome.model, variant)});
  };
  const int64_t images = outcome.images.count;
  row("original", outcome.original_s, show_accuracy(outcome.original_accuracy, images), outcome.original);
  for (const Scored& s : outcome.front)
    row("best so far, predicted", s.seconds, fmt::format("{:.2f} %", 100 * s.accuracy), s.variant);
  row("best, measured", outcome.best_s, show_accuracy(outcome.best.accuracy, images), outcome.best.variant);
  fmt::print("{}", table.text());
  fmt::print("{} variants in {}, {} were known; shared beginnings saved {} of the work\n", outcome.evaluated,
             show_seconds(outcome.seconds), outcome.known, show_percent(outcome.reuse_saving));
  fmt::print("accuracies are of {}\n", outcome.images.text());
  fmt::print("next: limber export {} --variant {} -o subnet.onnx\n", outcome.folder,
             print(outcome.model, outcome.best.variant));
}

Result<int> search(const SearchCommand& options) {
  if (const Status wrong = check(options.job); !wrong.ok()) return usage_error(wrong);
  LIMBER_ASSIGN(const SearchOutcome outcome, on_console(run_search, options.job));
  if (outcome.stopped) {
    say("limber: stopped after {} variants, which are kept; the same command goes on\n", outcome.evaluated);
    return kExitFailed;
  }
  options.json ? print_json(outcome) : print_table(outcome);
  if (!outcome.within)
    say("warning: none of the best keeps {} when it is timed as a whole; the fastest takes {}\n",
        show_seconds(outcome.limit_s), show_seconds(outcome.best_s));
  return kExitDone;
}

}  // namespace

void add_search(CommandLine& line) {
  auto options = std::make_shared<SearchCommand>();
  SearchJobOptions& job = options->job;
  Arguments arguments =
      line.add("search", "Find an elastic model's best variant within a latency, on this machine",
               [options] { return search(*options); });
  add_common(arguments, job, options->json, Arguments::Need::kRequired, kElasticModelHelp);
  add_image_source(arguments, job.source, Arguments::Need::kRequired);
  arguments.parsed(
      "--latency", "LIMIT", "A share of the original's latency, as in 60%, or a time, as in 12ms",
      [&job](const std::string& text) { return parse_latency(text, job.latency, job.latency_share); });
  arguments.number(
      "--margin", job.margin, 0.0, 0.9,
      "Share of --latency that stays free when a variant is timed, so that it also keeps it on a "
      "worse day; default 0.02");
  arguments.number("--evaluations", job.evaluations, 1, 1000000,
                   "Variants to try, known ones included; default 200");
  arguments.parsed("--max-params", "N", "Parameters at most, as in 300K or 1.5M",
                   [&job](const std::string& text) { return parse_count(text, job.max_params); });
  arguments.parsed("--max-memory", "BYTES",
                   "Memory of a run at most, as in 20M: parameters and what lies between layers",
                   [&job](const std::string& text) { return parse_bytes(text, job.max_memory); });
  arguments.number("--max-flops", job.max_flops, 0.0, 1e18, "Operations of a run at most");
  arguments.choice<SearchMethod>(
      "--method", job.method,
      {{"evolution", SearchMethod::kEvolution}, {"annealing", SearchMethod::kAnnealing}},
      "How to search; default evolution");
  arguments.footer(
      "MODEL is the folder that 'limber elastify' made. What is found is kept in its variant table, also "
      "when\n"
      "Ctrl-C stops the search; the next search on the same images goes on from there.\n"
      "Examples:\n"
      "  limber search elastic --data photos --latency 60%\n"
      "  limber search elastic --data photos --latency 12ms --threads 1 --json");
}

}  // namespace limber
