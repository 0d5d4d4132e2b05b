// From a model to one that can change its shape, as the options of limber elastify describe it.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "data/loader.h"
#include "jobs/inputs.h"
#include "variant/elastic_folder.h"

namespace limber {

struct ElastifyCommand : CommonOptions {
  std::string data, output, bad_images = "fail", labels = "auto";
  bool resume = false;
  ImageOptions image;
  AugmentOptions changes;  // random ones
  double seconds = 600;
  double rate = 1e-3, tune_rate = 1e-3, size_limit = 4.4;
  std::vector<std::string> operators;
  std::vector<double> shares = {0.8, 0.6};
  int workers = kAutoWorkers;
};

void declare_elastify(Arguments& arguments, ElastifyCommand& options);

// A variant that was tuned, and how good it is now.
struct TunedVariant {
  Variant variant;
  double accuracy = 0;
};

struct ElastifyOutcome {
  ElasticFolder folder;
  double seconds = 0;                // of teaching, also by processes before this one
  std::vector<TunedVariant> judged;  // the original first; empty when nothing was tuned
  bool stopped = false;              // by stop_asked(): what is there is kept
};

// Makes the folder, or goes on with it. Fills in the batch where it is not given.
Result<ElastifyOutcome> run_elastify(ElastifyCommand& options);

}  // namespace limber
