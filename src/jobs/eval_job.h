// How good a classifier is on labelled images, and where it goes wrong.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jobs/classification.h"
#include "jobs/judged_images.h"
#include "jobs/source.h"
#include "train/evaluate.h"

namespace limber {

struct EvalJobOptions : JobOptions {
  std::string data;            // labelled images, as open_dataset() takes them
  Split split = Split::kTest;  // see open_judged()
  // Names of the model's classes in their order, where neither the model nor equal numbers of classes say
  // which is which. Empty: what the model's checkpoint says, else the order of the data's own.
  std::vector<std::string> classes;
  ImageOptions image;
  OnBadImage on_bad_image = OnBadImage::kFail;
  int workers = kAutoWorkers;
  size_t worst = 20;  // mistakes to name
};

struct EvalResult {
  Evaluation evaluation;
  EvaluationRecord record;      // the same in detail; mistakes without pictures
  std::vector<uint32_t> worst;  // whose mistakes the record names, by index in the data
  JudgedData judged;            // what was evaluated on
};

// Nothing when it was stopped. kInvalidArgument when the outputs are no numbers.
Result<std::optional<EvalResult>> run_eval(const EvalJobOptions& options, const JobControl& control = {});

}  // namespace limber
