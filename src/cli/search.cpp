// limber search: the best variant of an elastic model within a budget, on this machine.
#include "supernet/search.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/search_journal.h"
#include "cli/search_work.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/units.h"
#include "supernet/tune.h"

namespace limber {
namespace {

constexpr double kParameterBytes = sizeof(float);

struct SearchCommand : CommonOptions {
  ImageSource source;
  std::string method = "evolution";
  SearchOptions search;
  double max_params = 0;
  size_t max_memory = 0;  // bytes; 0: any number
};

struct Outcome {
  double original_s = 0, original_accuracy = 0, limit_s = 0, seconds = 0;
  std::vector<Scored> all;  // evaluated now and before
  size_t evaluated = 0;     // now
  Scored best;
  double best_s = 0;  // measured
  uint64_t best_memory = 0;
  bool within = false;  // false: nothing that was timed keeps the limit, and `best` is the fastest of it
};

// What the command line asks of the library. Of the variants to try those count that are known already.
SearchOptions make_options(const SearchCommand& options, const SearchWork& work,
                           const std::vector<Scored>& known) {
  SearchOptions how = options.search;
  how.seed = options.seed;
  how.stop = &stop_asked();
  how.known = known;
  how.seeds = tuned_variants(work.folder.model, work.folder.info);
  if (options.method == "annealing") how.method = SearchMethod::kAnnealing;
  how.max_parameter_bytes = kParameterBytes * options.max_params;
  const auto memory = static_cast<double>(options.max_memory);
  if (memory > 0 && (how.max_parameter_bytes == 0 || memory < how.max_parameter_bytes))
    how.max_parameter_bytes = memory;
  // A share of the original as it was measured or, on a machine too busy for that, as the sum of its blocks.
  if (how.latency <= 0)
    how.latency = how.latency_share * std::min(work.table.samples[0].seconds, work.table.original());
  const auto there = std::count_if(known.begin(), known.end(), [&](const Scored& one) {
    return one.seconds <= how.latency && one.seconds >= how.nearby * how.latency;
  });
  how.max_evaluations = std::max(1, how.max_evaluations - static_cast<int>(there));
  return how;
}

Result<SearchResult> search(const SearchCommand& options, SearchWork& work, SearchJournal& journal) {
  LIMBER_ASSIGN(const SearchSpace space, make_search_space(work.folder.model, work.table));
  ProgressLine line;
  SearchOptions how = make_options(options, work, journal.known());
  how.progress = [&](const SearchProgress& p) {
    const double share = static_cast<double>(p.evaluations) / std::max(1, p.max_evaluations);
    line.show(fmt::format("searching {} {} variants{}", progress_bar(share), p.evaluations,
                          p.best == nullptr ? "" : fmt::format("  best {:.2f} %", 100 * p.best->accuracy)));
  };
  const auto evaluate = [&](std::span<const Variant> variants) -> Result<std::vector<double>> {
    LIMBER_ASSIGN(auto accuracies, work.evaluate(variants));
    std::vector<Scored> scored;
    for (size_t i = 0; i < variants.size(); ++i)
      scored.push_back({variants[i], work.table.predict(variants[i]), accuracies[i]});
    LIMBER_TRY(journal.add(scored));
    return accuracies;
  };
  auto result = search_variants(space, evaluate, how);
  line.clear();
  return result;
}

// Goes through variants, the best first, for the first that keeps all limits when it is compiled and timed as
// a whole: predictions are sums, and machines change.
class Confirmation {
 public:
  Confirmation(const SearchCommand& options, const SearchWork& work, SearchJournal& journal, Outcome& outcome)
      : options_(options), work_(work), journal_(journal), outcome_(outcome) {}

  Status run(std::vector<Scored> candidates, double predicted_limit) {
    predicted_limit_ = predicted_limit;
    std::stable_sort(candidates.begin(), candidates.end(), [](const Scored& a, const Scored& b) {
      return std::pair(-a.accuracy, a.seconds) < std::pair(-b.accuracy, b.seconds);
    });
    for (int i = 0; i < kRounds && !outcome_.within && !candidates.empty(); ++i) {
      LIMBER_ASSIGN(const auto some, take(candidates));
      if (!some.empty()) LIMBER_TRY(time(some));
    }
    if (outcome_.best_s > 0) return {};
    return invalid("none of {} variants needs {} or less; the least is {}: allow more with --max-memory",
                   outcome_.all.size(), show_bytes(static_cast<double>(options_.max_memory)),
                   show_bytes(static_cast<double>(least_memory_)));
  }

 private:
  static constexpr int kRounds = 5;
  static constexpr size_t kAtOnce = 4;

  // The next few that should keep the limit, by what is known of predictions; when none should, the fastest.
  Result<std::vector<Scored>> take(std::vector<Scored>& candidates) {
    std::vector<Scored> some, rest;
    const double limit = predicted_limit_ / slowness_;
    for (Scored& one : candidates) {
      bool fits = some.size() < kAtOnce && one.seconds <= limit;
      if (fits && options_.max_memory > 0) {
        LIMBER_ASSIGN(fits, fits_memory(one.variant));
        if (!fits) continue;
      }
      (fits ? some : rest).push_back(std::move(one));
    }
    candidates = std::move(rest);
    if (some.empty() && !candidates.empty()) {
      const auto fastest =
          std::min_element(candidates.begin(), candidates.end(),
                           [](const Scored& a, const Scored& b) { return a.seconds < b.seconds; });
      LIMBER_ASSIGN(const bool fits, fits_memory(fastest->variant));
      if (fits) some.push_back(std::move(*fastest));
      candidates.erase(fastest);
    }
    return some;
  }

  Result<bool> fits_memory(const Variant& variant) {
    if (options_.max_memory == 0) return true;
    LIMBER_ASSIGN(const uint64_t bytes, work_.memory_of(variant));
    least_memory_ = std::min(least_memory_, bytes);
    return bytes <= options_.max_memory;
  }

  Status time(const std::vector<Scored>& some) {
    std::vector<Variant> variants = {original_variant(work_.folder.model)};
    for (const Scored& one : some) variants.push_back(one.variant);
    LIMBER_ASSIGN(const auto seconds, measure_variants(work_.folder.model, variants, work_.backends,
                                                       {.threads = work_.threads, .seconds = 0.2}));
    const SearchOptions& asked = options_.search;
    outcome_.original_s = seconds[0];
    outcome_.limit_s = asked.latency > 0 ? asked.latency : asked.latency_share * seconds[0];
    for (size_t i = 0; i < some.size(); ++i) {
      const double taken = seconds[i + 1];
      slowness_ = std::max(slowness_, taken / outcome_.limit_s * predicted_limit_ / some[i].seconds);
      LIMBER_ASSIGN(const uint64_t memory, work_.memory_of(some[i].variant));
      LIMBER_TRY(journal_.add_measured(some[i], taken, memory));
      const bool within = taken <= outcome_.limit_s;
      const bool better = outcome_.best_s == 0 || (!outcome_.within && (within || taken < outcome_.best_s));
      if (!better) continue;
      outcome_.within = within;
      outcome_.best = some[i];
      outcome_.best_s = taken;
      outcome_.best_memory = memory;
    }
    return {};
  }

  const SearchCommand& options_;
  const SearchWork& work_;
  SearchJournal& journal_;
  Outcome& outcome_;
  double predicted_limit_ = 0;
  double slowness_ = 1;  // how far above its prediction a variant was, at most; in units of the limit
  uint64_t least_memory_ = UINT64_MAX;
};

Status confirm(const SearchCommand& options, const SearchWork& work, double limit, SearchJournal& journal,
               Outcome& outcome) {
  LIMBER_ASSIGN(const SearchSpace space, make_search_space(work.folder.model, work.table));
  const SearchOptions how = make_options(options, work, {});
  const Band band{.high = limit, .max_flops = how.max_flops, .max_parameter_bytes = how.max_parameter_bytes};
  std::vector<Scored> candidates;
  for (const Scored& one : outcome.all) {
    if (band.allows(space.cost(one.variant))) candidates.push_back(one);
  }
  return Confirmation(options, work, journal, outcome).run(std::move(candidates), limit);
}

// The best that is known for every twentieth of the original's latency.
std::vector<Scored> levels_of(const SearchWork& work, const Outcome& outcome) {
  constexpr int kLevels = 20;
  std::vector<double> levels;
  for (int i = 1; i <= kLevels; ++i) levels.push_back(work.table.original() * i / kLevels);
  return pareto_front(best_per_level(outcome.all, levels));
}

int64_t parameter_count(const SearchSpace& space, const Variant& variant) {
  return static_cast<int64_t>(space.cost(variant).parameter_bytes / kParameterBytes);
}

Status report(bool json, const SearchWork& work, const Outcome& outcome) {
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
  LIMBER_ASSIGN(const auto journal, SearchJournal::open(work));
  Outcome outcome;
  const Variant original = original_variant(work.folder.model);
  LIMBER_ASSIGN(const auto accuracy, work.evaluate(std::span(&original, 1)));
  outcome.original_accuracy = accuracy[0];
  LIMBER_ASSIGN(const SearchResult result, search(options, work, *journal));
  if (result.stopped) {
    fmt::print(stderr, "limber: stopped after {} variants, which are kept; the same command goes on\n",
               result.evaluated.size());
    return kExitFailed;
  }
  outcome.all = journal->known();
  outcome.evaluated = result.evaluated.size();
  outcome.all.insert(outcome.all.end(), result.evaluated.begin(), result.evaluated.end());
  const double evaluated = now_seconds();
  LIMBER_TRY(confirm(options, work, result.limit, *journal, outcome));
  LIMBER_ASSIGN(const uint64_t memory, work.memory_of(original));
  LIMBER_TRY(journal->add_measured({original, work.table.predict(original), outcome.original_accuracy},
                                   outcome.original_s, memory));
  outcome.seconds = now_seconds() - start;
  work.folder.info.notes[std::string(kSearchTimesNote)] =
      search_times_note({{"loading", loaded - start},
                         {"timing", timed - loaded},
                         {"evaluation", evaluated - timed},
                         {"confirmation", start + outcome.seconds - evaluated}});
  LIMBER_TRY(save_elastic_info(work.folder.path, work.folder.info));
  LIMBER_TRY(report(options.json, work, outcome));
  if (!outcome.within)
    fmt::print(stderr,
               "warning: none of the best keeps {} when it is timed as a whole; the fastest takes {}\n",
               show_seconds(outcome.limit_s), show_seconds(outcome.best_s));
  return kExitDone;
}

}  // namespace

void add_search(CommandLine& line) {
  auto options = std::make_shared<SearchCommand>();
  SearchCommand& o = *options;
  Arguments arguments =
      line.add("search", "Find an elastic model's best variant within a latency, on this machine",
               [options] { return run_search(*options); });
  add_common(arguments, o);
  add_image_source(arguments, o.source, Arguments::Need::kRequired);
  arguments.parsed("--latency", "LIMIT",
                   "A share of the original's latency, as in 60%, or a time, as in 12ms",
                   [&o](const std::string& text) {
                     return parse_latency(text, o.search.latency, o.search.latency_share);
                   });
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

}  // namespace limber
