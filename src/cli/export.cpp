// limber export: any model Limber can load, as plain ONNX.
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "data/loader.h"
#include "io/onnx.h"
#include "jobs/fold.h"
#include "supernet/teach/recalibrate.h"
#include "variant/elastic_folder.h"

namespace limber {
namespace {

struct ExportCommand : CommonOptions {
  std::string output;
  std::string variant;
  std::string recalibrate;  // images
  bool fold = false;
  ExportOptions format;
};

constexpr int64_t kCalibrationImages = 1024;

// Unlabelled images, as the elastic model takes them.
Result<std::vector<Tensor>> calibration_batches(const ExportCommand& options, const ElasticFolder& folder) {
  LIMBER_ASSIGN(std::shared_ptr<const Dataset> data,
                open_dataset(options.recalibrate, {.split = Split::kTrain}));
  LoaderOptions how;
  const Dim own = folder.model.base.type(folder.model.base.inputs()[0]).shape[0];
  const int64_t wanted = own.is_constant() ? own.value() : options.batch > 0 ? options.batch : 64;
  if (static_cast<int64_t>(data->size()) < wanted)
    return invalid("{} has {} images, a batch takes {}; give more images or a smaller --batch",
                   options.recalibrate, data->size(), wanted);
  how.batch = wanted;
  how.seed = options.seed;
  how.augment = false;
  how.drop_last = true;
  how.input = folder.info.input;
  LIMBER_ASSIGN(const auto loader, Loader::make(std::move(data), how));
  LIMBER_TRY(loader->start_epoch(0));
  std::vector<Tensor> batches;
  while (static_cast<int64_t>(batches.size()) * how.batch < kCalibrationImages) {
    LIMBER_ASSIGN(const Batch batch, loader->next());
    if (batch.size == 0) break;
    batches.push_back(batch.images);
  }
  return batches;
}

Result<Model> load_variant(const ExportCommand& options) {
  LIMBER_ASSIGN(const ElasticFolder folder, load_elastic(options.model));
  Variant variant = original_variant(folder.model);
  if (!options.variant.empty()) {
    LIMBER_ASSIGN(variant, parse_variant(options.variant));
  }
  Model model;
  LIMBER_ASSIGN(model.graph, materialize(folder.model, variant));
  model.params = folder.model.params;
  if (!options.recalibrate.empty()) {
    const BuildSpec spec = build_spec(options, false);
    LIMBER_ASSIGN(const auto batches, calibration_batches(options, folder));
    LIMBER_ASSIGN(model.params,
                  recalibrate(model.graph, *model.params, make_backends(spec), batches, thread_count(spec)));
  }
  return model;
}

Result<int> run_export(const ExportCommand& options) {
  const bool elastic = is_elastic(options.model);
  if (!elastic && (!options.variant.empty() || !options.recalibrate.empty()))
    return usage_error(invalid("--{} is for the folder of an elastic model; {} is none",
                               options.variant.empty() ? "recalibrate" : "variant", options.model));
  LIMBER_ASSIGN(Model model, elastic ? load_variant(options) : load(options));
  const size_t before = model.graph.num_nodes();
  if (options.fold) {
    LIMBER_ASSIGN(model, fold_for_inference(model));
  }
  LIMBER_TRY(export_onnx(model.graph, *model.params, options.output, options.format));
  if (options.json) {
    const Json out = Json::object({{"file", options.output},
                                   {"opset", options.format.opset},
                                   {"nodes", model.graph.num_nodes()},
                                   {"parameters", parameter_elements(model)}});
    fmt::print("{}\n", out.text());
  } else {
    fmt::print("wrote {}: opset {}, {} nodes ({} before), {} parameters\n", options.output,
               options.format.opset, model.graph.num_nodes(), before, parameter_elements(model));
  }
  return kExitDone;
}

}  // namespace

void add_export(CommandLine& line) {
  auto options = std::make_shared<ExportCommand>();
  Arguments arguments =
      line.add("export", "Write a model as plain ONNX", [options] { return run_export(*options); });
  add_common(arguments, *options, Arguments::Need::kRequired,
             "ONNX file, folder of a training, checkpoint or elastic model, or builtin:NAME");
  arguments.text("-o,--output", options->output, "FILE", "File to write", Arguments::Need::kRequired);
  arguments.text("--variant", options->variant, "V", "Of an elastic model, which; default the original");
  arguments.text("--recalibrate", options->recalibrate, "DATA",
                 "Measure the statistics of a variant's normalisation anew on such images; labels are not "
                 "looked at");
  arguments.flag("--fold", options->fold, "Fold normalisation into weights and drop what does nothing");
  arguments.number("--opset", options->format.opset, 17, 18, "Operator set of the file: 17 (default) or 18");
  arguments.flag("--external-data", options->format.external_data, "Weights in a second file, FILE.data");
}

}  // namespace limber
