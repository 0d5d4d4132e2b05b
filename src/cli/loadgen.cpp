// limber loadgen: a server under load.
#include <fmt/format.h>

#include "base/show.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/elastic_arguments.h"
#include "cli/image_arguments.h"
#include "cli/table.h"
#include "jobs/json.h"
#include "jobs/loadgen_job.h"

namespace limber {
namespace {

struct LoadgenCommand {
  LoadgenJobOptions job;
  bool json = false, timeline = false;
};

std::string share_of(int64_t count, int64_t all) {
  if (all == 0) return fmt::format("{}", count);
  return fmt::format("{} ({})", count, show_percent(static_cast<double>(count) / static_cast<double>(all)));
}

void print_counts(const LoadgenOutcome& outcome, double deadline) {
  const LoadSummary& of = outcome.summary;
  Table table({{"requests"}, {"", true}});
  table.add({"well-formed", fmt::format("{}", of.requests)});
  table.add({"answered", share_of(of.good, of.requests)});
  for (const auto& [status, count] : of.statuses) {
    if (status != 200) table.add({fmt::format("refused with {}", status), share_of(count, of.requests)});
  }
  table.add({"lost", share_of(of.lost, of.requests)});
  if (of.unsent > 0) table.add({"never sent", share_of(of.unsent, of.requests)});
  if (deadline > 0) {
    table.add({"answered late", share_of(of.late, of.requests)});
    table.add({fmt::format("not within {}", show_seconds(deadline)), share_of(of.missed, of.requests)});
  }
  if (of.malformed > 0) {
    table.add({"malformed", fmt::format("{}", of.malformed)});
    table.add({"  refused with 4xx", share_of(of.malformed_refused, of.malformed)});
  }
  fmt::print("{}", table.text());
}

void print_latency(const LoadSummary& of) {
  Table table({{""},
               {"mean", true},
               {"p50", true},
               {"p90", true},
               {"p95", true},
               {"p99", true},
               {"p99.9", true},
               {"max", true}});
  const auto add = [&](const char* name, const LatencySummary& row) {
    table.add({name, show_seconds(row.mean), show_seconds(row.p50), show_seconds(row.p90),
               show_seconds(row.p95), show_seconds(row.p99), show_seconds(row.p999), show_seconds(row.max)});
  };
  add("latency", of.latency);
  add("sent after due", of.lag);
  fmt::print("\n{}", table.text());
}

void print_variants(const LoadgenOutcome& outcome) {
  if (outcome.variants.empty()) return;
  Table table({{"variant", false, 60}, {"answers", true}});
  for (size_t i = 0; i < outcome.variants.size(); ++i)
    table.add({outcome.variants[i], share_of(outcome.summary.variants[i], outcome.summary.good)});
  fmt::print("\n{}", table.text());
}

void print_timeline(const LoadgenOutcome& outcome) {
  Table table({{"second", true},
               {"requests", true},
               {"missed", true},
               {"p50", true},
               {"p90", true},
               {"max", true},
               {"variant", false, 40}});
  for (size_t i = 0; i < outcome.summary.seconds.size(); ++i) {
    const LoadSecond& second = outcome.summary.seconds[i];
    const std::string variant =
        second.variant >= 0 ? outcome.variants[static_cast<size_t>(second.variant)] : "";
    table.add({fmt::format("{}", i), fmt::format("{}", second.requests), fmt::format("{}", second.missed),
               show_seconds(second.p50), show_seconds(second.p90), show_seconds(second.max), variant});
  }
  fmt::print("\n{}", table.text());
}

void print_table(const LoadgenOutcome& outcome, const LoadgenCommand& options) {
  const LoadSummary& of = outcome.summary;
  fmt::print("{} on {}, {} over {} connection{}: {:.1f} answers a second\n\n", outcome.target.model,
             outcome.target.authority(), show_seconds(outcome.seconds), outcome.connections,
             outcome.connections == 1 ? "" : "s", of.throughput);
  print_counts(outcome, options.job.deadline);
  print_latency(of);
  print_variants(outcome);
  if (options.timeline) print_timeline(outcome);
  if (const auto accuracy = of.accuracy())
    fmt::print("\naccuracy {}: answers to {}\n", show_accuracy(*accuracy, of.judged), outcome.images.text());
  if (!outcome.problems.empty()) fmt::print("\nwhat went wrong:\n");
  for (const auto& [what, problem] : outcome.problems)
    fmt::print("  {} times {}{}\n", problem.count, what,
               problem.example.empty() ? "" : ": " + problem.example);
  if (!outcome.malformed.empty()) fmt::print("\nmalformed requests that got no 4xx:\n");
  for (const auto& [what, count] : outcome.malformed) fmt::print("  {} times {}\n", count, what);
  if (outcome.stopped) fmt::print("\nstopped before its end\n");
}

Json latency_json(const LatencySummary& of) {
  return Json::object({{"count", of.count},
                       {"mean", of.mean},
                       {"p50", of.p50},
                       {"p90", of.p90},
                       {"p95", of.p95},
                       {"p99", of.p99},
                       {"p999", of.p999},
                       {"max", of.max}});
}

Json timeline_json(const LoadgenOutcome& outcome) {
  Json list = Json::array();
  for (const LoadSecond& second : outcome.summary.seconds) {
    Json entry = Json::object({{"requests", second.requests},
                               {"good", second.good},
                               {"missed", second.missed},
                               {"mean_s", second.mean},
                               {"p50_s", second.p50},
                               {"p90_s", second.p90},
                               {"max_s", second.max},
                               {"judged", second.judged},
                               {"right", second.right}});
    if (second.variant >= 0) entry.set("variant", outcome.variants[static_cast<size_t>(second.variant)]);
    list.push(std::move(entry));
  }
  return list;
}

Json counts_json(const LoadgenOutcome& outcome) {
  const LoadSummary& of = outcome.summary;
  Json out = Json::object({{"url", outcome.target.authority()},
                           {"model", outcome.target.model},
                           {"started_unix", outcome.started_unix},
                           {"seconds", outcome.seconds},
                           {"stopped", outcome.stopped},
                           {"connections", outcome.connections},
                           {"requests", of.requests},
                           {"good", of.good},
                           {"refused", of.refused},
                           {"lost", of.lost},
                           {"unsent", of.unsent},
                           {"late", of.late},
                           {"missed", of.missed},
                           {"missed_share", of.missed_share()},
                           {"throughput", of.throughput},
                           {"switches_seen", of.switches},
                           {"malformed", of.malformed},
                           {"malformed_refused", of.malformed_refused}});
  Json statuses = Json::object();
  for (const auto& [status, count] : of.statuses) statuses.set(std::to_string(status), count);
  out.set("statuses", std::move(statuses));
  return out;
}

void print_json(const LoadgenOutcome& outcome) {
  const LoadSummary& of = outcome.summary;
  Json out = counts_json(outcome);
  out.set("latency_s", latency_json(of.latency));
  out.set("sent_after_due_s", latency_json(of.lag));
  Json variants = Json::object();
  for (size_t i = 0; i < outcome.variants.size(); ++i) variants.set(outcome.variants[i], of.variants[i]);
  out.set("variants", std::move(variants));
  if (const auto accuracy = of.accuracy()) {
    out.set("accuracy", *accuracy);
    out.set("accuracy_95", interval_json(interval_of(*accuracy, of.judged)));
    out.set("judged", of.judged);
    out.set("judged_on", outcome.images.text());
  }
  Json problems = Json::object(), malformed = Json::object();
  for (const auto& [what, problem] : outcome.problems)
    problems.set(what, Json::object({{"count", problem.count}, {"example", problem.example}}));
  for (const auto& [what, count] : outcome.malformed) malformed.set(what, count);
  out.set("problems", std::move(problems));
  out.set("malformed_taken", std::move(malformed));
  out.set("timeline", timeline_json(outcome));
  fmt::print("{}\n", out.text());
}

Result<int> loadgen(const LoadgenCommand& options) {
  if (const Status wrong = check(options.job); !wrong.ok()) return usage_error(wrong);
  LIMBER_ASSIGN(const LoadgenOutcome outcome, on_console(run_loadgen, options.job));
  options.json ? print_json(outcome) : print_table(outcome, options);
  return kExitDone;
}

void add_load(Arguments& arguments, LoadgenJobOptions& job) {
  arguments.number("--rate", job.rate, 0.001, 1e6, "Requests a second; default 100");
  arguments.number("--seconds", job.seconds, 0.001, 1e6, "How long; default 10");
  arguments.parsed("--phases", "RATE:SECONDS,...", "Several rates one after the other, instead of --rate",
                   [&job](const std::string& text) {
                     const auto phases = parse_phases(text);
                     if (!phases.ok()) return phases.status().message();
                     job.phases = *phases;
                     return std::string();
                   });
  arguments.choice<Arrivals>("--arrivals", job.arrivals,
                             {{"poisson", Arrivals::kPoisson}, {"constant", Arrivals::kConstant}},
                             "By chance, as strangers come (default), or evenly spaced");
  arguments.number("--closed", job.closed, 0, 10000,
                   "Instead of a rate: so many callers that ask again as soon as they are answered");
  arguments.number("--connections", job.connections, 1, 10000,
                   "At most so many at once, kept alive; default 64");
  const auto seconds = [&](const char* name, double& to, const char* help) {
    arguments.parsed(name, "TIME", help, [&to](const std::string& text) { return parse_seconds(text, to); });
  };
  seconds("--deadline", job.deadline, "Answers after this are late, from when they were due; as in 15ms");
  seconds("--give-up", job.give_up, "A request without an answer is lost after this; default 10s");
  arguments.number("--malformed", job.malformed, 0.0, 1.0,
                   "Share of requests that are broken on purpose, each of which must get a 4xx; default 0");
}

}  // namespace

void add_loadgen(CommandLine& line) {
  auto options = std::make_shared<LoadgenCommand>();
  LoadgenJobOptions& job = options->job;
  Arguments arguments = line.add("loadgen", "Put an inference server under load: latency, misses, accuracy",
                                 [options] { return loadgen(*options); });
  arguments.text("url", job.url, "URL", "http://HOST:PORT of a server of the Open Inference Protocol 2",
                 Arguments::Need::kRequired);
  arguments.text("-m,--model", job.model, "NAME", "Which model; default the only one there");
  arguments.text("--model-version", job.version, "VERSION", "Which version of it; default the newest");
  add_load(arguments, job);
  arguments.text("-d,--data", job.data, "DATA", "Labelled images to send; default random numbers");
  arguments.choice<Split>("--split", job.split, {{"train", Split::kTrain}, {"test", Split::kTest}},
                          "Which part, where the data has parts; default test");
  arguments.number("--images", job.images, int64_t{1}, int64_t{1000000},
                   "How many images, drawn by --seed and sent over and over; default 1000");
  arguments.text("--like", job.like, "MODEL",
                 "A model on this machine that knows what images become: elastic model, training, ONNX file");
  add_image_arguments(arguments, job.image);
  arguments.choice<Encoding>("--encoding", job.encoding,
                             {{"binary", Encoding::kBinary}, {"json", Encoding::kJson}},
                             "Numbers as bytes (default) or as text");
  arguments.choice<bool>("--timeout", job.send_deadline, {{"send", true}, {"keep", false}},
                         "Whether the server is told the deadline; default send");
  arguments.text("--records", job.records, "FILE", "Write every request to this CSV file");
  arguments.seed("--seed", job.seed, "Of arrivals, images and malformed requests; default 0");
  arguments.flag("--timeline", options->timeline, "A line for each second too");
  arguments.flag("--json", options->json, "Machine-readable output");
  arguments.footer(
      "Requests are due at times fixed beforehand, and latency counts from then: a server that stalls hides\n"
      "nothing. Answers other than 200, none at all and late ones count as missed.\n"
      "Examples:\n"
      "  limber loadgen http://127.0.0.1:8000 --rate 200 --deadline 15ms\n"
      "  limber loadgen http://127.0.0.1:8000 --phases 50:10,400:5,50:10 --timeline\n"
      "  limber loadgen http://127.0.0.1:8000 --data photos --like shapes  how right it is meanwhile\n"
      "  limber loadgen http://127.0.0.1:8000 --closed 8                   throughput at saturation");
}

}  // namespace limber
