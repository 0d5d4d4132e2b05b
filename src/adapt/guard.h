// Judges what was learnt without labels before it answers, and goes on judging while it does.
//
// Networks are compared by their logits on the same images, which the candidate did not learn from. How sure
// a network is counts after it was calibrated on labelled images of the source, so that a network that
// training has only made surer of itself gains nothing by it.
#pragma once

#include <cstdint>
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
  void count(FrameFault fault);
  int64_t all() const { return not_a_number + flat + noise; }
};

struct GuardOptions {
  double least_gain = 0.02;   // estimated accuracy that a candidate must have more than the model as it came
  double source_loss = 0.05;  // of the kept source images, that a candidate may know less, by statistics of
                              // the source
};
Status check(const GuardOptions& options);

// How a network does on the kept source images.
struct Footing {
  double temperature = 1;  // that makes it as sure as it is right there
  double accuracy = 0;
};
Footing footing_of(const Logits& logits, std::span<const int64_t> labels);

// Two networks on the same images.
struct Comparison {
  int64_t frames = 0;
  double original = 0, candidate = 0;                  // mean calibrated probability of the claimed class
  double gain_error = 0;                               // standard error of their difference
  double agreement = 0;                                // share of images of which they say the same
  double sure_agreement = 1;                           // of those the model as it came is sure of
  double original_variety = 0, candidate_variety = 0;  // classes predicted: exp of the entropy of their mix
  double gain() const { return candidate - original; }
};
// REQUIRES: as many rows in both
Comparison compare(const Logits& original, const Footing& original_footing, const Logits& candidate,
                   const Footing& candidate_footing);

struct Verdict {
  bool good = false;
  double gain = 0;  // estimated, of the candidate over the model as it came, as a share of the images
  std::string reason;
};

// Thread-safe.
class Guard {
 public:
  explicit Guard(const GuardOptions& options) : options_(options) {}
  // May it begin to answer?
  Verdict judge(const Footing& original, const Footing& candidate, const Comparison& seen) const;
  // May it go on answering?
  Verdict watch(const Footing& original, const Footing& answering, const Comparison& seen) const;

 private:
  GuardOptions options_;
};

}  // namespace limber::adapt
