// limber check: can this model run here, and if not, why.
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/say.h"
#include "cli/table.h"
#include "jobs/inspect_job.h"
#include "jobs/json.h"

namespace limber {
namespace {

struct CheckOptions : JobOptions {
  bool json = false, list = false;
};

std::string full_name(const OperatorUse& use) {
  return use.domain.empty() ? use.op_type : use.domain + "." + use.op_type;
}

void print_json(const JobOptions& options, const std::vector<OperatorUse>& uses, const Status& loaded) {
  Json operators = Json::array();
  for (const OperatorUse& use : uses) {
    Json row = Json::object({{"op", use.op_type},
                             {"domain", use.domain},
                             {"version", use.version},
                             {"count", use.count},
                             {"forward", use.forward},
                             {"gradient", use.gradient}});
    if (!use.reason.empty()) row.set("reason", use.reason);
    operators.push(row);
  }
  Json out = Json::object({{"model", options.model}, {"supported", loaded.ok()}, {"operators", operators}});
  if (!loaded.ok()) out.set("error", loaded.message());
  fmt::print("{}\n", out.text());
}

void print_text(const JobOptions& options, const std::vector<OperatorUse>& uses, const Status& loaded) {
  Table table({{"operator"}, {"version", true}, {"count", true}, {"forward"}, {"gradient"}, {"why not"}});
  int64_t missing = 0;
  for (const OperatorUse& use : uses) {
    table.add({full_name(use), std::to_string(use.version), std::to_string(use.count),
               use.forward ? "yes" : "NO", use.gradient ? "yes" : "no", use.reason});
    missing += use.forward ? 0 : 1;
  }
  fmt::print("{}\n", table.text());
  if (loaded.ok()) {
    fmt::print("{}: runs; {} operators, all supported\n", options.model, uses.size());
  } else if (missing > 0) {
    fmt::print("{}: does not run; {} of {} operators are not supported\n", options.model, missing,
               uses.size());
  } else {
    fmt::print("{}: does not run; {}\n", options.model, loaded.message());
  }
}

// Every operator there is, as a table for the documentation.
void print_list(const CheckOptions& options) {
  const auto operators = supported_operators();
  if (options.json) {
    Json out = Json::array();
    for (const SupportedOperator& op : operators) {
      out.push(Json::object({{"op", op.op_type},
                             {"first", op.first_version},
                             {"last", op.last_version},
                             {"forward", true},
                             {"gradient", op.gradient}}));
    }
    fmt::print("{}\n", out.text());
    return;
  }
  fmt::print("| operator | operator sets | forward | gradient |\n|---|---|---|---|\n");
  for (const SupportedOperator& op : operators) {
    fmt::print("| {} | {} to {} | yes | {} |\n", op.op_type, op.first_version, op.last_version,
               op.gradient ? "yes" : "no");
  }
}

Result<int> check(const CheckOptions& options) {
  if (options.list) {
    print_list(options);
    return kExitDone;
  }
  if (options.model.empty()) return usage_error(invalid("give a MODEL, or --list for all operators"));
  Console console;
  LIMBER_ASSIGN(const CheckResult result, check_model(options, {.observer = &console}));
  const Status& loaded = result.runs;
  options.json ? print_json(options, result.uses, loaded) : print_text(options, result.uses, loaded);
  if (loaded.ok()) return kExitDone;
  if (loaded.code() != Code::kUnsupported) return loaded;
  say("limber: error: {}\n", loaded.message());
  return kExitUnsupported;
}

}  // namespace

void add_check(CommandLine& line) {
  auto options = std::make_shared<CheckOptions>();
  Arguments arguments = line.add("check", "Which operators a model needs and whether they are supported",
                                 [options] { return check(*options); });
  add_common(arguments, *options, options->json, Arguments::Need::kOptional);
  arguments.flag("--list", options->list, "Instead: every operator Limber has, as a Markdown table");
}

}  // namespace limber
