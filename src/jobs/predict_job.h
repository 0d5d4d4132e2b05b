// What is on images that nobody labelled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "jobs/scores.h"

namespace limber {

struct PredictJobOptions : JobOptions {
  std::vector<std::string> images;   // files, folders, searched to all depths, .tar and .zip
  std::vector<std::string> classes;  // names in the model's order; empty: those saved with the model
  ImageOptions image;
  OnBadImage on_bad_image = OnBadImage::kFail;
  int top = 1;  // classes for each image
};

struct Prediction {
  std::string image;
  std::vector<ClassScore> top;  // the best first; never empty
};

struct PredictResult {
  std::vector<Prediction> predictions;  // the most confident first
  std::vector<std::string> skipped;     // images that could not be read, and why
  double seconds = 0;
};

// Nothing when it was stopped.
Result<std::optional<PredictResult>> run_predict(const PredictJobOptions& options,
                                                 const JobControl& control = {});

}  // namespace limber
