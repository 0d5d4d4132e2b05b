// Exits for an elastic model, and the confidence at which they may be taken.
#pragma once

#include <string>
#include <vector>

#include "jobs/elastic_work.h"
#include "supernet/exits/exit_judge.h"
#include "supernet/exits/exits.h"
#include "variant/exit_runner.h"

namespace limber {

// What runs before an exit.
enum class ExitBlocks : uint8_t {
  kFrozen,  // the model's own blocks
  kTuned,   // copies of them that are tuned with the exits
  kSubnet,  // a variant that was tuned; images that leave it unsure start again with the model
};

// `model` is the folder of an elastic model.
struct ExitsJobOptions : JobOptions {
  std::string data;         // images that exits are taught on
  std::string calibration;  // that the confidence is found on; empty: some of `data`, held out
  Truth truth = Truth::kData;
  ExitBlocks blocks = ExitBlocks::kFrozen;
  TuningOrder order = TuningOrder::kTogether;  // of tuned blocks
  bool again = false;                          // make exits anew where there are some
  int count = 2;                               // exits, at most
  double max_drop = 0.01;                      // of accuracy
  double storage = 0.03;                       // parameters of all exits by those of the model, at most
  double budget = 600;                         // seconds for everything, from loading to judging
  double rate = 3e-3;                          // of exits at the beginning
  double tuning_rate = 1e-3;
  double dropout = 0;       // share of the features that linear layers of exits do without while they learn
  double kept_weights = 1;  // share of the weights of these layers that stays
  double flip = 0;
  int padding = 0;
  int64_t held = 0;      // images held out; 0: a tenth, at most 5000
  int64_t images = 200;  // that are timed one by one
  OnBadImage on_bad_image = OnBadImage::kFail;
  int workers = kAutoWorkers;
};
Status check(const ExitsJobOptions& job);

struct ExitsOutcome {
  ElasticFolder folder;
  ExitReport report;                       // of exits that were made now; nothing in it when they were there
  ExitOutcomes held, test;                 // the latter without endings when there are no such images
  JudgedImages held_images, test_images;   // which these are
  double original = 0, test_original = 0;  // accuracies of the model on them
  ExitPoint point, test_point;             // of the confidence that was chosen
  Variant variant;                         // the blocks with the confidence
  std::vector<int> exits;                  // that are passed, in their order
  RealLatency real;
  double storage = 0, tuned_storage = 0;  // of exits and of tuned blocks, by the model's
  bool stopped = false;                   // before exits were taught to the end; `again` starts over

  double full_seconds() const { return held.endings.back().forced_seconds; }
  // The best exit within so many seconds, for those who cannot wait for confidence.
  struct Forced {
    Variant variant;
    double seconds = 0;
  };
  Forced within(double seconds) const;
};

// The folder gets exits, unless it has some; what is found out goes into its variant table.
// kResourceExhausted when it was stopped before there was an exit.
Result<ExitsOutcome> run_exits(const ExitsJobOptions& job, const JobControl& control = {});

}  // namespace limber
