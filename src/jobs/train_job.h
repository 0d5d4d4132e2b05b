// Training a classifier: from a model and labelled images to a folder of checkpoints.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "elastic/elastic_trainer.h"
#include "jobs/source.h"
#include "train/trainer.h"

namespace limber {

// What is trained.
enum class Strategy : uint8_t {
  kAuto,            // kElastic when a time or a share of it is given, else kFull
  kFull,            // all tensors
  kElastic,         // those worth most for their time, or within the share, chosen again and again
  kPrune,           // those worth most within the share, without return
  kFreeze,          // all at first; from half of the training on fewer and fewer, from the input upwards
  kNormsAndBiases,  // and the last layer
  kLastLayer,
};
std::string_view strategy_name(Strategy strategy);  // "auto", "full", "elastic", "prune", ..

enum class HeadChoice : uint8_t {
  kAuto,  // a new one when the number of classes differs
  kKeep,
  kNew,
};

struct TrainJobOptions : JobOptions {
  std::string data;     // labelled images, as open_dataset() takes them
  std::string output;   // folder of the run; new, empty or an older run's. Its parent must be there
  bool resume = false;  // goes on where the run stopped; from the start when it has not begun

  // What is evaluated after each epoch: these images, else the test part of `data`, else a part of each
  // class that is drawn by the seed and not trained on.
  std::string validation;
  bool validate = true;
  double validation_share = 0.1;

  bool from_scratch = false;  // random weights instead of the model's
  HeadChoice head = HeadChoice::kAuto;
  ImageOptions image;

  std::optional<double> rate;   // 0.01 for SGD, 0.001 for Adam and AdamW
  std::optional<double> decay;  // 5e-4 for SGD, 0 for Adam, 0.01 for AdamW
  // Seconds from the call to the return, in which the training does what it can; or, instead, the time of
  // training everything for all epochs by `speedup`, found out in the first updates.
  std::optional<double> time, speedup;
  // Time of a step as a share of that of training everything; 0.5 where a strategy needs it.
  std::optional<double> rho;
  Strategy strategy = Strategy::kAuto;
  ElasticOptions elastic;  // beside what follows from the fields above
  TrainerOptions trainer;  // the same; a batch of 32 unless `batch` says otherwise

  TrainJobOptions() {
    trainer.schedule.kind = ScheduleKind::kCosine;
    trainer.training.step.batch_norm = BatchNormMode::kAuto;
  }
};

// kInvalidArgument with the first thing that cannot work, whatever the model and the data are.
Status check(const TrainJobOptions& options);

// Who else takes part.
struct TrainWatch {
  std::vector<TrainerHook*> hooks;  // after the job's own
  // Asked before each update: another `rho` from now on. May be empty.
  std::function<std::optional<double>()> new_rho;
};

enum class ValidatedOn : uint8_t { kNothing, kGiven, kTestPart, kHeldOut };

struct TrainResult {
  TrainingSummary summary;
  int64_t images = 0;  // trained on
  int64_t validation_images = 0;
  ValidatedOn validated_on = ValidatedOn::kNothing;
  double seconds = 0;       // all of it, earlier parts of a training that went on included
  double time_limit_s = 0;  // 0: it went by epochs
  double full_s = 0;        // what training everything would have taken; 0: nobody asked for a speed-up
};

// Trains to the end, or until it is stopped, which leaves a checkpoint to go on from. A training that fails
// before its first checkpoint leaves nothing behind. Progress has one stage, "training".
Result<TrainResult> run_train(const TrainJobOptions& options, const JobControl& control = {},
                              const TrainWatch& watch = {});

}  // namespace limber
