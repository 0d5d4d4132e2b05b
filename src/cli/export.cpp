// limber export: any model Limber can load, as plain ONNX.
#include "base/units.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options.h"
#include "jobs/export_job.h"
#include "jobs/json.h"

namespace limber {
namespace {

struct ExportCommand : ExportJobOptions {
  bool json = false;
};

Result<int> export_model(const ExportCommand& options) {
  if (const Status status = check(options); !status.ok()) return usage_error(status);
  Console console;
  LIMBER_ASSIGN(const ExportResult result, run_export(options, {.observer = &console}));
  if (options.json) {
    const Json out = Json::object({{"file", options.output},
                                   {"opset", options.format.opset},
                                   {"nodes", result.nodes},
                                   {"parameters", result.parameters}});
    fmt::print("{}\n", out.text());
  } else {
    fmt::print("wrote {}: opset {}, {} nodes ({} before), {} parameters\n", options.output,
               options.format.opset, result.nodes, result.nodes_before, result.parameters);
  }
  return kExitDone;
}

}  // namespace

void add_export(CommandLine& line) {
  auto options = std::make_shared<ExportCommand>();
  Arguments arguments =
      line.add("export", "Write a model as plain ONNX", [options] { return export_model(*options); });
  add_common(arguments, *options, options->json, Arguments::Need::kRequired,
             "ONNX file, folder of a training, checkpoint or elastic model, or builtin:NAME");
  arguments.text("-o,--output", options->output, "FILE", "File to write", Arguments::Need::kRequired);
  arguments.text("--variant", options->variant, "V", "Of an elastic model, which; default the original");
  arguments.text("--recalibrate", options->recalibrate, "DATA",
                 "Measure the statistics of a variant's normalisation anew on such images; labels are not "
                 "looked at");
  arguments.parsed(
      "--operations", "SHARE",
      "Only the channels with the largest weights, as many as leave this share of the operations, "
      "as in 25%; not trained",
      [options](const std::string& text) { return parse_share(text, options->operations); });
  arguments.flag("--fold", options->fold, "Fold normalisation into weights and drop what does nothing");
  arguments.number("--opset", options->format.opset, 17, 18, "Operator set of the file: 17 (default) or 18");
  arguments.flag("--external-data", options->format.external_data, "Weights in a second file, FILE.data");
}

}  // namespace limber
