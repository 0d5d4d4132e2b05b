// What 'limber exits' found, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "supernet/exits/exit_judge.h"
#include "supernet/exits/exits.h"

namespace limber {

struct ExitFindings {
  std::string folder;
  const ElasticModel& model;
  ExitReport report;                       // of exits that were made now; nothing in it when they were there
  ExitOutcomes held, test;                 // the latter without endings when there are no such images
  double original = 0, test_original = 0;  // accuracies of the model on them
  ExitPoint point, test_point;             // of the confidence that was chosen
  Variant variant;                         // the blocks with the confidence
  std::vector<int> exits;                  // that are passed, in their order
  RealLatency real;
  double storage = 0, tuned_storage = 0;  // of exits and of tuned blocks, by the model's

  double full_seconds() const { return held.endings.back().forced_seconds; }
};

void print_json(const ExitFindings& found);
// `latency`: above 0, names the best exit within so many seconds, for those who cannot wait for confidence.
void print_tables(const ExitFindings& found, double latency);

}  // namespace limber
