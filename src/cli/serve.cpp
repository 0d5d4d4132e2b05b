// limber serve: answers requests, within a budget.
#include <fmt/format.h>

#include "base/show.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/image_arguments.h"
#include "cli/options.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "jobs/adapt_strategies.h"
#include "jobs/json.h"
#include "jobs/serve_job.h"

namespace limber {
namespace {

enum class LogFormat : uint8_t { kNone, kJson };

struct ServeCommand {
  ServeJobOptions job;
  bool json = false, fixed = false;
  double min_accuracy = -1;  // -1: not given
  int http_port = 8000, grpc_port = 8001, queue = 256, warm = 8;
  LogFormat access_log = LogFormat::kNone;
};

// "[::1]:8000"
std::string endpoint(const ServeAccess& access, int port) {
  const bool v6 = access.address.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", access.address, port) : fmt::format("{}:{}", access.address, port);
}

void print_ready(const ServeCommand& command, const Serving& serving) {
  const ServeAccess& access = command.job.access;
  const char* scheme = access.certificate.empty() ? "http" : "https";
  const std::string url = fmt::format("{}://{}", scheme, endpoint(access, serving.http_port));
  if (command.json) {
    fmt::print("{}\n", Json::object({{"url", url},
                                     {"http_port", serving.http_port},
                                     {"grpc_port", serving.grpc_port},
                                     {"metrics_port", serving.metrics_port},
                                     {"models", Json::list(serving.models)},
                                     {"ready_s", serving.ready_s}})
                           .line());
  } else {
    fmt::print("serving at {}, ready after {}\n", url, show_seconds(serving.ready_s));
    if (serving.grpc_port > 0) fmt::print("  gRPC     {}\n", endpoint(access, serving.grpc_port));
    for (const std::string& name : serving.models) fmt::print("  model    {}/v2/models/{}\n", url, name);
    fmt::print(
        "  page     {}/\n  metrics  {}/metrics\nCtrl-C stops it; requests under way are answered first.\n",
        url, url);
  }
  std::fflush(stdout);
}

void print_adaptation(const ServeOutcome::Adaptation& adaptation) {
  const Followed& followed = *adaptation.followed;
  fmt::print(
      "{}, {}: {} images looked at, {} changes of domain; {} adaptations, {} refused, {} taken back, {} "
      "failed\n",
      adaptation.model, followed.method, followed.seen, followed.domains, followed.adapted, followed.rejected,
      followed.rolled_back, followed.failed);
  if (followed.estimate)
    fmt::print("answers by '{}', about {} right\n", followed.net.empty() ? "as it came" : followed.net,
               show_percent(*followed.estimate));
}

void print_outcome(const ServeOutcome& outcome) {
  Table table({{"model"},
               {"requests", true},
               {"answered", true},
               {"refused", true},
               {"late", true},
               {"switches", true}});
  for (const ModelServer::Served& one : outcome.models)
    table.add({one.model, fmt::format("{}", one.totals.requests), fmt::format("{}", one.totals.answered),
               fmt::format("{}", one.totals.all_refused()), fmt::format("{}", one.totals.late),
               fmt::format("{}", one.totals.switches)});
  fmt::print("{}served for {}\n", table.text(), show_seconds(outcome.seconds));
  for (const ServeOutcome::Adaptation& one : outcome.adaptations) print_adaptation(one);
}

Json adaptation_json(const ServeOutcome::Adaptation& adaptation) {
  const Followed& followed = *adaptation.followed;
  Json out = Json::object({{"model", adaptation.model},
                           {"method", followed.method},
                           {"state", followed.state},
                           {"net", followed.net},
                           {"seen", followed.seen},
                           {"bad", followed.bad},
                           {"passed", followed.passed},
                           {"domains", followed.domains},
                           {"adapted", followed.adapted},
                           {"rejected", followed.rejected},
                           {"rolled_back", followed.rolled_back},
                           {"returned", followed.returned},
                           {"failed", followed.failed},
                           {"cpu_seconds", followed.cpu_seconds}});
  if (followed.estimate) out.set("estimate", *followed.estimate);
  return out;
}

std::string outcome_json(const ServeOutcome& outcome) {
  const auto model = [](const ModelServer::Served& one) {
    return Json::object({{"model", one.model},
                         {"version", one.version},
                         {"requests", one.totals.requests},
                         {"answered", one.totals.answered},
                         {"refused", one.totals.all_refused()},
                         {"late", one.totals.late},
                         {"rescued", one.totals.rescued},
                         {"switches", one.totals.switches}});
  };
  Json out = Json::object({{"seconds", outcome.seconds}, {"models", Json::list(outcome.models, model)}});
  if (!outcome.adaptations.empty()) out.set("adaptations", Json::list(outcome.adaptations, adaptation_json));
  return out.line();
}

Result<int> serve(ServeCommand& command) {
  ServeJobOptions& job = command.job;
  if (command.fixed) job.serving.governor.policy = Policy::kFixed;
  if (command.min_accuracy >= 0) {
    job.serving.governor.limits.accuracy = command.min_accuracy;
    job.serving.least_share = 0;
  }
  if (job.model.empty() && job.apps.empty())
    return usage_error(invalid("serve what? Expected a MODEL, or --apps FILE"));
  job.serving.queue_limit = static_cast<size_t>(command.queue);
  job.serving.warm_limit = static_cast<size_t>(command.warm);
  job.http.port = static_cast<uint16_t>(command.http_port);
  job.with_grpc = command.grpc_port >= 0;
  job.grpc.port = static_cast<uint16_t>(std::max(0, command.grpc_port));
  if (command.access_log == LogFormat::kJson)
    job.http.access_log = [](const HttpAccess& access) { say("{}\n", format_access(access)); };
  if (const Status wrong = check(job); !job.apps.empty() && !wrong.ok()) return usage_error(wrong);
  ConsoleControl console;
  if (!job.apps.empty()) job.read_apps_again = &count_hangups();
  auto outcome = run_serve(job, console.control, [&](const Serving& serving) {
    console.console.clear();
    print_ready(command, serving);
  });
  console.console.clear();
  LIMBER_TRY(outcome.status());
  if (command.json) {
    fmt::print("{}\n", outcome_json(*outcome));
  } else {
    print_outcome(*outcome);
  }
  return kExitDone;
}

void add_budget(Arguments& arguments, ServeCommand& o) {
  ServeOptions& serving = o.job.serving;
  arguments.parsed("--latency", "TIME",
                   "Budget of a request, from its last byte to its answer: 15ms; default none",
                   [&](const std::string& text) { return parse_seconds(text, serving.governor.budget_s); });
  arguments.choice("--policy", serving.governor.policy,
                   {{"feedback", Policy::kFeedback},
                    {"forecast", Policy::kForecast},
                    {"reactive", Policy::kReactive},
                    {"fixed", Policy::kFixed}},
                   "How variants are chosen: by what requests took (feedback, default), by the load that is "
                   "expected as well "
                   "(forecast), as AdaptiveNet does (reactive), not at all (fixed)");
  arguments.flag("--fixed", o.fixed, "The same as --policy fixed: the model as it is");
  arguments.number("--min-accuracy", o.min_accuracy, 0, 1,
                   "No variant below this share of images; default three quarters of what the best one has");
  arguments.parsed("--max-memory", "BYTES", "No variant that needs more: 64M", [&](const std::string& text) {
    size_t bytes = 0;
    std::string problem = parse_bytes(text, bytes);
    serving.governor.limits.memory_bytes = bytes;
    return problem;
  });
  arguments.number("--max-energy", serving.governor.limits.energy_j, 0, 1e9,
                   "No variant that needs more joules a run; default any");
  arguments.number("--alpha", serving.weights.latency, 0, 1e9,
                   "Cost of a second of latency where variants are compared; default 0");
  arguments.number("--beta", serving.weights.energy, 0, 1e9, "Cost of a joule; default 0");
  arguments.number("--gamma", serving.weights.error, 0, 1e9,
                   "Cost of wrong answers, as a share of all; default 1");
  arguments.parsed("--dwell", "TIME", "Least time between two switches; default 400ms",
                   [&](const std::string& text) { return parse_seconds(text, serving.governor.dwell_s); });
  arguments.number("--warm", o.warm, 1, 1000, "Variants that stay compiled; default 8");
  arguments.flag("--exits", o.job.exits,
                 "Variants with exits, which 'limber exits' made, instead of those of a search");
}

std::vector<std::string> methods() {
  std::vector<std::string> names = adapt_strategies();
  std::erase(names, "none");
  return names;
}

void add_adapting(Arguments& arguments, ServeCommand& o) {
  ServeAdaptOptions& adapt = o.job.adapt;
  arguments.choice(
      "--adapt", adapt.method, methods(),
      "Follow a drifting world: learn from what is asked, in the background; default not at all");
  arguments.text("--adapt-data", adapt.data, "DATA",
                 "Labelled images like those of the training, but none of them: what is normal");
  arguments.parsed("--adapt-operations", "PERCENT",
                   "Of a surrogate: its operations, by those of the model it is cut from; default 25%",
                   [&](const std::string& text) { return parse_share(text, adapt.settings.operations); });
  arguments.parsed(
      "--adapt-share", "PERCENT",
      "Of the cores, at most, for looking and learning, of all applications together; default 25%",
      [&](const std::string& text) { return parse_share(text, adapt.share); });
}

void add_transport(Arguments& arguments, ServeCommand& o) {
  HttpOptions& http = o.job.http;
  ServeAccess& access = o.job.access;
  arguments.text("--host", access.address, "ADDRESS",
                 "To listen at; default 127.0.0.1, 0.0.0.0 for everybody");
  arguments.number("--http-port", o.http_port, 0, 65535, "Default 8000; 0: any that is free");
  arguments.number("--grpc-port", o.grpc_port, -1, 65535, "Default 8001; 0: any that is free; -1: no gRPC");
  arguments.number("--metrics-port", http.metrics_port, -1, 65535, "A port for /metrics alone; default none");
  arguments.text("--tls-cert", access.certificate, "FILE", "Certificate (PEM): HTTPS and gRPC over TLS");
  arguments.text("--tls-key", access.key, "FILE", "Its key");
  arguments.text("--tls-client-ca", access.client_authority, "FILE",
                 "Clients need a certificate that this authority signed");
  arguments.text("--token-file", access.token_file, "FILE",
                 "Clients must send the token in its first line, over HTTP and gRPC: Authorization: Bearer");
  arguments.flag("--open-health", access.open_health, "Health checks need neither token nor certificate");
  arguments.number("--io-threads", http.io_threads, 1, 64, "That read and write requests; default 1");
  arguments.parsed("--max-request", "BYTES", "Largest request; default 64M", [&](const std::string& text) {
    std::string problem = parse_bytes(text, http.max_body_bytes);
    GrpcOptions& grpc = o.job.grpc;
    grpc.max_message_bytes = http.max_body_bytes;
    http.max_bytes_in_flight = std::max(http.max_bytes_in_flight, http.max_body_bytes);
    grpc.max_receive_bytes = std::max(grpc.max_receive_bytes, grpc.max_message_bytes);
    return problem;
  });
  arguments.choice("--log-format", o.access_log, {{"none", LogFormat::kNone}, {"json", LogFormat::kJson}},
                   "A line on stderr for each request; default none");
  arguments.flag("--debug", http.debug,
                 "POST /v2/limber/variant makes a variant active, for tests of switching");
}

}  // namespace

void add_serve(CommandLine& line) {
  auto options = std::make_shared<ServeCommand>();
  ServeCommand& o = *options;
  Arguments arguments = line.add("serve", "Answer requests over HTTP and gRPC, within a budget of latency",
                                 [options] { return serve(*options); });
  arguments.text(
      "model", o.job.model, "MODEL",
      "Folder that 'limber elastify' made, ONNX file, folder of a training, builtin:NAME, or a folder of "
      "models (NAME/VERSION/model.onnx)");
  arguments.text(
      "--apps", o.job.apps, "FILE",
      "Instead of MODEL: several applications as this file names them (TOML), which share the time "
      "for learning; read again when it changes and on SIGHUP");
  arguments.flag("--json", o.json, "One line of JSON when it is ready, one with the totals when it ends");
  arguments.text("--name", o.job.name, "NAME",
                 "What clients call the model; default the name of its file or folder");
  add_budget(arguments, o);
  add_adapting(arguments, o);
  arguments.number("--workers", o.job.workers, 0, 256,
                   "Requests that are computed at once; default as many as there are cores for");
  arguments.number("--threads", o.job.threads, 0, 1024, "Threads of each; default 1, 0: every core");
  arguments.number("--max-batch", o.job.serving.ready.max_batch, 1, 256,
                   "Requests computed together where that pays; default 4");
  arguments.number("--queue", o.queue, 1, 1000000, "Requests that may wait; more are told 429; default 256");
  add_transport(arguments, o);
  add_image_arguments(arguments, o.job.image);
  arguments.text("--data", o.job.search.data, "DATA",
                 "Images by which variants are judged that are searched for when none keeps the budget");
  arguments.text("--record", o.job.record, "FILE",
                 "Append switches, adaptations and their reasons to this file (JSON lines)");
  arguments.footer(
      "With --data, variants are searched for in the background, with idle time only, when none keeps the "
      "budget.\n"
      "Examples:\n"
      "  limber serve elastic --latency 15ms\n"
      "  limber serve builtin:resnet8\n"
      "  limber serve model.onnx --preprocess imagenet --adapt bn --adapt-data photos\n"
      "  limber serve --apps apps.toml --adapt-share 50%\n"
      "  limber serve models --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem --token-file token");
}

}  // namespace limber
