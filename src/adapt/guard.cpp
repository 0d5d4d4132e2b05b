#include "adapt/guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "adapt/estimate.h"
#include "base/assert.h"

namespace limber::adapt {
namespace {

// Deviation of pixels, in units of the network's input: a thirtieth of the least step of eight bits.
constexpr float kFlat = 1.2e-3F;
// Mean difference between neighbours over the deviation of all: 1.13 where pixels know nothing of each other,
// 0.2 to 0.4 in photographs, at most 0.85 in photographs under the strongest noise.
constexpr float kUnrelated = 0.97F;
constexpr double kSure = 0.9;

bool are_numbers(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

size_t best_of(const std::vector<float>& logits) {
  return static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

double variety_of(const std::vector<int64_t>& claims, size_t frames) {
  double entropy = 0;
  for (const int64_t count : claims) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / static_cast<double>(frames);
    entropy -= share * std::log(share);
  }
  return std::exp(entropy);
}

}  // namespace

FrameFault fault_of(std::span<const float> image, const Frame& frame) {
  if (!are_numbers(image)) return FrameFault::kNotANumber;
  const auto feature = [&](FrameFeature f) { return frame.features[static_cast<size_t>(f)]; };
  const float contrast = feature(FrameFeature::kContrast);
  if (contrast < std::log(kFlat)) return FrameFault::kFlat;
  const float least =
      std::min(feature(FrameFeature::kEdgesAcross), feature(FrameFeature::kEdgesDown)) - contrast;
  return least > std::log(kUnrelated) ? FrameFault::kNoise : FrameFault::kNone;
}

void FrameFaults::count(FrameFault fault) {
  if (fault == FrameFault::kNotANumber) ++not_a_number;
  if (fault == FrameFault::kFlat) ++flat;
  if (fault == FrameFault::kNoise) ++noise;
}

Footing footing_of(const Logits& logits, std::span<const int64_t> labels) {
  std::vector<JudgedFrame> judged;
  int64_t right = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    judged.push_back({logits[i], labels[i]});
    right += static_cast<int64_t>(best_of(logits[i])) == labels[i] ? 1 : 0;
  }
  return {best_temperature(judged), static_cast<double>(right) / static_cast<double>(logits.size())};
}

Comparison compare(const Logits& original, const Footing& original_footing, const Logits& candidate,
                   const Footing& candidate_footing) {
  LIMBER_ASSERT(!original.empty() && original.size() == candidate.size());
  Comparison seen;
  seen.frames = static_cast<int64_t>(original.size());
  const auto frames = static_cast<double>(seen.frames);
  std::vector<int64_t> claims(original[0].size()), candidate_claims(original[0].size());
  seen.no_numbers =
      std::count_if(candidate.begin(), candidate.end(), [](const auto& row) { return !are_numbers(row); });
  if (seen.no_numbers > 0) return seen;
  double sure = 0, sure_agree = 0, square = 0;
  for (size_t i = 0; i < original.size(); ++i) {
    const auto was = static_cast<double>(sureness_of(original[i], original_footing.temperature).probability);
    const auto is = static_cast<double>(sureness_of(candidate[i], candidate_footing.temperature).probability);
    seen.original += was / frames;
    seen.candidate += is / frames;
    square += (is - was) * (is - was);
    const size_t said = best_of(original[i]), says = best_of(candidate[i]);
    ++claims[said];
    ++candidate_claims[says];
    if (was < kSure) continue;
    ++sure;
    sure_agree += said == says ? 1 : 0;
  }
  seen.gain_error = std::sqrt(std::max(0.0, square / frames - seen.gain() * seen.gain()) / frames);
  if (sure > 0) seen.sure_agreement = sure_agree / sure;
  seen.original_variety = variety_of(claims, original.size());
  seen.candidate_variety = variety_of(candidate_claims, original.size());
  return seen;
}

Status check(const GuardOptions& options) {
  const auto share = [](const char* name, double value) {
    return value >= 0 && value <= 1 ? Status() : invalid("{} is {}; expected 0 to 1", name, value);
  };
  LIMBER_TRY(share("least_gain", options.least_gain));
  LIMBER_TRY(share("most_loss", options.most_loss));
  LIMBER_TRY(share("doubt_share", options.doubt_share));
  LIMBER_TRY(share("source_loss", options.source_loss));
  LIMBER_TRY(share("master_loss", options.master_loss));
  LIMBER_TRY(share("sure_agreement", options.sure_agreement));
  return share("least_variety", options.least_variety);
}

Verdict Guard::decide(const Trial& trial, double least_gain) const {
  const Comparison& all = trial.seen;
  const bool by_heart = trial.unlearnt && all.gain() - trial.unlearnt->gain() > options_.by_heart;
  const Comparison& seen = by_heart ? *trial.unlearnt : all;
  const double doubt = std::max(0.0, all.original - trial.original_accuracy);
  Verdict verdict;
  if (all.no_numbers > 0) {
    verdict.gain = -1;
    verdict.reason = fmt::format("what it says of {} of {} images is no number", all.no_numbers, all.frames);
    return verdict;
  }
  verdict.gain = seen.gain() + options_.doubt_share * doubt - (by_heart ? seen.gain_error : 0);
  if (trial.candidate.accuracy < trial.original.accuracy - options_.source_loss) {
    verdict.reason = fmt::format("it knows {:.1f} % of the kept source images, the model as it came {:.1f} %",
                                 100 * trial.candidate.accuracy, 100 * trial.original.accuracy);
    return verdict;
  }
  if (seen.sure_agreement < options_.sure_agreement) {
    verdict.reason = fmt::format("it contradicts {:.0f} % of what the model as it came is sure of",
                                 100 * (1 - seen.sure_agreement));
    return verdict;
  }
  if (seen.candidate_variety < options_.least_variety * seen.original_variety) {
    verdict.reason = fmt::format("it predicts {:.1f} classes where the model as it came predicts {:.1f}",
                                 seen.candidate_variety, seen.original_variety);
    return verdict;
  }
  verdict.good = verdict.gain >= least_gain;
  verdict.reason = fmt::format(
      "{:+.1f} points on {} images{} (calibrated confidence {:.1f} %, as it came {:.1f} %, estimated "
      "to be {:.1f} % right)",
      100 * verdict.gain, seen.frames, by_heart ? " that it did not learn from" : "", 100 * seen.candidate,
      100 * seen.original, 100 * trial.original_accuracy);
  return verdict;
}

}  // namespace limber::adapt
