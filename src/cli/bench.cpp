// limber bench: how long a run takes, and how steadily.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <sstream>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/table.h"
#include "tensor/npy.h"

namespace limber {
namespace {

struct BenchOptions : CommonOptions, TrainOptions {
  int runs = 0;
  double seconds = 3;
  int warm_up = 5;
  bool worker = false;
};

// What is measured: a run of a session, or a training step.
using Run = std::function<Status()>;

Result<double> timed_run(const Run& run) {
  const double start = now_seconds();
  LIMBER_TRY(run());
  return now_seconds() - start;
}

Status warm_up(const Run& run, int runs) {
  for (int i = 0; i < runs; ++i) LIMBER_TRY(run());
  return {};
}

Result<std::vector<double>> measure(const Run& run, const BenchOptions& options) {
  std::vector<double> times;
  const double stop = now_seconds() + options.seconds;
  while (options.runs > 0 ? static_cast<int>(times.size()) < options.runs
                          : times.empty() || now_seconds() < stop) {
    LIMBER_ASSIGN(const double seconds, timed_run(run));
    times.push_back(seconds);
  }
  return times;
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

// --- worker: a benchmark harness drives several engines through lines on stdin and stdout -----------------

Status answer_run(const Run& run, int count) {
  std::string line;
  for (int i = 0; i < count; ++i) {
    LIMBER_ASSIGN(const double seconds, timed_run(run));
    line += fmt::format("{}{:.6f}", i > 0 ? " " : "", 1e3 * seconds);
  }
  fmt::print("{}\n", line);
  return {};
}

Status answer_check(Session& session, const std::string& input, const std::string& output) {
  LIMBER_ASSIGN(const Tensor tensor, read_npy(input));
  Tensor target = session.input(0);
  if (tensor.type() != target.type()) {
    return invalid("{}: {}, the model wants {}", input, tensor.type().to_string(), target.type().to_string());
  }
  std::memcpy(target.raw(), tensor.raw(), tensor.bytes());
  LIMBER_TRY(session.run());
  LIMBER_TRY(write_npy(output, session.output(0)));
  fmt::print("done\n");
  return {};
}

// `session` is nullptr when training steps are measured.
Status answer(const Run& run, Session* session, const std::string& line) {
  std::istringstream words(line);
  std::string verb, input, output;
  int count = 0;
  words >> verb;
  if (verb == "run" && words >> count && count > 0) return answer_run(run, count);
  if (verb == "check" && session != nullptr && words >> input >> output)
    return answer_check(*session, input, output);
  return invalid("'{}' is none of: run COUNT, check IN.npy OUT.npy, quit", line);
}

Status serve_lines(const Run& run, Session* session) {
  fmt::print("ready\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    if (Status status = answer(run, session, line); !status.ok()) {
      fmt::print("error: {}\n", status.message());
      return status;
    }
    std::fflush(stdout);
  }
  return {};
}

Result<int> bench_runs(const BenchOptions& options, const Run& run, Session* session, const Plan& plan,
                       double compile_seconds) {
  LIMBER_TRY(warm_up(run, options.warm_up));
  if (options.worker) {
    LIMBER_TRY(serve_lines(run, session));
    return kExitDone;
  }
  LIMBER_ASSIGN(auto times, measure(run, options));
  report(options, plan, compile_seconds, std::move(times));
  return kExitDone;
}

Result<int> bench(const BenchOptions& options) {
  LIMBER_ASSIGN(const Model model, load(options));
  const double start = now_seconds();
  if (options.train || options.last > 0) {
    LIMBER_ASSIGN(const auto training, build_training(model, options, options));
    const double compile_seconds = now_seconds() - start;
    LIMBER_ASSIGN(const Plan* const plan, training->plan());
    const Run step = [&] { return training->step().status(); };
    return bench_runs(options, step, nullptr, *plan, compile_seconds);
  }
  LIMBER_ASSIGN(const auto plan, build(model, options, true));
  const double compile_seconds = now_seconds() - start;
  LIMBER_ASSIGN(const auto session, Session::create(plan));
  fill_random(*session, options.seed);
  return bench_runs(
      options, [&] { return session->run(); }, session.get(), *plan, compile_seconds);
}

}  // namespace

void add_bench(CommandLine& line) {
  auto options = std::make_shared<BenchOptions>();
  Arguments arguments = line.add("bench", "Latency percentiles and throughput on random input",
                                 [options] { return bench(*options); });
  add_common(arguments, *options);
  add_train(arguments, *options);
  arguments.number("--runs", options->runs, 0, 100000000, "Number of runs; 0 (default): what fits --seconds");
  arguments.number("--seconds", options->seconds, 0.0, 86400.0, "How long to measure; default 3");
  arguments.number("--warm-up", options->warm_up, 0, 1000000, "Runs before measuring; default 5");
  arguments.flag("--worker", options->worker, "Obey 'run COUNT', 'check IN.npy OUT.npy', 'quit' on stdin");
}

}  // namespace limber
