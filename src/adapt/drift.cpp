#include "adapt/drift.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"
#include "base/median.h"

namespace limber::adapt {
namespace {

// exp(-size^2 / 2) for bets that are best for shifts of so many deviations.
constexpr double kHalfStake = 0.8824969025845955, kOneStake = 0.6065306597126334,
                 kTwoStake = 0.1353352832366127;
constexpr size_t kMinClassFrames = 20;  // below, a class has no scale of its own
constexpr float kMostCalm = 4;
constexpr float kLargest = 8;  // deviations; one frame alone never says more

// The inverse of the normal distribution function (Acklam's rational approximation, good to 1e-9 relative).
double normal_quantile(double p) {
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                          6.680131188771972e+01, -1.328068155288572e+01};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                          3.754408661907416e+00};
  constexpr double kTail = 0.02425;
  if (p > 0.5) return -normal_quantile(1 - p);
  if (p < kTail) {
    const double q = std::sqrt(-2 * std::log(p));
    return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
           ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
  }
  const double q = p - 0.5, r = q * q;
  return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
         (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

}  // namespace

double distance(const DomainSignature& a, const DomainSignature& b) {
  LIMBER_ASSERT(a.frames > 0 && b.frames > 0);
  const double chance = 1 / static_cast<double>(a.frames) + 1 / static_cast<double>(b.frames);
  double sum = 0;
  for (size_t i = 0; i < kFrameFeatures; ++i) {
    const double gap = static_cast<double>(a.mean[i]) - static_cast<double>(b.mean[i]);
    const double variance = 0.5 * (static_cast<double>(a.variance[i]) + static_cast<double>(b.variance[i]));
    sum += std::max(0.0, gap * gap / std::max(variance, 1e-2) - chance);
  }
  return std::sqrt(sum / kFrameFeatures);
}

Status check(const DriftOptions& options) {
  if (!(options.frames_per_alarm >= 100 && options.frames_per_alarm <= 1e12))
    return invalid("frames_per_alarm is {}; expected 100 to 1e12", options.frames_per_alarm);
  if (!(options.tolerated >= 0 && options.tolerated <= 3))
    return invalid("a tolerated shift of {} deviations; expected 0 to 3", options.tolerated);
  if (options.settle < 16 || options.settle > static_cast<int64_t>(kMaxReference))
    return invalid("settle is {} frames; expected 16 to {}", options.settle, kMaxReference);
  if (!(options.same_domain >= 0))
    return invalid("same_domain is {}; expected 0 or more", options.same_domain);
  if (options.max_domains < 2 || options.max_domains > 65536)
    return invalid("max_domains is {}; expected 2 to 65536", options.max_domains);
  return {};
}

Result<DriftDetector> DriftDetector::create(std::span<const ReferenceFrame> source,
                                            const DriftOptions& options) {
  LIMBER_TRY(check(options));
  if (source.size() < kMinReference)
    return invalid("{} frames of the source to compare with; expected {} or more", source.size(),
                   kMinReference);
  std::vector<ReferenceFrame> kept;
  const size_t count = std::min(source.size(), kMaxReference);
  for (size_t i = 0; i < count; ++i) kept.push_back(source[i * source.size() / count]);
  DriftDetector detector(options);
  detector.learn_classes(kept);
  std::vector<Scores> deviations;
  for (const ReferenceFrame& reference : kept) deviations.push_back(detector.deviations_of(reference.frame));
  detector.quantiles_.reserve(2 * kMaxReference + 1);
  detector.way_back_.watched.sorted.reserve(static_cast<size_t>(options.settle));
  detector.newest_.reserve(static_cast<size_t>(options.settle));
  for (Watched& watched : detector.watched_) watched.sorted.reserve(kMaxReference);
  detector.watch(deviations);
  detector.measure_class_shifts(kept, deviations);
  for (size_t i = 0; i < kFrameFeatures; ++i) detector.tolerate(i, detector.class_shift_[i]);
  detector.source_ = detector.watched_;
  std::vector<Frame> frames;
  for (const ReferenceFrame& reference : kept) frames.push_back(reference.frame);
  detector.known_.reserve(options.max_domains);
  detector.known_.push_back({0, detector.signature_of(frames), 0});
  detector.measure_covariance(deviations);
  return detector;
}

void DriftDetector::measure_covariance(std::span<const Scores> deviations) {
  constexpr float kRidge = 0.1F;  // of the variance: directions in which nothing varies are not trusted
  const auto count = static_cast<float>(deviations.size());
  const Scores& mean = known_[0].signature.mean;
  covariance_ = {};
  for (const Scores& one : deviations) {
    for (size_t i = 0; i < kFrameFeatures; ++i) {
      for (size_t k = 0; k < kFrameFeatures; ++k)
        covariance_[i][k] += (one[i] - mean[i]) * (one[k] - mean[k]) / count;
    }
  }
  for (size_t i = 0; i < kFrameFeatures; ++i) covariance_[i][i] = (1 + kRidge) * covariance_[i][i] + 1e-3F;
}

// Gauss elimination; `a` is symmetric and positive definite, so the diagonal will do as pivots.
DriftDetector::Scores DriftDetector::solve(Square a, Scores b) {
  for (size_t i = 0; i < kFrameFeatures; ++i) {
    for (size_t row = i + 1; row < kFrameFeatures; ++row) {
      const float factor = a[row][i] / a[i][i];
      for (size_t k = i; k < kFrameFeatures; ++k) a[row][k] -= factor * a[i][k];
      b[row] -= factor * b[i];
    }
  }
  for (size_t i = kFrameFeatures; i-- > 0;) {
    for (size_t k = i + 1; k < kFrameFeatures; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

void DriftDetector::learn_classes(std::span<const ReferenceFrame> source) {
  int32_t classes = 0;
  for (const ReferenceFrame& reference : source) classes = std::max(classes, reference.frame.claimed + 1);
  classes_.resize(static_cast<size_t>(classes) + 1);
  for (size_t c = 0; c < classes_.size(); ++c) {
    const bool all = c + 1 == classes_.size();
    for (size_t i = 0; i < kFrameFeatures; ++i) {
      std::vector<double> values;
      for (const ReferenceFrame& reference : source) {
        if (all || reference.frame.claimed == static_cast<int32_t>(c))
          values.push_back(static_cast<double>(reference.frame.features[i]));
      }
      if (!all && values.size() < kMinClassFrames) break;
      const double middle = median(values);
      for (double& value : values) value = std::abs(value - middle);
      classes_[c].median[i] = static_cast<float>(middle);
      // Of a normal distribution: its deviation.
      classes_[c].scale[i] = std::max(static_cast<float>(1.4826 * median(values)), 1e-6F);
      classes_[c].known = true;
    }
  }
}

DriftDetector::Scores DriftDetector::deviations_of(const Frame& frame) const {
  const auto claimed = static_cast<size_t>(frame.claimed);
  const bool own = frame.claimed >= 0 && claimed + 1 < classes_.size() && classes_[claimed].known;
  const ClassScale& scale = own ? classes_[claimed] : classes_.back();
  Scores deviations;
  for (size_t i = 0; i < kFrameFeatures; ++i)
    deviations[i] = std::clamp((frame.features[i] - scale.median[i]) / scale.scale[i], -kLargest, kLargest);
  return deviations;
}

// By twice the rank among `count` values: between two of them it is a half more.
void DriftDetector::rank_scores(size_t count) {
  quantiles_.clear();
  for (size_t twice = 0; twice <= 2 * count; ++twice)
    quantiles_.push_back(static_cast<float>(
        normal_quantile((0.5 * static_cast<double>(twice) + 0.5) / (static_cast<double>(count) + 1))));
}

void DriftDetector::watch(std::span<const Scores> deviations) {
  rank_scores(deviations.size());
  for (size_t i = 0; i < kFrameFeatures; ++i) {
    Watched& watched = watched_[i];
    watched.sorted.clear();
    for (const Scores& one : deviations) watched.sorted.push_back(one[i]);
    std::sort(watched.sorted.begin(), watched.sorted.end());
    std::fill(std::begin(watched.stakes), std::end(watched.stakes), 0.0);
    std::fill(std::begin(watched.since), std::end(watched.since), frames_);
  }
}

void DriftDetector::measure_class_shifts(std::span<const ReferenceFrame> source,
                                         std::span<const Scores> deviations) {
  int32_t classes = 0;
  for (const ReferenceFrame& reference : source) classes = std::max(classes, reference.label + 1);
  for (int32_t c = 0; c < classes; ++c) {
    ClassMean mean;
    Scores scores{};
    for (size_t k = 0; k < source.size(); ++k) {
      if (source[k].label != c) continue;
      mean.frames += 1;
      for (size_t i = 0; i < kFrameFeatures; ++i) {
        mean.deviation[i] += deviations[k][i];
        scores[i] += score_of(watched_[i], deviations[k][i]);
      }
    }
    if (mean.frames < static_cast<float>(kMinClassFrames)) continue;
    for (size_t i = 0; i < kFrameFeatures; ++i) {
      mean.deviation[i] /= mean.frames;
      // The mean, and twice its error.
      const float shift = std::abs(scores[i]) / mean.frames + 2 / std::sqrt(mean.frames);
      class_shift_[i] = std::max(class_shift_[i], shift);
    }
    class_means_.push_back(mean);
  }
}

void DriftDetector::tolerate(size_t feature, float shift) {
  watched_[feature].tolerated = std::max(static_cast<float>(options_.tolerated), shift);
}

float DriftDetector::score_of(const Watched& watched, float deviation) const {
  const auto begin = watched.sorted.begin(), end = watched.sorted.end();
  const auto low = std::lower_bound(begin, end, deviation);
  const auto high = low != end && *low == deviation ? std::upper_bound(low, end, deviation) : low;
  return quantiles_[static_cast<size_t>((low - begin) + (high - begin))];
}

double DriftDetector::bet(Watched& watched, float score, int directions) const {
  double sum = 0;
  for (int direction = 0; direction < directions; ++direction) {
    // exp(size * shift - size^2 / 2) for each of the sizes, by one exponential.
    const float shift = (direction == 0 ? score : -score) - watched.tolerated;
    const auto half = static_cast<double>(std::exp(0.5F * shift)), one = half * half;
    const double factors[kStakes] = {half * kHalfStake, one * kOneStake, one * one * kTwoStake};
    for (int i = 0; i < kStakes; ++i) {
      double& stake = watched.stakes[direction * kStakes + i];
      if (stake < 1) watched.since[direction * kStakes + i] = frames_ - 1;
      stake = std::min((stake + 1) * factors[i], 1e30);
      sum += stake;
    }
  }
  return sum;
}

std::optional<DriftAlarm> DriftDetector::observe(const Frame& frame) {
  const Scores deviations = deviations_of(frame);
  const int64_t now = frames_++;
  if (settling_ > 0) {
    newest_.push_back(deviations);
    if (--settling_ == 0) end_settling();
    return std::nullopt;
  }
  double sum = 0, most = 0;
  size_t loudest = 0;
  for (size_t i = 0; i < kFrameFeatures; ++i) {
    const double stakes = bet(watched_[i], score_of(watched_[i], deviations[i]));
    sum += stakes;
    if (stakes > most) most = stakes, loudest = i;
  }
  const Watched* loudest_watched = &watched_[loudest];
  if (domain_ != 0) {
    const double stakes = bet(way_back_.watched, score_of(way_back_.watched, way_back_.at(deviations)), 1);
    sum += stakes;
    if (stakes > most) loudest = way_back_.feature, loudest_watched = &way_back_.watched;
  }
  if (sum / bets() < options_.frames_per_alarm) return std::nullopt;
  const Watched& watched = *loudest_watched;
  const auto best =
      std::max_element(std::begin(watched.stakes), std::end(watched.stakes)) - std::begin(watched.stakes);
  settling_ = options_.settle;
  newest_.clear();
  return DriftAlarm{now, std::min(watched.since[best], now), static_cast<FrameFeature>(loudest)};
}

double DriftDetector::alertness() const {
  double sum = 0;
  for (const Watched& watched : watched_) {
    for (const double stake : watched.stakes) sum += stake;
  }
  if (domain_ != 0) {
    for (int i = 0; i < kStakes; ++i) sum += way_back_.watched.stakes[i];
  }
  return sum / bets() / options_.frames_per_alarm;
}

namespace {

template <typename Deviations>
DomainSignature signature(size_t count, const Deviations& deviations) {
  DomainSignature made;
  made.frames = static_cast<int64_t>(count);
  for (size_t i = 0; i < kFrameFeatures && count > 0; ++i) {
    double sum = 0, square = 0;
    for (size_t k = 0; k < count; ++k) {
      const auto value = static_cast<double>(deviations(k)[i]);
      sum += value;
      square += value * value;
    }
    const double mean = sum / static_cast<double>(count);
    made.mean[i] = static_cast<float>(mean);
    made.variance[i] = static_cast<float>(std::max(0.0, square / static_cast<double>(count) - mean * mean));
  }
  return made;
}

}  // namespace

DomainSignature DriftDetector::signature_of(std::span<const Frame> frames) const {
  std::vector<Scores> deviations;
  for (const Frame& frame : frames) deviations.push_back(deviations_of(frame));
  return signature(frames.size(), [&](size_t k) -> const Scores& { return deviations[k]; });
}

void DriftDetector::end_settling() {
  const DomainSignature here =
      signature(newest_.size(), [&](size_t k) -> const Scores& { return newest_[k]; });
  meet(here);
  if (domain_ == 0) {
    watched_ = source_;
    rank_scores(watched_[0].sorted.size());
    for (Watched& watched : watched_) std::fill(std::begin(watched.since), std::end(watched.since), frames_);
    return;
  }
  watch(newest_);
  // So few frames show where the middle is only so well, and all may have been of one class.
  const float uncertainty = 2.5F / std::sqrt(static_cast<float>(newest_.size()));
  const DomainSignature& home = known_[0].signature;
  for (size_t i = 0; i < kFrameFeatures; ++i) {
    // What classes do weighs more where all else varies less.
    const float calm = std::sqrt(home.variance[i] / std::max(here.variance[i], 1e-2F));
    tolerate(i, 3 * class_shift_[i] * std::clamp(calm, 1.F, kMostCalm) + uncertainty);
  }
  find_way_back(here, uncertainty);
}

float DriftDetector::WayBack::at(const Scores& deviations) const {
  float sum = 0;
  for (size_t i = 0; i < kFrameFeatures; ++i) sum += weights[i] * deviations[i];
  return sum;
}

void DriftDetector::find_way_back(const DomainSignature& here, float uncertainty) {
  const DomainSignature& home = known_[0].signature;
  Scores gap;
  for (size_t i = 0; i < kFrameFeatures; ++i) gap[i] = home.mean[i] - here.mean[i];
  way_back_.weights = solve(covariance_, gap);
  float most = -INFINITY;
  for (size_t i = 0; i < kFrameFeatures; ++i) {
    if (gap[i] * way_back_.weights[i] > most) most = gap[i] * way_back_.weights[i], way_back_.feature = i;
  }
  Watched& watched = way_back_.watched;
  watched.sorted.clear();
  double sum = 0, square = 0;
  for (const Scores& one : newest_) {
    const float value = way_back_.at(one);
    watched.sorted.push_back(value);
    sum += static_cast<double>(value);
    square += static_cast<double>(value) * static_cast<double>(value);
  }
  std::sort(watched.sorted.begin(), watched.sorted.end());
  const auto count = static_cast<double>(newest_.size());
  const auto deviation =
      static_cast<float>(std::sqrt(std::max(square / count - sum * sum / (count * count), 1e-6)));
  // Between any two classes.
  float least = 0, largest = 0, error = 0;
  for (size_t c = 0; c < class_means_.size(); ++c) {
    const float mean = way_back_.at(class_means_[c].deviation) / deviation;
    least = c == 0 ? mean : std::min(least, mean);
    largest = c == 0 ? mean : std::max(largest, mean);
    error = std::max(error, 2 / std::sqrt(class_means_[c].frames));
  }
  watched.tolerated = std::max(static_cast<float>(options_.tolerated), largest - least + error) + uncertainty;
  std::fill(std::begin(watched.stakes), std::end(watched.stakes), 0.0);
  std::fill(std::begin(watched.since), std::end(watched.since), frames_);
}

void DriftDetector::meet(const DomainSignature& signature) {
  KnownDomain* nearest = nullptr;
  double least = options_.same_domain;
  for (KnownDomain& known : known_) {
    const double far = distance(known.signature, signature);
    if (far < least) least = far, nearest = &known;
  }
  if (nearest == nullptr) {
    if (known_.size() == options_.max_domains) {
      // The source stays.
      known_.erase(std::min_element(known_.begin() + 1, known_.end(),
                                    [](const auto& a, const auto& b) { return a.met < b.met; }));
    }
    nearest = &known_.emplace_back(KnownDomain{next_domain_++, signature, 0});
  }
  nearest->met = frames_;
  domain_ = nearest->number;
}

const DomainSignature* DriftDetector::known(int64_t domain) const {
  for (const KnownDomain& one : known_) {
    if (one.number == domain) return &one.signature;
  }
  return nullptr;
}

size_t DriftDetector::bytes() const {
  size_t sum = sizeof(*this) + classes_.capacity() * sizeof(ClassScale) +
               newest_.capacity() * sizeof(Scores) + known_.capacity() * sizeof(KnownDomain);
  sum += quantiles_.capacity() * sizeof(float) + way_back_.watched.sorted.capacity() * sizeof(float) +
         class_means_.capacity() * sizeof(ClassMean);
  for (size_t i = 0; i < kFrameFeatures; ++i)
    sum += (watched_[i].sorted.capacity() + source_[i].sorted.capacity()) * sizeof(float);
  return sum;
}

}  // namespace limber::adapt
