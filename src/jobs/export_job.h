// Any model that can be loaded, or a variant of an elastic one, as plain ONNX.
#pragma once

#include <string>

#include "io/onnx.h"
#include "jobs/source.h"

namespace limber {

struct ExportJobOptions : JobOptions {
  std::string output;       // file; its folder must be there, and it must not be what is exported
  std::string variant;      // of an elastic model; empty: the original
  std::string recalibrate;  // images on which the statistics of a variant's normalisation are measured anew
  // Above 0: the channels with the largest weights alone, as many as leave this share of the operations; see
  // prune_to().
  double operations = 0;
  bool fold = false;  // normalisation goes into weights, what does nothing is dropped
  ExportOptions format;
};

// kInvalidArgument for what cannot work whatever the model holds.
Status check(const ExportJobOptions& options);

struct ExportResult {
  size_t nodes_before = 0, nodes = 0;
  int64_t parameters = 0;
};

Result<ExportResult> run_export(const ExportJobOptions& options, const JobControl& control = {});

}  // namespace limber
