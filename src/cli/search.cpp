// limber search: the best variant of an elastic model within a budget, on this machine.
#include <fmt/core.h>

#include <filesystem>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/find_variant.h"
#include "cli/json.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/units.h"

namespace limber {
namespace {

// The best that is known for every twentieth of the original's latency.
std::vector<Scored> levels_of(const SearchWork& work, const SearchOutcome& outcome) {
  constexpr int kLevels = 20;
  std::vector<double> levels;
  for (int i = 1; i <= kLevels; ++i) levels.push_back(work.table.original() * i / kLevels);
  return pareto_front(best_per_level(outcome.all, levels));
}

int64_t parameter_count(const SearchSpace& space, const Variant& variant) {
  return static_cast<int64_t>(space.cost(variant).parameter_bytes / kParameterBytes);
}

Status report(bool json, const SearchWork& work, const SearchOutcome& outcome) {
  LIMBER_ASSIGN(const SearchSpace space, make_search_space(work.folder.model, work.table));
  const Scored& best = outcome.best;
  LIMBER_ASSIGN(const GraphCost cost, cost_of(work.folder.model, best.variant));
  const std::vector<Scored> front = levels_of(work, outcome);
  if (json) {
    Json list = Json::array();
    for (const Scored& s : front)
      list.push(Json::object(
          {{"variant", print(s.variant)}, {"predicted_s", s.seconds}, {"accuracy", s.accuracy}}));
    Json out = Json::object({{"variant", print(best.variant)},
                             {"accuracy", best.accuracy},
                             {"predicted_s", best.seconds},
                             {"measured_s", outcome.best_s},
                             {"limit_s", outcome.limit_s},
                             {"within", outcome.within},
                             {"original_s", outcome.original_s},
                             {"original_accuracy", outcome.original_accuracy},
                             {"images", work.images.count()},
                             {"evaluated", outcome.evaluated},
                             {"known", outcome.all.size() - outcome.evaluated},
                             {"reuse_saving", work.runner->counts().saving()},
                             {"parameter_bytes", cost.parameter_bytes},
                             {"parameters", parameter_count(space, best.variant)},
                             {"original_parameters", parameter_count(space, space.original())},
                             {"memory_bytes", outcome.best_memory},
                             {"flops", cost.flops},
                             {"seconds", outcome.seconds}});
    out.set("front", std::move(list));
    fmt::print("{}\n", out.text());
    return {};
  }
  Table table({{""}, {"latency", true}, {"of original", true}, {"accuracy", true}, {"variant"}});
  const auto row = [&](const std::string& name, double seconds, double accuracy, const Variant& variant) {
    table.add({name, show_seconds(seconds), show_percent(seconds / outcome.original_s),
               fmt::format("{:.2f} %", 100 * accuracy), print(variant)});
  };
  row("original", outcome.original_s, outcome.original_accuracy, original_variant(work.folder.model));
  for (const Scored& s : front) row("best so far, predicted", s.seconds, s.accuracy, s.variant);
  row("best, measured", outcome.best_s, best.accuracy, best.variant);
  fmt::print("{}", table.text());
  fmt::print("{} variants on {} images in {}, {} were known; shared beginnings saved {} of the work\n",
             outcome.evaluated, work.images.count(), show_seconds(outcome.seconds),
             outcome.all.size() - outcome.evaluated, show_percent(work.runner->counts().saving()));
  fmt::print("next: limber export {} --variant {} -o subnet.onnx\n", work.folder.path, print(best.variant));
  return {};
}

Result<int> run_search(const SearchCommand& options) {
  const double start = now_seconds();
  if (options.search.latency <= 0 && options.search.latency_share <= 0)
    return usage_error(
        invalid("--latency is missing: a share of the original's, as in 60%, or a time, as in 12ms"));
  if (!std::filesystem::exists(options.model + "/manifest.json"))
    return usage_error(invalid("{} is no elastic model; 'limber elastify' makes one", options.model));
  LIMBER_ASSIGN(const auto opened, open_search(options));
  SearchWork& work = *opened;
  catch_stop_signals();
  LIMBER_TRY(load_images(work, options.source, options));
  const double loaded = now_seconds();
  LIMBER_TRY(measure_blocks(work));
  const double timed = now_seconds();
  LIMBER_ASSIGN(SearchOutcome outcome, find_variant(options, work));
  if (outcome.stopped) {
    fmt::print(stderr, "limber: stopped after {} variants, which are kept; the same command goes on\n",
               outcome.evaluated);
    return kExitFailed;
  }
  outcome.seconds = now_seconds() - start;
  work.folder.info.notes[std::string(kSearchTimesNote)] =
      search_times_note({{"loading", loaded - start},
                         {"timing", timed - loaded},
                         {"evaluation", outcome.evaluation_s},
                         {"confirmation", outcome.confirmation_s}});
  LIMBER_TRY(save_elastic_info(work.folder.path, work.folder.info));
  LIMBER_TRY(report(options.json, work, outcome));
  if (!outcome.within)
    fmt::print(stderr,
               "warning: none of the best keeps {} when it is timed as a whole; the fastest takes {}\n",
               show_seconds(outcome.limit_s), show_seconds(outcome.best_s));
  return kExitDone;
}

}  // namespace

void declare_search(Arguments& arguments, SearchCommand& o) {
  add_common(arguments, o, Arguments::Need::kRequired, kElasticModelHelp);
  add_image_source(arguments, o.source, Arguments::Need::kRequired);
  arguments.parsed("--latency", "LIMIT",
                   "A share of the original's latency, as in 60%, or a time, as in 12ms",
                   [&o](const std::string& text) {
                     return parse_latency(text, o.search.latency, o.search.latency_share);
                   });
  arguments.number(
      "--margin", o.margin, 0.0, 0.9,
      "Share of --latency that stays free when a variant is timed, so that it also keeps it on a "
      "worse day; default 0.02");
  arguments.number("--evaluations", o.search.max_evaluations, 1, 1000000,
                   "Variants to try, known ones included; default 200");
  arguments.parsed("--max-params", "N", "Parameters at most, as in 300K or 1.5M",
                   [&o](const std::string& text) { return parse_count(text, o.max_params); });
  arguments.parsed("--max-memory", "BYTES",
                   "Memory of a run at most, as in 20M: parameters and what lies between layers",
                   [&o](const std::string& text) { return parse_bytes(text, o.max_memory); });
  arguments.number("--max-flops", o.search.max_flops, 0.0, 1e18, "Operations of a run at most");
  arguments.choice("--method", o.method, {"evolution", "annealing"}, "How to search; default evolution");
  arguments.footer(
      "MODEL is the folder that 'limber elastify' made. What is found is kept in its variant table, also "
      "when\n"
      "Ctrl-C stops the search; the next search on the same images goes on from there.\n"
      "Examples:\n"
      "  limber search elastic --data photos --latency 60%\n"
      "  limber search elastic --data photos --latency 12ms --threads 1 --json");
}

void add_search(CommandLine& line) {
  auto options = std::make_shared<SearchCommand>();
  Arguments arguments =
      line.add("search", "Find an elastic model's best variant within a latency, on this machine",
               [options] { return run_search(*options); });
  declare_search(arguments, *options);
}

}  // namespace limber
