// Blocks of an elastic model tuned together with its exits.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supernet/exits/exit_training.h"

namespace limber {

// Adds alternatives "tuned" to the first `blocks` blocks: copies of the originals, one for all blocks from
// one exit to the next, with parameters "alt/<block>/tuned/.." of their own. What is there of them already is
// taken as it is. Returns the variant that uses them. kInvalidArgument when an exit comes later.
Result<Variant> add_tuned_blocks(ElasticModel& model, int blocks);
// Takes them out again; with their parameters unless `keep`.
void remove_tuned_blocks(ElasticModel& model, bool keep);

// Bytes of the parameters of tuned blocks, and of subnets that are exits, by those of the model; what is the
// model's own does not count.
Result<double> tuned_storage(const ElasticModel& model);

// What learns when exits are taught one after the other: an ending (the exits by their places, then the end
// of the model), and the tuned blocks since the exit before it.
struct TuningStage {
  size_t ending = 0;
  bool with_earlier = false;  // the exits and tuned blocks before learn, too
};
// The parameters that such a stage trains: those that it adds to the stage before, and those before.
struct StageParameters {
  std::vector<std::string> own, earlier;
};
Result<StageParameters> stage_parameters(const ElasticModel& model, const Variant& tuned, size_t ending);

// Trains exits and tuned blocks as one: each exit and the end of the model shall say what it should, and the
// blocks that are not tuned stay as they are. With a stage only its ending, and those before it if they
// learn, and nothing behind it runs; null when it has nothing to train. Normalisation uses the statistics
// that there are. `model` must outlive it, and its exits and blocks stay as they are meanwhile. Use from one
// thread.
Result<std::unique_ptr<ExitTeacher>> make_exit_tuner(ElasticModel& model, const Variant& tuned,
                                                     std::shared_ptr<ExitTargets> targets,
                                                     const std::vector<std::shared_ptr<Backend>>& backends,
                                                     const ExitTrainerOptions& options,
                                                     std::optional<TuningStage> stage = std::nullopt);

}  // namespace limber
