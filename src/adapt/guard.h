// Judges what was learnt without labels before it answers, and goes on judging while it does.
//
// Networks are compared by their logits on the same images, which the candidate did not learn from. How sure
// a network is counts after it was calibrated on labelled images of the source, so that a network that
// training has only made surer of itself gains nothing by it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "adapt/answerer.h"
#include "adapt/frame_features.h"
#include "base/status.h"

namespace limber::adapt {

// Why a frame cannot be learnt from.
enum class FrameFault : uint8_t { kNone, kNotANumber, kFlat, kNoise };
// `image`: the pixels that `frame` was made of.
FrameFault fault_of(std::span<const float> image, const Frame& frame);

struct FrameFaults {
  int64_t not_a_number = 0, flat = 0, noise = 0;
  int64_t unreadable = 0;  // of which there are no pixels at all
  void count(FrameFault fault);
  int64_t all() const { return not_a_number + flat + noise + unreadable; }
};

struct GuardOptions {
  // How much surer than the model as it came a candidate must be before it answers, and how much less sure it
  // may become while it does, as shares of the images. A hundred images show it to 1.5 to 2 points.
  double least_gain = 0.02, most_loss = 0.01;
  // The model as it came is too sure of itself in a strange world, by about as much as the estimate of its
  // accuracy is lower than what it claims. So much of that counts for the candidate, which is too sure as
  // well.
  double doubt_share = 0.25;
  // A candidate that gains so much more on all images than on those it did not learn from, as a share of the
  // images, knows them by heart; the others alone then say what it is worth.
  double by_heart = 0.05;
  double source_loss = 0.05;    // of the kept source images, that a candidate may know less
  double master_loss = 0.02;    // the same of a master that candidates write into: all others come from it
  double sure_agreement = 0.5;  // with the model as it came, on images that it is sure of
  double least_variety = 0.5;   // of classes a candidate predicts, by that of the model as it came
};
Status check(const GuardOptions& options);

// How a network does on the kept source images, by statistics of the source.
struct Footing {
  double temperature = 1;  // that makes it as sure as it is right there
  double accuracy = 0;
};
Footing footing_of(const Logits& logits, std::span<const int64_t> labels);

// Two networks on the same images. Where the candidate says what is no number, nothing else is known.
struct Comparison {
  int64_t frames = 0;
  int64_t no_numbers = 0;              // of them, that the candidate answers by what is no number
  double original = 0, candidate = 0;  // mean calibrated probability of the claimed class
  double gain_error = 0;               // standard error of their difference
  double sure_agreement =
      1;  // share of images that the model as it came is sure of, of which both say the same
  double original_variety = 0, candidate_variety = 0;  // classes predicted: exp of the entropy of their mix
  double gain() const { return candidate - original; }
};
// REQUIRES: as many rows in both, at least one
Comparison compare(const Logits& original, const Footing& original_footing, const Logits& candidate,
                   const Footing& candidate_footing);

// A network on trial.
struct Trial {
  Footing original, candidate;
  Comparison seen;
  double original_accuracy = 1;  // estimated, on the images seen
  // On those of the images that the candidate did not learn from; nothing: it learnt from none of them.
  std::optional<Comparison> unlearnt;
};

struct Verdict {
  bool good = false;
  double gain = 0;  // of the candidate over the model as it came, estimated, as a share of the images
  std::string reason;
};

// Thread-safe.
class Guard {
 public:
  explicit Guard(const GuardOptions& options) : options_(options) {}
  // May it begin to answer?
  Verdict judge(const Trial& trial) const { return decide(trial, options_.least_gain); }
  // May it go on answering?
  Verdict watch(const Trial& trial) const { return decide(trial, -options_.most_loss); }

 private:
  Verdict decide(const Trial& trial, double least_gain) const;

  GuardOptions options_;
};

}  // namespace limber::adapt
