// A network that answers any number of images.
#pragma once

#include <memory>
#include <vector>

#include "adapt/strategy.h"
#include "runtime/session.h"

namespace limber::adapt {

using Logits = std::vector<std::vector<float>>;  // one row an image

// Runs `batch` images at a time; the last of them may be fewer. Use from one thread.
class Answerer {
 public:
  static Result<std::unique_ptr<Answerer>> create(const Graph& graph, const WeightSnapshot& weights,
                                                  const std::vector<std::shared_ptr<Backend>>& backends,
                                                  int threads, int64_t batch);
  // Another over the same plan. REQUIRES: weights of the same graph
  Result<std::unique_ptr<Answerer>> with(const WeightSnapshot& weights) const;

  // REQUIRES: check_images() of the graph
  Result<Logits> answer(const Tensor& images);

 private:
  explicit Answerer(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  std::unique_ptr<Session> session_;
};

// The weights, with statistics of every batch normalisation that are those of `images` and of nothing else;
// the same weights for a network that has none. REQUIRES: check_images()
Result<WeightSnapshot> with_statistics_of(const Tensor& images, const AdaptedModel& model,
                                          const WeightSnapshot& weights);

}  // namespace limber::adapt
