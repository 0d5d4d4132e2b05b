// Options that several commands have, and what they lead to.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "jobs/engine.h"
#include "train/training_session.h"

namespace limber {

struct CommonOptions {
  std::string model;
  int threads = 0;
  int64_t batch = 0;
  std::map<std::string, int64_t> dims;
  std::map<std::string, std::vector<int64_t>> shapes;
  bool json = false;
  uint64_t seed = 0;
  std::string tune = "auto";
  std::string tune_cache = default_tune_cache();
  std::string backend = "cpu";
  bool as_is = false;
};

// MODEL, --json, --threads, --batch, --dim, --shape, --tune, --tune-cache, --backend, --seed.
void add_common(Arguments& arguments, CommonOptions& options,
                Arguments::Need model = Arguments::Need::kRequired,
                const char* model_help = "ONNX file, folder of a training or checkpoint, or builtin:NAME");
inline constexpr const char* kElasticModelHelp = "Folder that 'limber elastify' made";

// What to do instead, where a command takes no elastic model.
Status refuse_elastic(const std::string& model);
// The file to load: of a run its best checkpoint's, of a checkpoint its own; everything else stays as it is.
Result<std::string> model_file(const std::string& name);
Result<Model> load(const CommonOptions& options);
// `auto_tunes`: what --tune auto means for this command.
Result<std::shared_ptr<const Plan>> build(const Model& model, const CommonOptions& options, bool auto_tunes);
BuildSpec build_spec(const CommonOptions& options, bool auto_tunes);

// --train and --train-last: a training step instead of a run.
struct TrainOptions {
  bool train = false;
  int last = 0;
};
void add_train(Arguments& arguments, TrainOptions& options);
// The learning rate of measured steps: small enough to leave the weights as they are.
inline constexpr double kBenchRate = 1e-6;
// SGD with momentum on random images and labels; all tensors, or the last few.
Result<std::unique_ptr<TrainingSession>> build_training(const Model& model, const CommonOptions& options,
                                                        const TrainOptions& train);
// Uniform in [0, 1) for floats, small non-negative numbers for integers; the same for a seed.
void fill_random(Session& session, uint64_t seed);

// "1x3x224x224" or "1,3,224,224"; "?" for a dimension that stays (-1). Empty when it cannot be read.
std::vector<int64_t> parse_dims(const std::string& text);

}  // namespace limber
