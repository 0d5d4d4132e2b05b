#include "jobs/export_job.h"

#include <filesystem>

#include "data/loader.h"
#include "jobs/classifier.h"
#include "jobs/fold.h"
#include "jobs/output.h"
#include "jobs/prune.h"
#include "passes/answers.h"
#include "supernet/teach/recalibrate.h"
#include "variant/elastic_folder.h"

namespace limber {
namespace {

constexpr int64_t kCalibrationImages = 1024;  // statistics of a channel settle well before
constexpr int64_t kCalibrationBatch = 64;     // images at a time, unless the job says another number

// Unlabelled images, as the elastic model takes them.
Result<std::vector<Tensor>> calibration_batches(const ExportJobOptions& options,
                                                const ElasticFolder& folder) {
  LIMBER_ASSIGN(std::shared_ptr<const Dataset> data,
                open_dataset(options.recalibrate, {.split = Split::kTrain}));
  LoaderOptions how;
  const Dim own = folder.model.base.type(folder.model.base.inputs()[0]).shape[0];
  const int64_t wanted = own.is_constant()   ? own.value()
                         : options.batch > 0 ? options.batch
                                             : kCalibrationBatch;
  if (static_cast<int64_t>(data->size()) < wanted)
    return invalid("{} has {} images, a batch takes {}; give more images or a smaller batch",
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

Result<Model> load_variant(const ExportJobOptions& options, std::optional<ModelCard>& card) {
  LIMBER_ASSIGN(const ElasticFolder folder, load_elastic(options.model));
  card = ModelCard{folder.info.input, folder.info.classes};
  Variant variant = original_variant(folder.model);
  if (!options.variant.empty()) {
    LIMBER_ASSIGN(variant, parse_variant(folder.model, options.variant));
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
  model.graph = split_outputs(model.graph);
  return model;
}

}  // namespace

Status check(const ExportJobOptions& o) {
  if (o.output.empty()) return invalid("where to? No output file is named");
  if (!is_elastic(o.model) && (!o.variant.empty() || !o.recalibrate.empty()))
    return invalid("{} is for the folder of an elastic model; {} is none",
                   o.variant.empty() ? "recalibrate" : "variant", o.model);
  if (!(o.operations >= 0 && o.operations <= 1))
    return invalid("operations is {}; expected a share of those of the model, at most 1", o.operations);
  return {};
}

Result<ExportResult> run_export(const ExportJobOptions& o, const JobControl& control) {
  LIMBER_TRY(check(o));
  const bool elastic = is_elastic(o.model);
  std::optional<ModelCard> card;
  if (!elastic) {
    LIMBER_ASSIGN(card, checkpoint_of(o.model));
    LIMBER_ASSIGN(const std::string source, model_file(o.model, control));
    LIMBER_TRY(check_output_file(o.output, source));
  }
  LIMBER_TRY(check_output_file(o.output, o.model));
  LIMBER_ASSIGN(Model model, elastic ? load_variant(o, card) : load(o, control));
  ExportResult result{.nodes_before = model.graph.num_nodes()};
  if (o.operations > 0) {
    LIMBER_ASSIGN(model, prune_to(model, o.operations));
  }
  if (o.fold) {
    LIMBER_ASSIGN(model, fold_for_inference(model));
  }
  ExportOptions format = o.format;
  if (card) format.metadata.merge(card_texts(*card));
  LIMBER_TRY(export_onnx(model.graph, *model.params, o.output, format));
  result.nodes = model.graph.num_nodes();
  result.parameters = parameter_elements(model);
  return result;
}

}  // namespace limber
