// limber apps: several applications on one machine, from recorded profiles.
#include <fmt/format.h>

#include "base/show.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/table.h"
#include "jobs/apps_export.h"
#include "jobs/apps_job.h"
#include "jobs/json.h"

namespace limber {
namespace {

struct AppsCommand {
  std::string action;
  AppsPlanOptions plan;
  AppsSimulateOptions simulate;
  AppsExportOptions for_others;
  int64_t applications = 0;
  bool json = false;
};

std::string points(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string more(double share) { return fmt::format("{:+.1f}", 100 * share); }

std::vector<std::string> application_row(const AppsPlan& plan, size_t i) {
  const sched::Application& application = plan.applications[i];
  const sched::Decision& decision = plan.schedule.decisions[i];
  const sched::Option& option = application.options[decision.option];
  const bool retrains = decision.threads > 0;
  return {application.name,
          plan.domains[i],
          option.name,
          show_percent(option.load),
          points(option.before),
          retrains ? points(option.after) : "-",
          retrains ? std::to_string(decision.threads) : "-",
          retrains ? (decision.start_s > 0 ? show_seconds(decision.start_s) : "0 s") : "-",
          retrains ? show_seconds(decision.end_s) : "-"};
}

void print_plan(const AppsPlan& plan) {
  Table table({{"application"},
               {"domain"},
               {"option"},
               {"answering", true},
               {"before", true},
               {"after", true},
               {"threads", true},
               {"from", true},
               {"until", true}});
  for (size_t i = 0; i < plan.applications.size(); ++i) table.add(application_row(plan, i));
  const sched::Schedule& schedule = plan.schedule;
  fmt::print("{}\nmean accuracy over {}: {}\n", table.text(), show_seconds(plan.window.seconds),
             points(schedule.accuracy));
  if (schedule.exact)
    fmt::print("no schedule is better; found in {}\n", show_seconds(plan.schedule_seconds));
  else
    fmt::print("at least {} of the best there can be; found in {}\n",
               fmt::format("{:.2f} %", 100 * schedule.optimum_share()), show_seconds(plan.schedule_seconds));
  Table others({{"instead"}, {"accuracy", true}, {"points", true}});
  const auto add = [&](const char* name, double accuracy) {
    others.add({name, points(accuracy), more(accuracy - schedule.accuracy)});
  };
  if (plan.whole_models > 0) add("the best with whole models", plan.whole_models);
  add("ekya", plan.ekya);
  add("uniform", plan.uniform);
  add("no retraining", plan.none);
  fmt::print("\n{}", others.text());
}

Json decision_json(const AppsPlan& plan, size_t i) {
  const sched::Application& application = plan.applications[i];
  const sched::Decision& decision = plan.schedule.decisions[i];
  const sched::Option& option = application.options[decision.option];
  Json out = Json::object({{"name", application.name},
                           {"domain", plan.domains[i]},
                           {"option", option.name},
                           {"size", option.size},
                           {"load", option.load},
                           {"before", option.before},
                           {"threads", decision.threads}});
  if (decision.threads == 0) return out;
  out.set("after", option.after);
  out.set("start_s", decision.start_s);
  out.set("end_s", decision.end_s);
  return out;
}

void print_json(const AppsPlan& plan) {
  const sched::Schedule& schedule = plan.schedule;
  Json out = Json::object({{"window_s", plan.window.seconds},
                           {"threads", plan.window.threads},
                           {"accuracy", schedule.accuracy},
                           {"value", schedule.value},
                           {"bound", schedule.bound},
                           {"exact", schedule.exact},
                           {"optimum_share", schedule.optimum_share()},
                           {"load", schedule.load},
                           {"schedule_seconds", plan.schedule_seconds},
                           {"profiling_s", plan.profiling_s}});
  Json applications = Json::array();
  for (size_t i = 0; i < plan.applications.size(); ++i) applications.push(decision_json(plan, i));
  out.set("applications", applications);
  Json instead = Json::object({{"ekya", plan.ekya}, {"uniform", plan.uniform}, {"none", plan.none}});
  if (plan.whole_models > 0) instead.set("whole_models", plan.whole_models);
  out.set("instead", instead);
  fmt::print("{}\n", out.text());
}

void print_table(const AppsSimulation& simulation) {
  Table table({{"schedule"}, {"accuracy", true}, {"ours less it", true}, {"retrainings", true}});
  const sched::Simulated& ours = simulation.policies.front();
  for (const sched::Simulated& one : simulation.policies)
    table.add({sched::policy_name(one.policy), points(one.accuracy), more(ours.accuracy - one.accuracy),
               std::to_string(one.retrainings)});
  fmt::print("{}\n{} applications; accuracies expected were off by {:.1f} points on average;\n", table.text(),
             simulation.applications, 100 * ours.estimate_error);
  fmt::print("schedules are at least {:.2f} % of the best there can be, and took at most {}\n",
             100 * ours.optimum_share, show_seconds(ours.schedule_seconds));
}

void print_json(const AppsSimulation& simulation) {
  const sched::Simulated& ours = simulation.policies.front();
  Json out = Json::object({{"applications", static_cast<int64_t>(simulation.applications)},
                           {"estimate_error", ours.estimate_error},
                           {"optimum_share", ours.optimum_share},
                           {"schedule_seconds", ours.schedule_seconds}});
  out.set("policies", Json::list(simulation.policies, [](const sched::Simulated& one) {
            return Json::object({{"name", sched::policy_name(one.policy)},
                                 {"accuracy", one.accuracy},
                                 {"retrainings", one.retrainings}});
          }));
  fmt::print("{}\n", out.text());
}

Result<int> apps_plan(const AppsCommand& options) {
  if (const Status wrong = check(options.plan); !wrong.ok()) return usage_error(wrong);
  LIMBER_ASSIGN(const AppsPlan plan, on_console(run_apps_plan, options.plan));
  options.json ? print_json(plan) : print_plan(plan);
  return kExitDone;
}

Result<int> apps_simulate(AppsCommand& options) {
  options.simulate.profiles = options.plan.profiles;
  options.simulate.seed = options.plan.seed;
  options.simulate.applications = static_cast<size_t>(options.applications);
  if (const Status wrong = check(options.simulate); !wrong.ok()) return usage_error(wrong);
  LIMBER_ASSIGN(const AppsSimulation simulation, on_console(run_apps_simulate, options.simulate));
  if (simulation.policies.empty()) return stopped();
  options.json ? print_json(simulation) : print_table(simulation);
  return kExitDone;
}

Result<int> apps_export(AppsCommand& options) {
  AppsExportOptions& job = options.for_others;
  job.apps = options.plan.profiles;
  if (options.json) return usage_error(invalid("'apps export' writes what others read; leave out --json"));
  if (const Status wrong = check(job); !wrong.ok()) return usage_error(wrong);
  LIMBER_ASSIGN(const std::string text, on_console(run_apps_export, job));
  if (job.output.empty()) fmt::print("{}", text);
  return kExitDone;
}

Result<int> apps(AppsCommand& options) {
  if (options.action != "export" && options.for_others != AppsExportOptions())
    return usage_error(
        invalid("'apps {}' starts nothing for others; --for, --cores, --memory, --adapt-share, --image, "
                "--claim and -o are for 'apps export'",
                options.action));
  if (options.action == "plan") return apps_plan(options);
  if (options.action == "simulate") return apps_simulate(options);
  if (options.action == "export") return apps_export(options);
  return usage_error(invalid("'{}' is no action; known: plan, simulate, export", options.action));
}

}  // namespace

void add_apps(CommandLine& line) {
  auto options = std::make_shared<AppsCommand>();
  Arguments arguments =
      line.add("apps", "Several applications on one machine: who retrains, and what it brings",
               [options] { return apps(*options); });
  arguments.text(
      "action", options->action, "plan|simulate|export",
      "plan: the best schedule for one window. simulate: many windows of drifting domains. export: "
      "what systemd or Kubernetes need to start a server of applications",
      Arguments::Need::kRequired);
  arguments.text("profiles", options->plan.profiles, "FILE",
                 "What was measured of the applications; of export the apps.toml that names them. See "
                 "docs/scheduling.md",
                 Arguments::Need::kRequired);
  arguments.text("--domain", options->plan.domain, "NAME",
                 "Of plan: where the applications are that know it; default, and the others, their first");
  arguments.number("--window", options->plan.window_s, 1e-3, 1e9,
                   "Of plan: seconds to plan for; default what the file says");
  arguments.number("--apps", options->applications, int64_t{0}, int64_t{sched::kMaxApplications},
                   "Of simulate: so many, those recorded again and again; 0 (default): each once");
  arguments.number("--windows", options->simulate.windows, 1, 100000, "Of simulate: how many; default 10");
  arguments.number("--stay", options->simulate.stay, 0.0, 1.0,
                   "Of simulate: how likely a domain stays for the next window; default 0.3");
  arguments.number("--machine", options->simulate.machine, 0.0, 1e6,
                   "Of simulate: how many times the recorded machine; 0 (default): as many as there are more "
                   "applications");
  arguments.seed("--seed", options->plan.seed, "Which domains, and of evolution; default 0");
  AppsExportOptions& others = options->for_others;
  arguments.choice("--for", others.to,
                   {{"systemd", Orchestrator::kSystemd}, {"kubernetes", Orchestrator::kKubernetes}},
                   "Of export: whom; default systemd");
  arguments.number("--cores", others.cores, 0.0, 4096.0,
                   "Of export: that the server may use; 0 (default): those of this machine");
  arguments.parsed("--memory", "BYTES", "Of export: the same, as in 512M; default no limit",
                   [&others](const std::string& text) { return parse_bytes(text, others.memory_bytes); });
  arguments.parsed("--adapt-share", "PERCENT", "Of export: of the cores, at most, for learning; default 25%",
                   [&others](const std::string& text) { return parse_share(text, others.adapt_share); });
  arguments.text("--image", others.image, "NAME", "Of export, Kubernetes: the container; default limber");
  arguments.text("--claim", others.claim, "NAME",
                 "Of export, Kubernetes: the claim of the volume that has the folder of FILE; default "
                 "limber-apps");
  arguments.text("-o,--output", others.output, "FILE", "Of export: instead of to the terminal");
  arguments.flag("--json", options->json, "Machine-readable output");
  arguments.footer(
      "Examples:\n"
      "  limber apps plan cameras.json\n"
      "  limber apps plan cameras.json --domain fog --window 60 --json\n"
      "  limber apps simulate cameras.json --apps 64 --windows 20\n"
      "  limber apps export apps.toml --for kubernetes --cores 2 --memory 1G -o limber.yaml");
}

}  // namespace limber
