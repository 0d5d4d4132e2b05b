// What the model says of images now, by its running statistics.
#pragma once

#include "adapt/by_size.h"
#include "adapt/strategy.h"
#include "runtime/session.h"

namespace limber::adapt {

struct Reading {
  Tensor logits, features;  // f32[n,classes,..], f32[n,D]: what the classifier reads, as a mean over space
};

// Takes turns with whatever changes the model's weights.
class Reader {
 public:
  static Result<std::unique_ptr<Reader>> create(const AdaptedModel& model);
  // Views on memory that the next read() writes over. REQUIRES: check_images()
  Result<Reading> read(const Tensor& images);
  int64_t features() const { return features_; }  // D

 private:
  explicit Reader(const AdaptedModel& model) : model_(model) {}

  AdaptedModel model_;  // its graph has both outputs
  int64_t features_ = 0;
  BySize<Session> sessions_;
};

// [n, classes] from logits, in double precision.
std::vector<std::vector<double>> probabilities_of(const Tensor& logits);

}  // namespace limber::adapt
