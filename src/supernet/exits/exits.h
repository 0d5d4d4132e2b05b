// Giving a model exits: where they pay, what they are, and teaching them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "supernet/exits/exit_calibration.h"
#include "supernet/exits/exit_graph.h"
#include "supernet/exits/exit_training.h"
#include "variant/block_runner.h"

namespace limber {

// A place for an exit, as far as it is known.
struct ExitPlace {
  int after = 0;            // so many blocks run before it
  double seconds = 0;       // that they take
  double exit_seconds = 0;  // of the exit that was tried there
  double accuracy = 0;      // of that exit
};

// How blocks are tuned with exits.
enum class TuningOrder : uint8_t {
  kTogether,    // exits, blocks before them and the end of the model at the same time
  kStages,      // one exit after the other, then the end, with all of its blocks; what is before stays
  kStagesBack,  // the same; what is before learns too, as long as no exit before gets worse
};

// How one stage went: an exit by its place, the end of the model as the last.
struct ExitStage {
  int after = 0;        // so many blocks run before it
  double seconds = 0;   // that it took
  double accuracy = 0;  // of the ending, after it
  int taken_back = 0;   // rounds whose changes before it made an exit worse
};

enum class ExitPhase : uint8_t { kTiming, kProbing, kTrying, kTeaching, kTuning };
std::string_view phase_name(ExitPhase phase);  // "timing blocks" ...

struct ExitOptions {
  int max_exits = 2;
  double storage = 0.03;   // parameters of all exits by those of the model, at most
  double max_drop = 0.01;  // of accuracy that calibration will allow
  double distill = 0.5;    // see ExitTargets
  // Exits of a model that was made for its end alone read what says little. Tuned, copies of the blocks
  // before them learn together with the exits, as alternatives; the originals stay as they are.
  bool tune = false;
  double tuning_rate = 1e-3;
  TuningOrder order = TuningOrder::kTogether;
  // Of the weights of exits' linear layers so many stay: the largest of each class, after a first part of
  // teaching with all of them. 1: all.
  double kept_weights = 1;
  // Real exits are tried at so many places, for this share of the time; probes get a share before. What is
  // left, three quarters, teaches those that are kept.
  int candidates = 4;
  double trial_share = 0.2, probe_share = 0.03;
  ExitTeachingOptions teaching;  // its seconds are for everything; its progress is not called
  std::function<void(ExitPhase, const ExitProgress&)> progress;
};

struct ExitReport {
  double full_seconds = 0;        // of the model
  std::vector<ExitPlace> probed;  // all places, with pool + linear
  std::vector<ExitPlace> tried;   // the candidates
  std::vector<ExitStage> stages;  // where exits were taught one after the other
  Variant variant;                // the blocks that the exits are for: the original's, or tuned ones
  bool stopped = false;           // before the time was over
};

// Finds out where exits pay and teaches them, on `data`; what is not in `data` but in `held` says how good
// they are. The model gets new exits (what it had goes) named by their places; original blocks stay as they
// are. When it is stopped, it has the exits as they are then; none as long as places are looked for.
// kInvalidArgument when the model is no classifier or has no place for an exit within the storage, saying so.
// On failure it has none.
Result<ExitReport> add_exits(ElasticModel& model, const std::shared_ptr<const Dataset>& data,
                             const EvaluationSet& held, const std::vector<std::shared_ptr<Backend>>& backends,
                             const ExitOptions& options);

// Takes all exits out of the model, and the blocks that were tuned for them, with their parameters.
void remove_exits(ElasticModel& model);

// At most `count` of the places, by rising time, that together make the mean time over images least with at
// least this accuracy: one after the other, each the best addition. `outcomes` has an ending per place and
// the model's as the last; its seconds are not looked at.
std::vector<size_t> choose_places(const ExitOutcomes& outcomes, std::span<const ExitPlace> places,
                                  double full_seconds, int count, double least_accuracy);

}  // namespace limber
