#include "supernet/exits/exit_calibration.h"

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

double share_of(size_t count, size_t all) { return static_cast<double>(count) / static_cast<double>(all); }

// Walks from the confidence that no image has down to the least: images move to earlier endings.
class Sweep {
 public:
  explicit Sweep(const ExitOutcomes& outcomes)
      : outcomes_(outcomes), ending_(outcomes.images(), outcomes.endings.size() - 1) {
    const auto& endings = outcomes.endings;
    for (size_t e = 0; e + 1 < endings.size(); ++e) {
      for (size_t i = 0; i < ending_.size(); ++i) events_.push_back({endings[e].confidence[i], e, i});
    }
    std::sort(events_.begin(), events_.end(),
              [](const Event& a, const Event& b) { return a.confidence > b.confidence; });
    for (const bool right : endings.back().correct) correct_ += right ? 1 : 0;
    seconds_ = endings.back().seconds * static_cast<double>(ending_.size());
  }

  // Everything that leaves at the next confidence; false when there is none.
  bool next() {
    if (at_ == events_.size()) return false;
    const double confidence = events_[at_].confidence;
    for (; at_ < events_.size() && events_[at_].confidence == confidence; ++at_) move(events_[at_]);
    confidence_ = confidence;
    return true;
  }

  size_t correct() const { return correct_; }
  double seconds() const { return seconds_; }
  double confidence() const { return confidence_; }
  double following() const { return at_ < events_.size() ? events_[at_].confidence : 0; }

 private:
  struct Event {
    double confidence;
    size_t ending, image;
  };

  void move(const Event& event) {
    size_t& ending = ending_[event.image];
    if (ending <= event.ending) return;
    const auto &from = outcomes_.endings[ending], &to = outcomes_.endings[event.ending];
    correct_ = correct_ - (from.correct[event.image] ? 1 : 0) + (to.correct[event.image] ? 1 : 0);
    seconds_ += to.seconds - from.seconds;
    ending = event.ending;
  }

  const ExitOutcomes& outcomes_;
  std::vector<size_t> ending_;  // by image
  std::vector<Event> events_;   // by falling confidence
  size_t at_ = 0, correct_ = 0;
  double seconds_ = 0, confidence_ = 0;
};

// The number with the fewest digits in (low, high].
double few_digits(double low, double high) {
  double scale = 1;
  for (int digits = 0; digits < 15; ++digits, scale *= 10) {
    const double rounded = std::floor(high * scale) / scale;
    if (rounded > low && rounded <= high) return rounded;
  }
  return high;
}

}  // namespace

double share_correct(const ExitOutcomes::Ending& ending) {
  const auto count = std::count(ending.correct.begin(), ending.correct.end(), true);
  return static_cast<double>(count) / static_cast<double>(ending.correct.size());
}

Status ExitOutcomes::check() const {
  if (images() == 0) return invalid("no images to judge exits by");
  for (size_t e = 0; e < endings.size(); ++e) {
    const bool last = e + 1 == endings.size();
    if (endings[e].correct.size() != images() || (!last && endings[e].confidence.size() != images()))
      return invalid("exit {} says something about {} images, the model about {}", e,
                     endings[e].correct.size(), images());
  }
  return {};
}

ExitPoint outcome_at(const ExitOutcomes& outcomes, double confidence) {
  const size_t images = outcomes.images(), last = outcomes.endings.size() - 1;
  ExitPoint point{.confidence = confidence, .shares = std::vector<double>(last + 1, 0)};
  size_t correct = 0;
  for (size_t i = 0; i < images; ++i) {
    size_t e = confidence > 0 ? 0 : last;
    while (e < last && !(outcomes.endings[e].confidence[i] >= confidence)) ++e;
    correct += outcomes.endings[e].correct[i] ? 1 : 0;
    point.shares[e] += 1;
  }
  for (size_t e = 0; e <= last; ++e) {
    point.shares[e] /= static_cast<double>(images);
    point.seconds += point.shares[e] * outcomes.endings[e].seconds;
  }
  point.accuracy = share_of(correct, images);
  return point;
}

ExitPoint calibrate_exits(const ExitOutcomes& outcomes, double least_accuracy) {
  constexpr double kRounding = 1e-9;  // share by which sums in another order may differ
  Sweep sweep(outcomes);
  const auto images = static_cast<double>(outcomes.images());
  const double needed = (least_accuracy - kRounding) * images;
  double best = sweep.seconds(), confidence = 0;
  size_t correct = sweep.correct();
  while (sweep.next()) {
    if (static_cast<double>(sweep.correct()) < needed) continue;
    const double less = best - sweep.seconds();
    const bool equal = std::abs(less) <= kRounding * best;
    if (equal ? sweep.correct() <= correct : less < 0) continue;
    best = sweep.seconds();
    correct = sweep.correct();
    confidence = few_digits(sweep.following(), sweep.confidence());
  }
  return outcome_at(outcomes, confidence);
}

std::vector<ExitPoint> exit_curve(const ExitOutcomes& outcomes, int count) {
  std::vector<double> confidences;
  for (size_t e = 0; e + 1 < outcomes.endings.size(); ++e) {
    const auto& of_exit = outcomes.endings[e].confidence;
    confidences.insert(confidences.end(), of_exit.begin(), of_exit.end());
  }
  std::sort(confidences.begin(), confidences.end());
  std::vector<ExitPoint> curve;
  for (int k = 0; k + 1 < count && !confidences.empty(); ++k) {
    const auto at = confidences.size() * static_cast<size_t>(k) / static_cast<size_t>(count - 1);
    const double below = at == 0 ? 0 : confidences[at - 1];
    const double confidence = few_digits(below, confidences[at]);
    if (curve.empty() || confidence > curve.back().confidence)
      curve.push_back(outcome_at(outcomes, confidence));
  }
  curve.push_back(outcome_at(outcomes, 0));
  return curve;
}

size_t forced_exit(const ExitOutcomes& outcomes, double seconds) {
  const auto& endings = outcomes.endings;
  const auto count = [&](size_t e) {
    return std::count(endings[e].correct.begin(), endings[e].correct.end(), true);
  };
  size_t best = 0;
  for (size_t e = 1; e < endings.size(); ++e) {
    const double now = endings[e].forced_seconds, before = endings[best].forced_seconds;
    const bool better = now <= seconds ? before > seconds || count(e) > count(best) : before > now;
    if (better) best = e;
  }
  return best;
}

}  // namespace limber
