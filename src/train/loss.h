// Losses, as nodes.
#pragma once

#include <string_view>

#include "ir/graph.h"

namespace limber {

enum class LossKind : uint8_t {
  kCrossEntropy,  // softmax over axis 1; labels or soft targets
  kMse,           // mean of squared differences
  kKl,            // distillation: KL(softmax(targets / T) || softmax(logits / T)) * T^2
  kBce,           // sigmoid per output; targets in 0..1
  kEntropy,       // mean entropy of softmax; no targets
  kInfoMax,       // kEntropy minus the entropy of the mean prediction; no targets
  kDice,          // 1 - overlap of softmax and targets, mean over classes (segmentation)
};

struct LossOptions {
  LossKind kind = LossKind::kCrossEntropy;
  double label_smoothing = 0;  // cross entropy
  double temperature = 1;      // kKl
};

std::string_view loss_name(LossKind kind);

// Adds the loss of `logits` [N, classes, ..] and the input it compares with, if any: "labels" (i64, the
// logits' shape without axis 1) or "targets" (like the logits). Returns the scalar. `soft` asks for soft
// targets where labels would do. REQUIRES: constant shapes
Result<ValueId> add_loss(Graph& graph, ValueId logits, const LossOptions& options, bool soft);

}  // namespace limber
