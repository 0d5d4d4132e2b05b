#include "jobs/classification.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

bool more_confident(const Mistake& a, const Mistake& b) {
  return a.confidence != b.confidence ? a.confidence > b.confidence : a.sample < b.sample;
}

}  // namespace

Claim claim_of(std::span<const float> logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - static_cast<double>(*best));
  return {best - logits.begin(), 1 / sum};
}

double Classification::calibration_error() const {
  double error = 0;
  int64_t images = 0;
  for (const ConfidenceBin& bin : bins) {
    error += std::abs(bin.confidence - static_cast<double>(bin.right));
    images += bin.images;
  }
  return images > 0 ? error / static_cast<double>(images) : 0;
}

std::vector<Confusion> Classification::most_confused(size_t count) const {
  std::vector<Confusion> mistaken;
  std::copy_if(confusions.begin(), confusions.end(), std::back_inserter(mistaken),
               [](const Confusion& c) { return c.label != c.claimed; });
  std::stable_sort(mistaken.begin(), mistaken.end(),
                   [](const Confusion& a, const Confusion& b) { return a.images > b.images; });
  if (mistaken.size() > count) mistaken.resize(count);
  return mistaken;
}

ClassificationSums::ClassificationSums(std::vector<std::string> names, size_t classes, size_t worst)
    : matrix_(classes), worst_(worst) {
  sums_.names = std::move(names);
  for (size_t i = sums_.names.size(); i < classes; ++i) sums_.names.push_back(fmt::format("class {}", i));
  sums_.classes.resize(classes);
}

void ClassificationSums::add(uint32_t sample, int64_t label, std::span<const float> logits) {
  const Claim claim = claim_of(logits);
  const bool right = claim.index == label;
  ClassCount& own = sums_.classes[static_cast<size_t>(label)];
  ++own.images;
  own.right += right ? 1 : 0;
  ++sums_.classes[static_cast<size_t>(claim.index)].claimed;
  auto& row = matrix_[static_cast<size_t>(label)];
  row.resize(matrix_.size());
  ++row[static_cast<size_t>(claim.index)];
  // Outputs that are no numbers are told by whoever ran the model; here they are sure of nothing.
  const double clamped = std::isnan(claim.confidence) ? 0.0 : std::clamp(claim.confidence, 0.0, 1.0);
  ConfidenceBin& bin =
      sums_.bins[std::min(kConfidenceBins - 1, static_cast<size_t>(clamped * kConfidenceBins))];
  ++bin.images;
  bin.right += right ? 1 : 0;
  bin.confidence += clamped;
  if (right || worst_ == 0) return;
  const Mistake mistake{sample, {}, label, claim.index, clamped};
  auto& worst = sums_.worst;
  worst.insert(std::upper_bound(worst.begin(), worst.end(), mistake, more_confident), mistake);
  if (worst.size() > worst_) worst.pop_back();
}

Classification ClassificationSums::take() && {
  for (size_t label = 0; label < matrix_.size(); ++label) {
    for (size_t claimed = 0; claimed < matrix_[label].size(); ++claimed) {
      if (const int64_t images = matrix_[label][claimed]; images > 0)
        sums_.confusions.push_back({static_cast<int64_t>(label), static_cast<int64_t>(claimed), images});
    }
  }
  return std::move(sums_);
}

}  // namespace limber
