// How good a classifier is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "limber/control.h"
#include "limber/error.h"
#include "limber/export.h"

namespace limber {
inline namespace v1 {

struct EvaluateSettings {
  std::string model;           // an ONNX file, the folder of a training, or "builtin:NAME"
  std::string data;            // labelled images; see docs/training.md
  bool training_part = false;  // of data with parts; otherwise the test part
  int64_t batch = 64;
  int threads = 0;  // 0: every core this process may use
};

struct EvaluatedClass {
  std::string name;
  int64_t images = 0;   // of this class
  int64_t right = 0;    // of these
  int64_t claimed = 0;  // images taken for this class, rightly or not
};

struct EvaluateReport {
  bool stopped = false;  // by Control::stop; the rest then means nothing
  int64_t images = 0;
  double accuracy = 0, top5 = 0;  // shares of the images, 0..1
  double loss = 0;                // mean cross entropy
  double calibration_error = 0;   // how far confidence is from accuracy, 0..1
  std::vector<EvaluatedClass> classes;
};

// kInvalidArgument when the data's classes are not the model's, or the model's outputs are no numbers.
LIMBER_API Expected<EvaluateReport> evaluate(const EvaluateSettings& settings, const Control& control = {});

}  // namespace v1
}  // namespace limber
