#include "adapt/estimate.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace limber::adapt {
namespace {

// Mean of -log softmax(logits / temperature)[label].
double mean_loss(std::span<const JudgedFrame> frames, double temperature) {
  double sum = 0;
  for (const JudgedFrame& frame : frames) {
    const double peak = static_cast<double>(*std::max_element(frame.logits.begin(), frame.logits.end()));
    double shares = 0;
    for (const float logit : frame.logits)
      shares += std::exp((static_cast<double>(logit) - peak) / temperature);
    sum += std::log(shares) +
           (peak - static_cast<double>(frame.logits[static_cast<size_t>(frame.label)])) / temperature;
  }
  return sum / static_cast<double>(frames.size());
}

bool is_right(const JudgedFrame& frame) {
  const auto best = std::max_element(frame.logits.begin(), frame.logits.end()) - frame.logits.begin();
  return best == frame.label;
}

double accuracy_of(std::span<const JudgedFrame> frames) {
  const auto right = std::count_if(frames.begin(), frames.end(), is_right);
  return static_cast<double>(right) / static_cast<double>(frames.size());
}

std::vector<Sureness> all_sureness(std::span<const JudgedFrame> frames, double temperature) {
  std::vector<Sureness> sure;
  for (const JudgedFrame& frame : frames) sure.push_back(sureness_of(frame.logits, temperature));
  return sure;
}

double mean_confidence(std::span<const Sureness> frames) {
  double sum = 0;
  for (const Sureness& frame : frames) sum += static_cast<double>(frame.probability);
  return sum / static_cast<double>(frames.size());
}

}  // namespace

// By golden sections of the logarithm.
double best_temperature(std::span<const JudgedFrame> frames) {
  constexpr double kRatio = 0.6180339887498949;
  double low = std::log(0.05), high = std::log(20.0);
  while (high - low > 1e-3) {
    const double left = high - kRatio * (high - low), right = low + kRatio * (high - low);
    if (mean_loss(frames, std::exp(left)) < mean_loss(frames, std::exp(right))) {
      high = right;
    } else {
      low = left;
    }
  }
  return std::exp(0.5 * (low + high));
}

Sureness sureness_of(std::span<const float> logits, double temperature) {
  LIMBER_ASSERT(!logits.empty() && temperature > 0);
  const double peak = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double shares = 0, weighted = 0;
  for (const float logit : logits) {
    const double scaled = (static_cast<double>(logit) - peak) / temperature, share = std::exp(scaled);
    shares += share;
    weighted += share * scaled;
  }
  return {static_cast<float>(weighted / shares - std::log(shares)), static_cast<float>(1 / shares)};
}

Result<AccuracyEstimator> AccuracyEstimator::create(std::span<const JudgedFrame> source,
                                                    const DomainSignature& signature) {
  if (source.size() < kMinJudged)
    return invalid("{} labelled images of the source; estimating accuracy needs {} or more", source.size(),
                   kMinJudged);
  AccuracyEstimator made;
  made.temperature_ = best_temperature(source);
  made.accuracy_ = accuracy_of(source);
  auto sure = all_sureness(source, made.temperature_);
  made.confidence_ = mean_confidence(sure);
  std::sort(sure.begin(), sure.end(),
            [](const Sureness& a, const Sureness& b) { return a.negative_entropy < b.negative_entropy; });
  // As many are below as the model got wrong.
  const auto wrong =
      static_cast<size_t>(std::lround((1 - made.accuracy_) * static_cast<double>(source.size())));
  made.threshold_ = wrong < sure.size() ? static_cast<double>(sure[wrong].negative_entropy) : 1;
  made.domains_.push_back({signature, 0});
  return made;
}

void AccuracyEstimator::learn(const DomainSignature& signature, std::span<const JudgedFrame> frames) {
  LIMBER_ASSERT(!frames.empty());
  const auto sure = all_sureness(frames, temperature_);
  domains_.push_back({signature, raw(sure).atc - accuracy_of(frames)});
}

AccuracyEstimate AccuracyEstimator::raw(std::span<const Sureness> frames) const {
  LIMBER_ASSERT(!frames.empty());
  AccuracyEstimate estimate;
  const auto above = std::count_if(frames.begin(), frames.end(), [&](const Sureness& frame) {
    return static_cast<double>(frame.negative_entropy) >= threshold_;
  });
  estimate.atc = static_cast<double>(above) / static_cast<double>(frames.size());
  estimate.confidence = mean_confidence(frames);
  estimate.doc = std::clamp(accuracy_ + estimate.confidence - confidence_, 0.0, 1.0);
  return estimate;
}

AccuracyEstimate AccuracyEstimator::estimate(const DomainSignature& signature,
                                             std::span<const Sureness> frames) const {
  constexpr double kNearest = 0.05;  // deviations; nothing is known better than that
  AccuracyEstimate estimate = raw(frames);
  std::vector<double> closeness;
  for (const Similar& domain : domains_)
    closeness.push_back(1 / std::max(kNearest, distance(domain.signature, signature)));
  const double most = *std::max_element(closeness.begin(), closeness.end());
  double excess = 0, weights = 0;
  for (size_t i = 0; i < domains_.size(); ++i) {
    const double weight = std::exp(closeness[i] - most);
    weights += weight;
    excess += weight * domains_[i].excess;
  }
  estimate.accuracy = std::clamp(estimate.atc - excess / weights, 0.0, 1.0);
  return estimate;
}

}  // namespace limber::adapt
