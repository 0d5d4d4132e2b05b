// A detector's state as a list of numbers.
#include <cmath>
#include <type_traits>

#include "adapt/drift.h"

namespace limber::adapt {
namespace {

class Writing {
 public:
  template <typename T>
  void operator()(const T& value) {
    numbers.push_back(static_cast<double>(value));
  }
  template <typename List>
  size_t size(const List& list, size_t /*most*/) {
    (*this)(list.size());
    return list.size();
  }
  std::vector<double> numbers;
};

class Reading {
 public:
  explicit Reading(std::span<const double> numbers) : left_(numbers) {}
  template <typename T>
  void operator()(T& value) {
    const double number = left_.empty() ? NAN : left_.front();
    if (!left_.empty()) left_ = left_.subspan(1);
    if constexpr (std::is_integral_v<T>) {
      // Counts; those above 2^53 were never counted.
      good_ = good_ && number >= 0 && number <= 0x1p53 && number == std::floor(number);
      value = good_ ? static_cast<T>(number) : 0;
    } else {
      good_ = good_ && std::isfinite(number);
      value = static_cast<T>(number);
    }
  }
  template <typename List>
  size_t size(List& list, size_t most) {
    size_t count = 0;
    (*this)(count);
    good_ = good_ && count <= most;
    list.resize(good_ ? count : 0);
    return list.size();
  }
  bool good() const { return good_ && left_.empty(); }

 private:
  std::span<const double> left_;
  bool good_ = true;
};

}  // namespace

template <typename Detector, typename Number>
void DriftDetector::visit(Detector& detector, Number& number) {
  const auto each = [&](auto& values) {
    for (auto& value : values) number(value);
  };
  const auto watched = [&](auto& one) {
    number.size(one.sorted, kMaxReference);
    each(one.sorted);
    number(one.tolerated);
    each(one.stakes);
    each(one.since);
  };
  for (auto& one : detector.watched_) watched(one);
  each(detector.way_back_.weights);
  number(detector.way_back_.feature);
  watched(detector.way_back_.watched);
  number.size(detector.newest_, kMaxReference);
  for (auto& scores : detector.newest_) each(scores);
  number.size(detector.known_, detector.options_.max_domains);
  for (auto& known : detector.known_) {
    number(known.number);
    each(known.signature.mean);
    each(known.signature.variance);
    number(known.signature.frames);
    number(known.met);
  }
  number(detector.frames_);
  number(detector.settling_);
  number(detector.domain_);
  number(detector.next_domain_);
}

std::vector<double> DriftDetector::state() const {
  Writing writing;
  visit(*this, writing);
  return std::move(writing.numbers);
}

Status DriftDetector::restore(std::span<const double> state) {
  DriftDetector made = *this;
  Reading reading(state);
  visit(made, reading);
  const size_t ranked = made.watched_[0].sorted.size();
  bool fits = reading.good() && ranked > 0 && made.known(0) != nullptr &&
              made.way_back_.feature < kFrameFeatures && made.settling_ <= options_.settle;
  for (const Watched& one : made.watched_) fits = fits && one.sorted.size() == ranked;
  // The way back is looked up only outside of the source.
  fits = fits && (made.domain_ == 0 || made.way_back_.watched.sorted.size() == ranked);
  if (!fits) return corrupt("the state of a drift detector is not one of this source and these options");
  made.rank_scores(ranked);
  *this = std::move(made);
  return {};
}

}  // namespace limber::adapt
