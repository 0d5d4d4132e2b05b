// Training a classifier, all of it or the tensors that are worth it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "limber/control.h"
#include "limber/error.h"
#include "limber/export.h"

namespace limber {
inline namespace v1 {

enum class TrainOptimizer : uint8_t { kSgd, kAdam, kAdamW };

struct TrainSettings {
  std::string model;  // an ONNX file, the folder of an earlier training, or "builtin:NAME"
  std::string data;   // labelled images: a folder with one folder for each class, or see docs/training.md
  // Folder for checkpoints and history: new, empty or an older training's; the folder it lies in must be
  // there.
  std::string output;
  bool resume = false;  // goes on where the training in `output` stopped, bit for bit

  // What is evaluated after each epoch: these images, else the test part of `data`, else a part of each class
  // that is not trained on.
  std::string validation;
  bool validate = true;

  int64_t epochs = 10;
  int64_t batch = 32;
  TrainOptimizer optimizer = TrainOptimizer::kSgd;
  std::optional<double> rate;  // learning rate; 0.01 for SGD, 0.001 for the others
  bool from_scratch = false;   // random weights instead of the model's

  // Elastic training: seconds from the call to the return, in which it does what it can (`epochs` do not
  // count then); or so many times as fast as training everything for all epochs. Nothing: everything is
  // trained.
  std::optional<double> seconds;
  std::optional<double> speedup;

  int threads = 0;  // 0: every core this process may use
  uint64_t seed = 0;
};

struct TrainedEpoch {
  int64_t epoch = 0;              // from 1
  double loss = 0, accuracy = 0;  // on the training images as they were shown
  std::optional<double> validation_accuracy;
  double seconds = 0;
};

struct TrainControl : Control {
  std::function<void(const TrainedEpoch&)> on_epoch;
};

struct TrainReport {
  bool stopped = false;                 // by TrainControl::stop; the same settings with `resume` go on
  int64_t steps = 0;                    // updates in all
  double seconds = 0;                   // wall clock in all
  std::vector<TrainedEpoch> epochs;     // of this call
  std::optional<double> best_accuracy;  // on the validation images
  int64_t best_epoch = 0;               // from 1; 0: none was evaluated
  int64_t images = 0, validation_images = 0;
};

// The best checkpoint is what Model::load(settings.output) then loads. kInvalidArgument, with nothing
// written, for settings that cannot work. A failure later leaves earlier checkpoints as they were.
LIMBER_API Expected<TrainReport> train(const TrainSettings& settings, const TrainControl& control = {});

}  // namespace v1
}  // namespace limber
