// Elastic training as seen and steered from outside the process.
#pragma once

#include "cli/progress.h"
#include "elastic/elastic_trainer.h"

namespace limber {

// Says what is trained whenever that changes. On SIGHUP, reads a new share from the file RUN/rho, which holds
// one number; without such a file the training stops, as it does for SIGTERM. Make one per process.
class ElasticConsole : public TrainerHook {
 public:
  ElasticConsole(ElasticTrainer& elastic, Progress& progress, std::string run, std::atomic<bool>& stop);

  Status on_step_begin(TrainingSession& session, const TrainingState& state) override;
  Status on_step_end(TrainingSession& session, const StepReport& report) override;

 private:
  void read_rho();

  ElasticTrainer& elastic_;
  Progress& progress_;
  const std::string run_;
  std::atomic<bool>& stop_;
  std::string said_;
};

}  // namespace limber
