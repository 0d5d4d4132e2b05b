// limber search: the best variant of an elastic model within a budget, on this machine.
#include "supernet/search.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/units.h"
#include "device/cpu.h"
#include "supernet/block_runner.h"
#include "supernet/latency_table.h"
#include "variant/elastic_folder.h"
#include "variant/variant_table.h"

namespace limber {
namespace {

struct SearchCommand : CommonOptions {
  std::string data, split = "test", method = "evolution";
  int64_t images = 500;
  SearchOptions search;
  int workers = 1;
};

// "60%" of the original's latency, or a time.
std::string parse_latency(const std::string& text, SearchOptions& to) {
  if (!text.ends_with('%')) return parse_seconds(text, to.latency);
  double percent = 0;
  const std::string problem = parse_seconds(text.substr(0, text.size() - 1), percent);
  if (!problem.empty() || percent > 100)
    return fmt::format("'{}' should be a share of the original's latency, as in 60%, or a time, as in 12ms",
                       text);
  to.latency_share = percent / 100;
  return {};
}

struct Work {
  const SearchCommand& options;
  ElasticFolder folder;
  std::vector<std::shared_ptr<Backend>> backends;
  int threads = 1;
  LatencyTable table;
  EvaluationSet images;
  std::unique_ptr<BlockRunner> runner;

  std::string context() const {
    std::string name = cpu_info().name;
    name.resize(std::min(name.size(), kMaxContext - 32));
    return fmt::format("{}, {} threads", name, threads);
  }
};

Status measure_blocks(Work& work) {
  ProgressLine line;
  LatencyOptions how{.stop = &stop_asked()};
  how.measure.threads = work.threads;
  how.progress = [&](int done, int count) {
    line.show(fmt::format("timing blocks {} {} of {}", progress_bar(static_cast<double>(done) / count), done,
                          count));
  };
  auto table = measure_latency_table(work.folder.model, work.backends, how);
  line.clear();
  if (!table.ok()) return table.status();
  work.table = *std::move(table);
  return {};
}

// Images of the data set, each time the same for a seed.
Status load_images(Work& work) {
  const SearchCommand& o = work.options;
  OpenOptions open{.split = o.split == "test" ? Split::kTest : Split::kTrain};
  open.expected = work.folder.info.classes;
  LIMBER_ASSIGN(std::shared_ptr<const Dataset> data, open_dataset(o.data, open));
  LoaderOptions how;
  how.batch = std::min<int64_t>(o.batch, static_cast<int64_t>(data->size()));
  how.seed = o.seed;
  how.workers = o.workers;
  how.augment = false;
  how.augmentation = work.folder.info.input;
  LIMBER_ASSIGN(const auto loader, Loader::make(std::move(data), how));
  LIMBER_ASSIGN(work.images, load_evaluation_set(*loader, o.images));
  LIMBER_ASSIGN(work.runner, BlockRunner::create(work.folder.model, work.backends,
                                                 {.batch = how.batch, .threads = work.threads}));
  return {};
}

Result<SearchResult> search(Work& work, double& original_accuracy) {
  LIMBER_ASSIGN(const SearchSpace space, make_search_space(work.folder.model, work.table));
  const auto images = static_cast<double>(work.images.count());
  const auto evaluate = [&](std::span<const Variant> variants) -> Result<std::vector<double>> {
    LIMBER_ASSIGN(const auto correct, work.runner->count_correct(variants, work.images, &stop_asked()));
    std::vector<double> accuracies;
    for (const int64_t count : correct) accuracies.push_back(static_cast<double>(count) / images);
    return accuracies;
  };
  const Variant original = original_variant(work.folder.model);
  LIMBER_ASSIGN(const auto accuracy, evaluate(std::span(&original, 1)));
  original_accuracy = accuracy[0];
  ProgressLine line;
  SearchOptions how = work.options.search;
  how.seed = work.options.seed;
  how.stop = &stop_asked();
  if (work.options.method == "annealing") how.method = SearchMethod::kAnnealing;
  how.progress = [&](const SearchProgress& p) {
    const double share = static_cast<double>(p.evaluations) / std::max(1, p.max_evaluations);
    line.show(fmt::format("searching {} {} variants{}", progress_bar(share), p.evaluations,
                          p.best == nullptr ? "" : fmt::format("  best {:.2f} %", 100 * p.best->accuracy)));
  };
  auto result = search_variants(space, evaluate, how);
  line.clear();
  return result;
}

struct Outcome {
  double original_s = 0, original_accuracy = 0, limit_s = 0, seconds = 0;
  Scored best;
  double best_s = 0;   // measured
  bool within = true;  // false: nothing that was timed keeps the limit, and `best` is the fastest of it
};

// The most accurate that keeps the limit when it is timed as a whole: predictions are sums, and machines
// change.
Status confirm(const Work& work, const SearchResult& result, std::map<std::string, double>& measured,
               Outcome& outcome) {
  constexpr size_t kTries = 12;
  const SearchOptions& asked = work.options.search;
  const MeasureOptions how{.threads = work.threads, .seconds = 0.2};
  const Variant original = original_variant(work.folder.model);
  LIMBER_ASSIGN(outcome.original_s, measure_variant(work.folder.model, original, work.backends, how));
  outcome.limit_s = asked.latency > 0 ? asked.latency : asked.latency_share * outcome.original_s;
  std::vector<Scored> candidates = result.evaluated;
  std::stable_sort(candidates.begin(), candidates.end(), [](const Scored& a, const Scored& b) {
    return std::pair(-a.accuracy, a.seconds) < std::pair(-b.accuracy, b.seconds);
  });
  outcome.within = false;
  for (size_t i = 0; i < std::min(candidates.size(), kTries) && !outcome.within; ++i) {
    const Variant& variant = candidates[i].variant;
    LIMBER_ASSIGN(const double seconds, measure_variant(work.folder.model, variant, work.backends, how));
    measured[print(variant)] = seconds;
    outcome.within = seconds <= outcome.limit_s;
    if (i > 0 && !outcome.within && seconds >= outcome.best_s) continue;
    outcome.best = candidates[i];
    outcome.best_s = seconds;
  }
  return {};
}

Status keep(const Work& work, const SearchResult& result, const std::map<std::string, double>& measured) {
  LIMBER_ASSIGN(const auto table, VariantTable::open(variants_in(work.folder.path)));
  std::vector<VariantRecord> records;
  for (const Scored& scored : result.evaluated) {
    LIMBER_ASSIGN(const GraphCost cost, cost_of(work.folder.model, scored.variant));
    VariantRecord record{.context = work.context(), .variant = scored.variant, .predicted_s = scored.seconds};
    const auto timed = measured.find(print(scored.variant));
    if (timed != measured.end()) record.measured_s = timed->second;
    record.accuracy = scored.accuracy;
    record.images = work.images.count();
    record.parameter_bytes = cost.parameter_bytes;
    record.flops = cost.flops;
    records.push_back(std::move(record));
  }
  return table->put(records);
}

Status report(const Work& work, const SearchResult& result, const Outcome& outcome) {
  const Scored& best = outcome.best;
  LIMBER_ASSIGN(const GraphCost cost, cost_of(work.folder.model, best.variant));
  const std::vector<Scored> front = pareto_front(result.evaluated);
  if (work.options.json) {
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
                             {"evaluated", result.evaluated.size()},
                             {"reuse_saving", work.runner->counts().saving()},
                             {"parameter_bytes", cost.parameter_bytes},
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
  for (const Scored& s : front) row("front, predicted", s.seconds, s.accuracy, s.variant);
  row("best, measured", outcome.best_s, best.accuracy, best.variant);
  fmt::print("{}", table.text());
  fmt::print("{} variants on {} images in {}; shared beginnings saved {} of the work\n",
             result.evaluated.size(), work.images.count(), show_seconds(outcome.seconds),
             show_percent(work.runner->counts().saving()));
  fmt::print("next: limber export {} --variant {} -o subnet.onnx\n", work.folder.path, print(best.variant));
  return {};
}

Result<int> run_search(SearchCommand& options) {
  const double start = now_seconds();
  if (options.batch == 0) options.batch = 50;
  if (options.search.latency <= 0 && options.search.latency_share <= 0)
    return usage_error(
        invalid("--latency is missing: a share of the original's, as in 60%, or a time, as in 12ms"));
  if (!std::filesystem::exists(options.model + "/manifest.json"))
    return usage_error(invalid("{} is no elastic model; 'limber elastify' makes one", options.model));
  LIMBER_ASSIGN(ElasticFolder folder, load_elastic(options.model));
  const BuildSpec spec = build_spec(options, false);
  Work work{options, std::move(folder), make_backends(spec), thread_count(spec), {}, {}, nullptr};
  catch_stop_signals();
  LIMBER_TRY(load_images(work));
  LIMBER_TRY(measure_blocks(work));
  Outcome outcome;
  LIMBER_ASSIGN(const SearchResult result, search(work, outcome.original_accuracy));
  std::map<std::string, double> measured;
  LIMBER_TRY(confirm(work, result, measured, outcome));
  LIMBER_TRY(keep(work, result, measured));
  outcome.seconds = now_seconds() - start;
  LIMBER_TRY(report(work, result, outcome));
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
  arguments.text("-d,--data", o.data, "DATA", "Labelled images that variants are judged by",
                 Arguments::Need::kRequired);
  arguments.parsed("--latency", "LIMIT",
                   "A share of the original's latency, as in 60%, or a time, as in 12ms",
                   [&o](const std::string& text) { return parse_latency(text, o.search); });
  arguments.choice("--split", o.split, {"train", "test"},
                   "Which part, where the data has parts; default test");
  arguments.number("--images", o.images, 1, 1000000, "How many of them; default 500");
  arguments.number("--evaluations", o.search.max_evaluations, 1, 1000000, "Variants to try; default 200");
  arguments.number("--max-flops", o.search.max_flops, 0.0, 1e18, "Operations of a run at most");
  arguments.choice("--method", o.method, {"evolution", "annealing"}, "How to search; default evolution");
  arguments.number("--workers", o.workers, 0, 256, "Threads that read images; default 1");
  arguments.footer(
      "MODEL is the folder that 'limber elastify' made. What is found is kept in its variant table.\n"
      "Examples:\n"
      "  limber search elastic --data photos --latency 60%\n"
      "  limber search elastic --data photos --latency 12ms --threads 1 --json");
}

}  // namespace limber
