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
  kShot,          // kInfoMax + pseudo_share * kCrossEntropy with labels that somebody guessed
  // Of the features that the classifier reads, against statistics of those of the source:
  kMoments,     // mean over features of (difference of means)^2 + (difference of deviations)^2
  kCovariance,  // CORAL: squared difference of the covariances / (4 * features^2)
  kKernel,      // squared MMD, biased, over Gaussians of five widths
};

struct LossOptions {
  LossKind kind = LossKind::kCrossEntropy;
  double label_smoothing = 0;  // cross entropy
  double temperature = 1;      // kKl
  // kCrossEntropy, kEntropy and the cross entropy of kShot: the share of each row (or pixel) is multiplied by
  // its number in the input "weights".
  bool weighted = false;
  double pseudo_share = 0.3;  // kShot
  // kKernel: sum over i = -2..2 of exp(-d^2 / (bandwidth * 2^i)). Fixed: it is no part of what is trained.
  double bandwidth = 1;
  int64_t source_rows = 0;  // kKernel: how many features of the source there are
};

// Beneath the root of every deviation of kMoments, so that a feature that is constant has a gradient.
inline constexpr double kMomentsEpsilon = 1e-5;

std::string_view loss_name(LossKind kind);

// Adds the loss of `logits` [N, classes, ..] and the inputs it compares with, if any. Returns the scalar.
//   "labels" i64, the logits' shape without axis 1; "targets" like the logits: `soft` asks for these where
//   labels would do; "weights" f32 like labels
//   "source_mean", "source_deviation" f32[D] (kMoments), "source_covariance" f32[D,D] (kCovariance,
//   unbiased), "source_features" f32[source_rows,D] (kKernel), where the classifier reads D features; of
//   images it reads the mean over space
// REQUIRES: constant shapes
Result<ValueId> add_loss(Graph& graph, ValueId logits, const LossOptions& options, bool soft);

}  // namespace limber
