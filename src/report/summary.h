// Trainings in a few numbers each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/run_log.h"

namespace limber {

struct RunSummary {
  std::string run, path, strategy;
  std::optional<double> rho;
  std::optional<double> time_s, speedup;               // that were asked for
  int64_t epochs = 0, planned_epochs = 0;              // recorded, and asked for; 0 where that is not known
  int64_t steps = 0;                                   // of the recorded epochs
  std::optional<double> best_accuracy, last_accuracy;  // on the validation images
  std::optional<int64_t> best_epoch;
  std::optional<double> seconds;  // of the recorded epochs, evaluation excluded; none without an epoch
  // Time over that of the first run with strategy full and the same model, data, batch and threads: of
  // everything where both have done as many steps, else of a step.
  std::optional<double> ratio;
  bool ratio_of_step = false;
  // Of the last selection.
  std::optional<int64_t> chosen, tensors, left, returned;
  std::optional<double> share, arena_bytes;
  std::optional<double> prediction_error;  // median of |predicted / measured - 1| over the choices
  std::optional<double> overhead_s;        // of choosing, as the run itself reckons it
};

// In the order of the runs. Runs of one name are told apart by their paths.
std::vector<RunSummary> summarise(const std::vector<RunLog>& runs);

// What the records of a run cannot say, and why; sentences.
std::vector<std::string> what_is_missing(const RunLog& run, const RunSummary& summary);

}  // namespace limber
