// limber bench: how long a run takes, and how steadily.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/elastic_arguments.h"
#include "cli/options.h"
#include "cli/table.h"
#include "jobs/bench_supernet.h"
#include "jobs/bench_worker.h"
#include "jobs/json.h"
#include "runtime/timing.h"

namespace limber {
namespace {

// Says "ready" and answers lines until "quit", the end of input or the first one that fails.
Status serve_lines(const std::function<Result<std::string>(const std::string& line)>& answer) {
  fmt::print("ready\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    const auto said = answer(line);
    fmt::print("{}\n", said.ok() ? *said : "error: " + said.status().message());
    std::fflush(stdout);
    LIMBER_TRY(said.status());
  }
  return {};
}

struct BenchOptions : JobOptions {
  bool json = false;
  bool train = false;
  int last = 0;        // tensors to train
  ImageSource source;  // of an elastic model
  int runs = 0;
  double seconds = 3;
  int warm_up = 5;
  bool worker = false;
};

Status warm_up(const BenchRun& run, int runs) {
  for (int i = 0; i < runs; ++i) LIMBER_TRY(run());
  return {};
}

// Every run counts here: how steady they are is what is asked, bursts of other load included.
Result<std::vector<double>> measure(const BenchRun& run, const BenchOptions& options) {
  const auto runs = static_cast<size_t>(options.runs);
  return runs > 0 ? time_each(run, 0, runs, runs) : time_each(run, options.seconds, 1);
}

// The smallest time that at least this fraction of the runs did not exceed. REQUIRES: sorted, not empty
double percentile(const std::vector<double>& sorted, double fraction) {
  const auto rank = static_cast<size_t>(std::ceil(fraction * static_cast<double>(sorted.size())));
  return sorted[std::min(sorted.size(), std::max<size_t>(1, rank)) - 1];
}

int64_t batch_of(const Plan& plan) {
  if (plan.graph.inputs().empty()) return 1;
  const Shape& shape = plan.graph.type(plan.graph.inputs()[0]).shape;
  return shape.rank() > 0 ? shape.dim(0) : 1;
}

void report(const BenchOptions& options, const Plan& plan, double compile_seconds,
            std::vector<double> times) {
  std::sort(times.begin(), times.end());
  double sum = 0;
  for (const double seconds : times) sum += seconds;
  const double mean = sum / static_cast<double>(times.size());
  const double p50 = percentile(times, 0.50), p95 = percentile(times, 0.95), p99 = percentile(times, 0.99);
  const double per_second = static_cast<double>(batch_of(plan)) / mean;
  if (options.json) {
    const Json out = Json::object({{"model", options.model},
                                   {"threads", plan.threads},
                                   {"batch", batch_of(plan)},
                                   {"runs", times.size()},
                                   {"min_s", times.front()},
                                   {"p50_s", p50},
                                   {"p95_s", p95},
                                   {"p99_s", p99},
                                   {"max_s", times.back()},
                                   {"mean_s", mean},
                                   {"items_per_s", per_second},
                                   {"arena_bytes", plan.arena_bytes},
                                   {"planned_bytes", plan.memory_bytes()},
                                   {"compile_s", compile_seconds}});
    fmt::print("{}\n", out.text());
    return;
  }
  fmt::print("{}, batch {}, {} threads, {} runs; compiled in {}\n\n", options.model, batch_of(plan),
             plan.threads, times.size(), show_seconds(compile_seconds));
  Table table({{"min", true}, {"p50", true}, {"p95", true}, {"p99", true}, {"max", true}, {"mean", true}});
  table.add({show_seconds(times.front()), show_seconds(p50), show_seconds(p95), show_seconds(p99),
             show_seconds(times.back()), show_seconds(mean)});
  fmt::print("{}\nthroughput   {:.1f} items/s\n", table.text(), per_second);
}

Result<int> bench_runs(const BenchOptions& options, const BenchWorker& worker, double compile_seconds) {
  LIMBER_TRY(warm_up(worker.run, options.warm_up));
  if (options.worker) {
    BenchAnswers answers(worker);
    LIMBER_TRY(serve_lines([&](const std::string& line) { return answers.answer(line); }));
    return kExitDone;
  }
  LIMBER_ASSIGN(auto times, measure(worker.run, options));
  report(options, *worker.plan, compile_seconds, std::move(times));
  return kExitDone;
}

Result<int> bench_elastic_model(const BenchOptions& options) {
  if (!options.worker || options.source.data.empty())
    return usage_error(invalid("{} is an elastic model: its bench needs --worker and --data", options.model));
  LIMBER_ASSIGN(const auto work, open_elastic(options));
  LIMBER_TRY(load_images(*work, options.source, options, {}));
  SupernetAnswers answers(*work);
  LIMBER_TRY(serve_lines([&](const std::string& line) { return answers.answer(line); }));
  return kExitDone;
}

Result<int> bench(const BenchOptions& options) {
  if (is_elastic(options.model)) return bench_elastic_model(options);
  BenchWorker worker;
  worker.idle_bytes = process_memory().resident;
  LIMBER_ASSIGN(const Model model, load(options));
  const double start = now_seconds();
  if (options.train || options.last > 0) {
    LIMBER_ASSIGN(const auto training, build_training(model, options, options.last));
    const double compile_seconds = now_seconds() - start;
    worker.training = training.get();
    worker.run = [&] { return training->step().status(); };
    LIMBER_ASSIGN(worker.plan, training->plan());
    return bench_runs(options, worker, compile_seconds);
  }
  LIMBER_ASSIGN(const auto plan, build(model, options, true));
  const double compile_seconds = now_seconds() - start;
  LIMBER_ASSIGN(const auto session, Session::create(plan));
  fill_random(*session, options.seed);
  worker.session = session.get();
  worker.run = [&] { return session->run(); };
  worker.plan = plan.get();
  return bench_runs(options, worker, compile_seconds);
}

}  // namespace

void add_bench(CommandLine& line) {
  auto options = std::make_shared<BenchOptions>();
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
