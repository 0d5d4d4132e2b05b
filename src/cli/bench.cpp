// limber bench: how long a run takes, and how steadily.
#include <iostream>

#include "cli/commands.h"
#include "cli/elastic_arguments.h"
#include "cli/options.h"
#include "cli/table.h"
#include "jobs/bench_job.h"
#include "jobs/bench_supernet.h"
#include "jobs/json.h"

namespace limber {
namespace {

struct BenchCommand : BenchJobOptions {
  bool json = false, worker = false;
  ImageSource source;  // of an elastic model
};

// Says "ready" and answers lines until "quit", the end of input or the first one that fails.
Result<int> serve_lines(const std::function<Result<std::string>(const std::string& line)>& answer) {
  fmt::print("ready\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    const auto said = answer(line);
    fmt::print("{}\n", said.ok() ? *said : "error: " + said.status().message());
    std::fflush(stdout);
    LIMBER_TRY(said.status());
  }
  return kExitDone;
}

void print_json(const BenchCommand& options, const BenchResult& result) {
  const Json out = Json::object({{"model", options.model},
                                 {"threads", result.threads},
                                 {"batch", result.batch},
                                 {"runs", result.seconds.size()},
                                 {"min_s", result.seconds.front()},
                                 {"p50_s", result.percentile(0.50)},
                                 {"p95_s", result.percentile(0.95)},
                                 {"p99_s", result.percentile(0.99)},
                                 {"max_s", result.seconds.back()},
                                 {"mean_s", result.mean},
                                 {"items_per_s", result.per_second()},
                                 {"arena_bytes", result.arena_bytes},
                                 {"planned_bytes", result.planned_bytes},
                                 {"compile_s", result.compile_seconds}});
  fmt::print("{}\n", out.text());
}

void print_table(const BenchCommand& options, const BenchResult& result) {
  fmt::print("{}, batch {}, {} threads, {} runs; compiled in {}\n\n", options.model, result.batch,
             result.threads, result.seconds.size(), show_seconds(result.compile_seconds));
  Table table({{"min", true}, {"p50", true}, {"p95", true}, {"p99", true}, {"max", true}, {"mean", true}});
  table.add({show_seconds(result.seconds.front()), show_seconds(result.percentile(0.50)),
             show_seconds(result.percentile(0.95)), show_seconds(result.percentile(0.99)),
             show_seconds(result.seconds.back()), show_seconds(result.mean)});
  fmt::print("{}\nthroughput   {:.1f} items/s\n", table.text(), result.per_second());
}

Result<int> bench_elastic_model(const BenchCommand& options) {
  if (!options.worker || options.source.data.empty())
    return usage_error(invalid("{} is an elastic model: its bench needs --worker and --data", options.model));
  LIMBER_ASSIGN(const auto work, open_elastic(options));
  LIMBER_TRY(load_images(*work, options.source, options, {}));
  SupernetAnswers answers(*work);
  return serve_lines([&](const std::string& line) { return answers.answer(line); });
}

Result<int> bench(const BenchCommand& options) {
  if (is_elastic(options.model)) return bench_elastic_model(options);
  LIMBER_ASSIGN(const BenchModel model, BenchModel::open(options));
  if (options.worker) {
    BenchAnswers answers(model.worker());
    return serve_lines([&](const std::string& line) { return answers.answer(line); });
  }
  LIMBER_ASSIGN(const BenchResult result, measure(model, options));
  options.json ? print_json(options, result) : print_table(options, result);
  return kExitDone;
}

}  // namespace

void add_bench(CommandLine& line) {
  auto options = std::make_shared<BenchCommand>();
  Arguments arguments = line.add("bench", "Latency percentiles and throughput on random input",
                                 [options] { return bench(*options); });
  add_common(arguments, *options, options->json);
  add_train(arguments, options->train, options->last);
  arguments.number("--runs", options->runs, 0, 100000000, "Number of runs; 0 (default): what fits --seconds");
  arguments.number("--seconds", options->seconds, 0.0, 86400.0, "How long to measure; default 3");
  arguments.number("--warm-up", options->warm_up, 0, 1000000, "Runs before measuring; default 5");
  arguments.flag("--worker", options->worker, "Obey 'run COUNT' and other lines on stdin (bench/README.md)");
  add_image_source(arguments, options->source, Arguments::Need::kOptional);
}

}  // namespace limber
