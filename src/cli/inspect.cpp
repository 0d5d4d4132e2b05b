// limber inspect: what is in a model and what it costs.
#include <algorithm>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/table.h"
#include "jobs/inspect_job.h"
#include "jobs/json.h"

namespace limber {
namespace {

struct InspectOptions : JobOptions {
  bool json = false, graph = false, plan = false;
};

Json tensor_json(const std::string& name, const TensorType& type) {
  const auto size = [](const Dim& dim) {
    return dim.is_constant() ? Json(dim.value()) : Json(dim.to_string());
  };
  return Json::object(
      {{"name", name}, {"dtype", dtype_name(type.dtype)}, {"shape", Json::list(type.shape, size)}});
}

void print_json(const Model& model, const InspectOptions& options, const ModelCost& cost) {
  const Graph& graph = model.graph;
  const auto input = [&](ValueId of) { return tensor_json(graph.value(of).name, graph.type(of)); };
  const auto output = [&](const Output& of) { return tensor_json(of.name, graph.type(of.value)); };
  const auto use = [](const auto& of) {
    return Json::object({{"op", of.first}, {"count", of.second.count}, {"flops", of.second.flops}});
  };
  Json out = Json::object({{"model", options.model},
                           {"name", graph.name},
                           {"opset", model.opset},
                           {"ir_version", model.ir_version},
                           {"producer", model.producer},
                           {"nodes", graph.num_nodes()},
                           {"parameters", parameter_elements(model)},
                           {"parameter_bytes", model.params->bytes()},
                           {"inputs", Json::list(graph.inputs(), input)},
                           {"outputs", Json::list(graph.outputs(), output)},
                           {"operators", Json::list(cost.operators, use)}});
  if (cost.why_not.ok()) {
    out.set("flops", cost.flops);
    out.set("arena_bytes", cost.arena_bytes);
    out.set("input_output_bytes", cost.io_bytes);
    out.set("plan", Json::object({{"steps", cost.steps}, {"reorders", cost.reorders}}));
  } else {
    out.set("unknown", cost.why_not.message());
  }
  fmt::print("{}\n", out.text());
}

void print_cost(const ModelCost& cost) {
  if (!cost.why_not.ok()) {
    fmt::print("cost         unknown: {}\n", cost.why_not.message());
    return;
  }
  fmt::print("cost         {}FLOP for {}\n", show_count(cost.flops), cost.shapes);
  fmt::print("memory       {} for activations, {} for inputs and outputs\n",
             show_bytes(static_cast<double>(cost.arena_bytes)),
             show_bytes(static_cast<double>(cost.io_bytes)));
  fmt::print("plan         {} steps, {} of them reorders\n", cost.steps, cost.reorders);
}

void print_operators(const ModelCost& cost) {
  std::vector<std::pair<std::string, OperatorCost>> rows(cost.operators.begin(), cost.operators.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::tie(b.second.flops, b.second.count) < std::tie(a.second.flops, a.second.count);
  });
  Table table({{"operator"}, {"count", true}, {"FLOP", true}, {"share", true}});
  for (const auto& [name, use] : rows) {
    const bool known = cost.why_not.ok();
    table.add({name, std::to_string(use.count), known ? show_count(use.flops) : "?",
               known && cost.flops > 0 ? show_percent(use.flops / cost.flops) : "?"});
  }
  fmt::print("\n{}", table.text());
}

void print_text(const Model& model, const InspectOptions& options, const ModelCost& cost) {
  const Graph& graph = model.graph;
  fmt::print("model        {}\n", options.model);
  fmt::print("made by      {}, opset {}\n", model.producer.empty() ? "unknown" : model.producer, model.opset);
  for (ValueId input : graph.inputs()) {
    fmt::print("input        {}: {}\n", graph.value(input).name, graph.type(input).to_string());
  }
  for (const Output& output : graph.outputs()) {
    fmt::print("output       {}: {}{}\n", output.name, graph.type(output.value).to_string(),
               output.rows == kNoValue ? "" : " (rows depend on the data)");
  }
  fmt::print("parameters   {} ({})\n", show_count(static_cast<double>(parameter_elements(model))),
             show_bytes(static_cast<double>(model.params->bytes())));
  fmt::print("nodes        {}\n", graph.num_nodes());
  print_cost(cost);
  print_operators(cost);
}

Result<int> inspect(const InspectOptions& options) {
  Console console;
  const JobControl control{.observer = &console};
  LIMBER_ASSIGN(const Model model, load(options, control));
  if (options.graph) {
    fmt::print("{}", print(model.graph));
    return kExitDone;
  }
  if (options.plan) {
    LIMBER_ASSIGN(const auto plan, build(model, options, false, control));
    fmt::print("{}", plan->text());
    return kExitDone;
  }
  LIMBER_ASSIGN(const ModelCost cost, cost_of_model(model, options, control));
  options.json ? print_json(model, options, cost) : print_text(model, options, cost);
  return kExitDone;
}

}  // namespace

void add_inspect(CommandLine& line) {
  auto options = std::make_shared<InspectOptions>();
  Arguments arguments = line.add("inspect", "What is in a model: inputs, outputs, size, cost, operators",
                                 [options] { return inspect(*options); });
  add_common(arguments, *options, options->json);
  arguments.flag("--graph", options->graph, "Print the graph as text");
  arguments.flag("--plan", options->plan, "Print the compiled plan: every step, layout and reorder");
}

}  // namespace limber
