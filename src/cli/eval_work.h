// How good a classifier is, as the options of limber eval describe it.
#pragma once

#include <string>

#include "cli/options.h"
#include "jobs/inputs.h"
#include "train/evaluate.h"

namespace limber {

struct EvalCommand : CommonOptions {
  std::string data, split = "test", bad_images = "fail";
  ImageOptions image;
  int workers = kAutoWorkers;
};

void declare_eval(Arguments& arguments, EvalCommand& options);

// Fills in the batch where it is not given. Nothing when stop_asked() meanwhile.
Result<std::optional<Evaluation>> run_eval(EvalCommand& options);

}  // namespace limber
