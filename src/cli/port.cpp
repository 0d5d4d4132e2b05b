// limber port: a model for each of many devices' goals.
#include <fmt/core.h>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/image_arguments.h"
#include "cli/options.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/train_arguments.h"
#include "jobs/json.h"
#include "jobs/port_job.h"

namespace limber {
namespace {

struct PortCommand {
  PortJobOptions job;
  bool json = false;
};

void set(Json& object, const char* key, const std::optional<double>& value) {
  if (value) object.set(key, *value);
}

Json goal_json(const PortOutcome::Entry& entry) {
  const GoalRecord& record = entry.record;
  Json goal = Json::object({{"name", record.name},
                            {"device", record.device},
                            {"planned_parent", entry.planned},
                            {"way", entry.way},
                            {"done", entry.done}});
  Json limits = Json::object();
  set(limits, "latency_s", record.latency_limit);
  set(limits, "memory_bytes", record.memory_limit);
  set(limits, "parameters", record.parameters_limit);
  set(limits, "accuracy", record.accuracy_limit);
  goal.set("limits", std::move(limits));
  if (!entry.done) return goal;
  goal.set("kept", record.refused.empty());
  goal.set("parent", record.parent);
  goal.set("steps", record.steps);
  goal.set("seconds", record.seconds);
  if (!record.refused.empty()) goal.set("refused", record.refused);
  if (!record.made) return goal;
  if (!record.variant.empty()) goal.set("variant", record.variant);
  goal.set("promised_s", record.promised_s);
  goal.set("measured_s", record.measured_s);
  goal.set("memory_bytes", record.memory);
  goal.set("parameters", record.parameters);
  goal.set("operations", record.operations);
  set(goal, "accuracy", record.accuracy);
  return goal;
}

void print_json(const PortOutcome& outcome) {
  Json out = Json::object({{"folder", outcome.folder},
                           {"executor", outcome.executor},
                           {"stopped", outcome.stopped},
                           {"kept", outcome.kept},
                           {"refused", outcome.refused},
                           {"known", outcome.known},
                           {"judged_on", outcome.images.text()},
                           {"model_measured_s", outcome.model_s},
                           {"model_operations", outcome.model.operations},
                           {"model_moved_bytes", outcome.model.moved_bytes},
                           {"model_parameters", outcome.model.parameters},
                           {"model_memory_bytes", outcome.model.memory},
                           {"tree_s", outcome.tree_s},
                           {"tree_way", outcome.tree_way},
                           {"alone_way", outcome.alone_way},
                           {"prepare_s", outcome.prepare_s},
                           {"seconds", outcome.seconds}});
  set(out, "model_accuracy", outcome.model_accuracy);
  out.set("goals", Json::list(outcome.goals, goal_json));
  fmt::print("{}\n", out.text());
}

// "8.3 ms of 12 ms"
std::string within(Constraint constraint, double value, const std::optional<double>& limit) {
  const std::string shown = show_figure(constraint, value);
  return limit ? shown + " of " + show_figure(constraint, *limit) : shown;
}

std::string asked(Constraint constraint, const std::optional<double>& limit) {
  return limit ? "of " + show_figure(constraint, *limit) : "";
}

void print_tree(const PortOutcome& outcome) {
  Table table({{"goal"},
               {"device"},
               {"promised"},
               {"here", true},
               {"memory"},
               {"parameters"},
               {"accuracy", true},
               {"took", true}});
  table.add({"(the model)", "", "", show_seconds(outcome.model_s),
             show_figure(Constraint::kMemory, outcome.model.memory),
             show_figure(Constraint::kParameters, outcome.model.parameters),
             outcome.model_accuracy ? show_percent(*outcome.model_accuracy) : "", ""});
  for (const PortOutcome::Entry& entry : outcome.goals) {
    const GoalRecord& r = entry.record;
    std::vector<std::string> row = {std::string(2 * static_cast<size_t>(entry.depth) + 2, ' ') + r.name,
                                    r.device};
    if (r.made) {
      row.insert(row.end(),
                 {within(Constraint::kLatency, r.promised_s, r.latency_limit), show_seconds(r.measured_s),
                  within(Constraint::kMemory, r.memory, r.memory_limit),
                  within(Constraint::kParameters, r.parameters, r.parameters_limit),
                  r.accuracy ? show_percent(*r.accuracy) : "", show_seconds(r.seconds)});
    } else {
      row.insert(row.end(), {asked(Constraint::kLatency, r.latency_limit), entry.done ? "refused" : "to do",
                             asked(Constraint::kMemory, r.memory_limit),
                             asked(Constraint::kParameters, r.parameters_limit), "", ""});
    }
    table.add(row);
  }
  fmt::print("{}", table.text());
  for (const PortOutcome::Entry& entry : outcome.goals)
    if (!entry.record.refused.empty()) fmt::print("refused: {}\n", entry.record.refused);
  const double saved = outcome.alone_way > 0 ? 1 - outcome.tree_way / outcome.alone_way : 0;
  fmt::print("{} of {} goals kept, {} refused, by {}; the tree saves {} of the way\n", outcome.kept,
             outcome.goals.size(), outcome.refused, outcome.executor, show_percent(saved));
  fmt::print("accuracies are of {}\n", outcome.images.text());
}

Result<int> port(const PortCommand& options) {
  if (const Status wrong = check(options.job); !wrong.ok()) return usage_error(wrong);
  LIMBER_ASSIGN(const PortOutcome outcome, on_console(run_port, options.job));
  options.json ? print_json(outcome) : print_tree(outcome);
  if (outcome.stopped) {
    say("limber: stopped after {} goals, which are kept; the same command with --resume goes on\n",
        outcome.kept + outcome.refused);
    return kExitFailed;
  }
  return outcome.refused == 0 ? kExitDone : kExitFailed;
}

}  // namespace

void add_port(CommandLine& line) {
  auto options = std::make_shared<PortCommand>();
  PortJobOptions& job = options->job;
  Arguments arguments =
      line.add("port", "Make a model for each of many devices' goals, each from a looser one's",
               [options] { return port(*options); });
  arguments.text("goals", job.goals, "GOALS", "File of goals: devices and targets. See docs/porting.md",
                 Arguments::Need::kRequired);
  arguments.text("--model", job.model, "MODEL",
                 "ONNX file, folder of a training, checkpoint or elastic model, or builtin:NAME",
                 Arguments::Need::kRequired);
  add_settings(arguments, job, options->json);
  arguments.text("-d,--data", job.data, "DATA", "Labelled images, to learn from and to judge by",
                 Arguments::Need::kRequired);
  arguments.text("-o,--output", job.output, "DIR", "Folder for the models");
  arguments.flag("--resume", job.resume, "Go on with what is in DIR: goals that are done are not done again");
  arguments.flag("--plan", job.plan_only, "Show the tree of goals; make nothing");
  arguments.choice<PortBy>(
      "--executor", job.by,
      {{"auto", PortBy::kAuto}, {"supernet", PortBy::kSupernet}, {"filters", PortBy::kFilters}},
      "supernet: a variant of an elastic model for each goal. filters: fewer filters, trained "
      "further. Default: supernet for an elastic model, else filters");
  arguments.number("--images", job.images, 1, 100000000, "Images to judge by, at most; default 500");
  arguments.parsed("--epochs", "N", "Training of each goal at its end; default 0 by supernet, 3 by filters",
                   [&job](const std::string& text) -> std::string {
                     const auto number = parse_integer(text);
                     if (!number || *number < 0)
                       return fmt::format("'{}' should be a number, 0 or more", text);
                     job.epochs = *number;
                     return "";
                   });
  arguments.number("--lr", job.rate, 1e-9, 1.0, "Learning rate of training; default 0.01");
  arguments.number("--evaluations", job.evaluations, 1, 1000000,
                   "By supernet: variants that a goal tries, known ones included; default 60");
  arguments.number("--step-images", job.step_images, 0.0, 1.0,
                   "By filters: share of the images that each step of shrinking trains on; default 0.5");
  arguments.parsed("--budget", "TIME",
                   "By supernet, of a model that is not elastic: time for making it so; default 10min",
                   [&job](const std::string& text) { return parse_seconds(text, job.budget); });
  arguments.number("--padding", job.changes.padding, 0, 1024,
                   "In training: pixels a random cut may reach beyond the image");
  arguments.number("--flip", job.changes.flip, 0.0, 1.0, "In training: probability of mirroring an image");
  add_image_arguments(arguments, job.image);
  add_bad_images_argument(arguments, job.on_bad_image);
  add_workers_argument(arguments, job.workers);
  arguments.footer(
      "Exit code 1 when a goal is refused; the others are done all the same. Goals that are added to the "
      "file\n"
      "while it runs are done, too.\n"
      "Examples:\n"
      "  limber port goals.json --model elastic --data photos -o ported\n"
      "  limber port goals.json --model model.onnx --data photos --plan");
}

}  // namespace limber
