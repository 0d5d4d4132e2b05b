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

#include "adapt/estimate.h"
#include "adapt/frame_features.h"
#include "base/status.h"

namespace limber::adapt {

using Logits = std::vector<std::vector<float>>;  // one row an image

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
  double least_gain = 0.02;    // estimated accuracy that a candidate must have more than the model as it came
  double source_loss = 0.05;   // of the kept source images, that a candidate may know less, by statistics of
                               // the source
};
Status check(const GuardOptions& options);

// How a network does on the kept source images.
struct Footing {
  double temperature = 1;  // that makes it as sure as it is right there
  double accuracy = 0;
};
Footing footing_of(std::span<const std::vector<float>> logits, std::span<const int64_t> labels);

// A network on trial against the model as it came, on the same images.
struct Trial {
  Footing original, candidate;
  std::span<const std::vector<float>> original_logits, candidate_logits;
};

struct Verdict {
  bool good = false;
  double gain = 0;  // estimated, of the candidate over the model as it came, as a share of the images
  std::string reason;
};

// Thread-safe.
class Guard {
 public:
  explicit Guard(const GuardOptions& options) : options_(options) {}
  // May it answer? REQUIRES: as many logits of both, at least one image
  Verdict judge(const Trial& trial) const;

 private:
  GuardOptions options_;
};

}  // namespace limber::adapt
