// From a model to a master: gates behind its filters, trained so that any share of them works.
#pragma once

#include <string>
#include <vector>

#include "jobs/elastify_job.h"
#include "record/master_note.h"

namespace limber {

struct MasterJobOptions : JobOptions {
  std::string data, output;
  bool resume = false;  // go on with what is in `output`
  // Seconds for everything, from loading to judging and saving; with `resume` those before count too.
  double budget = 600;
  ImageOptions image;
  AugmentOptions changes;   // random ones
  double rate = 1e-3;       // of training, at its beginning
  TuneTo learn_from = TuneTo::kAuto;
  std::vector<double> shares = {1, 0.75, 0.5, 0.4, 0.3, 0.2};  // of the filters, that are judged in the end
  OnBadImage on_bad_image = OnBadImage::kFail;
  int workers = kAutoWorkers;
};
Status check(const MasterJobOptions& job);

struct MasterOutcome {
  ElasticFolder folder;  // an elastic model whose base has gates
  MasterNote note;       // without levels when it was stopped
  double seconds = 0;    // of everything, by this process
  bool stopped = false;  // what is there is kept
};

// Makes the folder `output`, or goes on with it. kInvalidArgument before anything is written when the model is
// no classifier, has gates already, or nothing that could have some; kResourceExhausted when the budget is too
// small for judging, saying how much does, or when it was stopped before anything was written.
Result<MasterOutcome> run_master(const MasterJobOptions& job, const JobControl& control = {});

}  // namespace limber
