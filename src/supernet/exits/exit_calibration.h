// Where images leave a model with exits, what that costs, and which confidence to ask for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace limber {

// What every exit says about every image, and what it costs to get there. Endings are the exits in the order
// they are passed and, as the last, the end of the model.
struct ExitOutcomes {
  struct Ending {
    std::vector<double> confidence;  // by image: the greatest probability; not looked at for the last
    std::vector<bool> correct;       // by image
    double seconds = 0;              // of an input that leaves here, exits that it passed included
    double forced_seconds = 0;       // the same when no other exit is there
  };
  std::vector<Ending> endings;

  size_t images() const { return endings.empty() ? 0 : endings.back().correct.size(); }
  // kInvalidArgument when there is no image, or endings differ in their number.
  Status check() const;
};

double share_correct(const ExitOutcomes::Ending& ending);  // of the images

// What a confidence leads to.
struct ExitPoint {
  double confidence = 0;       // 0: no exit is taken
  double accuracy = 0;         // share of images
  double seconds = 0;          // mean over images
  std::vector<double> shares;  // of images, by ending
};

// Each image leaves at the first exit whose confidence is at least this; with 0 at the end of the model.
// REQUIRES: outcomes.check()
ExitPoint outcome_at(const ExitOutcomes& outcomes, double confidence);

// The confidence with the least mean time of all whose accuracy is at least this; where several are as fast,
// the most accurate; 0 when none is accurate enough. Exact: every confidence that makes a difference is
// looked at. It has few digits. REQUIRES: outcomes.check()
ExitPoint calibrate_exits(const ExitOutcomes& outcomes, double least_accuracy);

// Evenly spaced points between the fastest and the one that takes no exit, for people. REQUIRES:
// outcomes.check(), count > 1
std::vector<ExitPoint> exit_curve(const ExitOutcomes& outcomes, int count);

// The exit (by position; the number of exits: none) to end with, always: the most accurate of those that take
// at most so many seconds; the fastest ending when none does.
size_t forced_exit(const ExitOutcomes& outcomes, double seconds);

}  // namespace limber
