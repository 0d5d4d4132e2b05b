#include "jobs/classification.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

constexpr size_t kBins = 10;  // 0..10 %, 10..20 % and so on

}  // namespace

Claim claim_of(std::span<const float> logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - static_cast<double>(*best));
  return {best - logits.begin(), 1 / sum};
}

ClassificationSums::ClassificationSums(std::vector<std::string> names, size_t classes, size_t worst)
    : matrix_(classes), most_(worst) {
  record_.classes = std::move(names);
  for (size_t i = record_.classes.size(); i < classes; ++i)
    record_.classes.push_back(fmt::format("class {}", i));
  record_.bins.resize(kBins);
}

void ClassificationSums::add(uint32_t sample, int64_t label, std::span<const float> logits) {
  const Claim claim = claim_of(logits);
  const bool right = claim.index == label;
  auto& row = matrix_[static_cast<size_t>(label)];
  row.resize(matrix_.size());
  ++row[static_cast<size_t>(claim.index)];
  // Outputs that are no numbers are told by whoever ran the model; here they are sure of nothing.
  const double clamped = std::isnan(claim.confidence) ? 0.0 : std::clamp(claim.confidence, 0.0, 1.0);
  EvaluationRecord::Bin& bin = record_.bins[std::min(kBins - 1, static_cast<size_t>(clamped * kBins))];
  ++bin.images;
  bin.correct += right ? 1 : 0;
  bin.confidence += clamped;
  if (right || most_ == 0) return;
  const Mistake mistake{sample,
                        {{}, static_cast<uint64_t>(label), static_cast<uint64_t>(claim.index), clamped, {}}};
  const auto before = [](const Mistake& a, const Mistake& b) {
    return a.what.confidence != b.what.confidence ? a.what.confidence > b.what.confidence
                                                  : a.sample < b.sample;
  };
  worst_.insert(std::upper_bound(worst_.begin(), worst_.end(), mistake, before), mistake);
  if (worst_.size() > most_) worst_.pop_back();
}

ClassificationSums::Found ClassificationSums::take() && {
  Found found{std::move(record_), {}};
  for (size_t label = 0; label < matrix_.size(); ++label) {
    for (size_t claimed = 0; claimed < matrix_[label].size(); ++claimed) {
      const int64_t images = matrix_[label][claimed];
      if (images > 0) found.record.confusion.push_back({label, claimed, images});
      found.record.images += images;
    }
  }
  for (Mistake& mistake : worst_) {
    found.worst.push_back(mistake.sample);
    found.record.worst.push_back(std::move(mistake.what));
  }
  return found;
}

}  // namespace limber
