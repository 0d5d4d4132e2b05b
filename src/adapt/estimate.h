// How good a classifier is on images that nobody labelled, judged by how sure it is.
//
// On labelled images of the source the estimator learns how sure the model is where it is right (a
// temperature, a threshold: ATC; a mean: DoC). On labelled images of other domains, which the caller makes by
// corrupting those of the source, it learns by how much that is wrong there; a new domain is corrected as
// those that look like it are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "adapt/drift.h"
#include "base/status.h"

namespace limber::adapt {

// What a frame's logits say about how sure the model is.
struct Sureness {
  float negative_entropy = 0;  // of softmax(logits / temperature): 0 is certain
  float probability = 0;       // of the class it claims
};
// REQUIRES: not empty, temperature > 0
Sureness sureness_of(std::span<const float> logits, double temperature);

struct JudgedFrame {
  std::vector<float> logits;
  int64_t label = 0;
};

// That makes the logits as sure as they are right: where the mean loss is least. REQUIRES: not empty
double best_temperature(std::span<const JudgedFrame> frames);

struct AccuracyEstimate {
  double atc = 0;         // share of frames above the threshold
  double doc = 0;         // the source's accuracy less the fall of confidence
  double accuracy = 0;    // atc, corrected as in similar domains
  double confidence = 0;  // mean probability of the claimed class
};

inline constexpr size_t kMinJudged = 50;  // frames of the source

// Memory: a signature and two numbers for each domain learnt. Thread-safe once it has learnt.
class AccuracyEstimator {
 public:
  // kInvalidArgument for fewer than kMinJudged frames.
  static Result<AccuracyEstimator> create(std::span<const JudgedFrame> source,
                                          const DomainSignature& signature);

  // How far the estimate is off in a domain whose labels are known. REQUIRES: frames
  void learn(const DomainSignature& signature, std::span<const JudgedFrame> frames);

  // REQUIRES: frames
  AccuracyEstimate estimate(const DomainSignature& signature, std::span<const Sureness> frames) const;

  double temperature() const { return temperature_; }
  double source_accuracy() const { return accuracy_; }

 private:
  struct Similar {
    DomainSignature signature;
    double excess = 0;  // of the estimate over the truth
  };
  AccuracyEstimate raw(std::span<const Sureness> frames) const;

  double temperature_ = 1, threshold_ = 0, accuracy_ = 0, confidence_ = 0;
  std::vector<Similar> domains_;  // the source first
};

}  // namespace limber::adapt
