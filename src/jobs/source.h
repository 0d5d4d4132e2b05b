// Which model a job works on, how it is compiled, and what images become for it: what all jobs are told.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/preprocess.h"
#include "jobs/engine.h"
#include "jobs/job.h"

namespace limber {

struct ModelSource {
  std::string model;        // ONNX file, folder of a training or of a checkpoint, or "builtin:NAME"
  int64_t batch = 0;        // first dimension of the inputs; 0: what the file says or the job needs
  bool open_batch = false;  // as in LoadSpec
  std::map<std::string, int64_t> dims;                 // open dimension -> value
  std::map<std::string, std::vector<int64_t>> shapes;  // input -> dimensions; -1 keeps the file's
};

enum class Tune : uint8_t {
  kAuto,  // where a job measures
  kOn,    // the candidates of every layer are timed
  kOff,
};

struct EngineOptions {
  int threads = 0;  // 0: every core this process may use
  Tune tune = Tune::kAuto;
  std::string tune_cache = default_tune_cache();
  bool reference = false;  // only the slow, obvious kernels
  bool as_is = false;      // the graph is compiled as it is in the file
};

// What every job's own options begin with.
struct JobOptions : ModelSource, EngineOptions {
  uint64_t seed = 0;  // of everything random
};

// How images become the input of a network.
struct ImageOptions {
  std::vector<int64_t> size;  // {side} or {height, width}; empty: what the model wants
  int crop = 0;               // side of the square that is then cut out of the middle; 0: none
  // What was done to the pixels that the model was trained on; nothing: what is saved with it, else
  // values in 0..1. A normalisation of one's own goes before that of a preset.
  std::optional<Preset> preset;
  std::optional<Normalisation> normalisation;
  uint64_t seed = 0;  // of builtin:image
};

// What to do instead, where a job takes no elastic model.
Status refuse_elastic(const std::string& model);
// The file to load: of a run its best checkpoint's, of a checkpoint its own; everything else stays as it is.
Result<std::string> model_file(const std::string& name, const JobControl& control = {});
Result<Model> load(const ModelSource& source, const JobControl& control = {});

// `auto_tunes`: what Tune::kAuto means for this job.
BuildSpec build_spec(const JobOptions& options, bool auto_tunes);
Result<std::shared_ptr<const Plan>> build(const Model& model, const JobOptions& options, bool auto_tunes,
                                          const JobControl& control = {});

}  // namespace limber
