// limber export: any model Limber can load, as plain ONNX.
#include <nlohmann/json.hpp>

#include "api/fold.h"
#include "cli/commands.h"
#include "cli/options.h"

namespace limber {
namespace {

struct ExportCommand : CommonOptions {
  std::string output;
  bool fold = false;
  ExportOptions format;
};

Result<int> run_export(const ExportCommand& options) {
  LIMBER_ASSIGN(Model model, load(options));
  const size_t before = model.graph.num_nodes();
  if (options.fold) {
    LIMBER_ASSIGN(model, fold_for_inference(model));
  }
  LIMBER_TRY(export_onnx(model.graph, *model.params, options.output, options.format));
  if (options.json) {
    const nlohmann::json out{{"file", options.output},
                             {"opset", options.format.opset},
                             {"nodes", model.graph.num_nodes()},
                             {"parameters", parameter_elements(model)}};
    fmt::print("{}\n", out.dump(2));
  } else {
    fmt::print("wrote {}: opset {}, {} nodes ({} before), {} parameters\n", options.output,
               options.format.opset, model.graph.num_nodes(), before, parameter_elements(model));
  }
  return kExitDone;
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("export", "Write a model as plain ONNX");
  auto options = std::make_shared<ExportCommand>();
  add_model_options(*command, *options);
  add_build_options(*command, *options);
  command->add_option("-o,--output", options->output, "File to write")->required()->type_name("FILE");
  command->add_flag("--fold", options->fold, "Fold normalisation into weights and drop what does nothing");
  command->add_option("--opset", options->format.opset, "Operator set of the file")
      ->check(CLI::Range(17, 18));
  command->add_flag("--external-data", options->format.external_data, "Weights in a second file, FILE.data");
  command->callback([options, &action] { action = [options] { return run_export(*options); }; });
}

}  // namespace limber
