// What a master knows of all domains: weights T* and, per layer, a matrix W, of which its weights are T = W
// T*.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "adapt/surrogate/plain_master.h"

namespace limber::adapt {

struct KnowledgeOptions {
  // How far one filter's knowledge reaches into others: W = I + spread * S, with S the likeness of filters
  // (the positive part of their cosine, none with themselves), each row in proportion to its sum. Below 1, so
  // that W can be inverted. 0: W = I, T* = T, and nothing is kept twice.
  double spread = 0;
};

// Filters are rows: the first axis of a convolution's weights. W never changes; all else that is learnt
// (scales, shifts) has W = I.
class Knowledge {
 public:
  // With a spread, the weights become W T*, which T* is solved for: they change by rounding.
  static Result<Knowledge> create(const PlainMaster& plain, Parameters& weights,
                                  const KnowledgeOptions& options);

  // Adds what was learnt, T* += W^T change, and makes the weights T = W T* again, exactly: a filter that W
  // does not tie to one that changed stays to the bit. `change` is of the type of the weights called `name`.
  Status learn(const std::string& name, const Tensor& change, Parameters& weights);

  const KnowledgeOptions& options() const { return options_; }
  // What there is beside the weights, for saving: "spread/<weights>" (W) and "base/<weights>" (T*).
  std::map<std::string, Tensor> tensors() const;
  // Takes T* and W from what tensors() gave. kCorrupt when they do not fit; nothing changes then.
  Status restore(const std::map<std::string, Tensor>& tensors);

 private:
  struct Layer {
    Tensor spread;  // W, f32[O,O]
    Tensor base;    // T*, as the weights
  };
  explicit Knowledge(const KnowledgeOptions& options) : options_(options) {}

  KnowledgeOptions options_;
  std::map<std::string, Layer> layers_;  // by weights; none without a spread
};

}  // namespace limber::adapt
