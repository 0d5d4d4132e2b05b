#include "jobs/source.h"

#include <filesystem>

#include "base/clock.h"
#include "train/run_folder.h"
#include "variant/elastic_folder.h"

namespace limber {

Status refuse_elastic(const std::string& model) {
  if (!is_elastic(model)) return {};
  return invalid("{} is an elastic model; 'limber export {} -o model.onnx' makes a model of it", model,
                 model);
}

Result<std::string> model_file(const std::string& name, const JobControl& control) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(name, ignored)) return name;
  LIMBER_TRY(refuse_elastic(name));
  std::vector<std::string> warnings;
  LIMBER_ASSIGN(const std::string checkpoint, find_checkpoint(name, Which::kBest, warnings));
  for (const std::string& warning : warnings) control.note(NoteKind::kWarning, warning);
  return model_in(checkpoint);
}

Result<Model> load(const ModelSource& source, const JobControl& control) {
  const double start = now_seconds();
  LIMBER_ASSIGN(const std::string name, model_file(source.model, control));
  LIMBER_ASSIGN(Model model, load_model(name, {source.shapes, source.dims, source.batch, source.open_batch}));
  control.note(NoteKind::kInfo, fmt::format("loaded {}: {} nodes in {:.1f} ms", source.model,
                                            model.graph.num_nodes(), 1e3 * (now_seconds() - start)));
  return model;
}

BuildSpec build_spec(const JobOptions& options, bool auto_tunes) {
  BuildSpec spec;
  spec.threads = options.threads;
  spec.batch = options.batch;
  spec.symbols = options.dims;
  spec.tune = options.tune == Tune::kOn || (options.tune == Tune::kAuto && auto_tunes);
  spec.tune_cache = options.tune_cache;
  spec.reference = options.reference;
  spec.optimize = !options.as_is;
  return spec;
}

Result<std::shared_ptr<const Plan>> build(const Model& model, const JobOptions& options, bool auto_tunes,
                                          const JobControl& control) {
  const double start = now_seconds();
  LIMBER_ASSIGN(auto plan, build_plan(model, build_spec(options, auto_tunes)));
  control.note(NoteKind::kInfo,
               fmt::format("compiled to {} steps, {} reorders in {:.1f} ms", plan->steps.size(),
                           plan->num_reorders(), 1e3 * (now_seconds() - start)));
  return plan;
}

}  // namespace limber
