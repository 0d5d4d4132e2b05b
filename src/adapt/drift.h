// Noticing that the world has changed, from the requests a model answers anyway and without knowing a class.
//
// Each feature of a frame (frame_features.h) is compared with those of reference frames of which the model
// claimed the same class, and becomes a standard score by its rank among them. Bets are laid against "as
// before, but for a tolerated shift": each multiplies its stake by a factor whose mean is at most 1 as long
// as that is true, and a new bet of 1 starts with every frame. The alarm is raised when the mean stake of all
// bets reaches `frames_per_alarm`; as long as nothing changes that takes at least so many frames on average,
// whatever the distribution of the features (an e-detector: Shin, Ramdas and Rinaldo, 2022). That holds for
// frames that are independent of each other; frames of a film should be thinned out first.
//
// What is tolerated is what the mix of classes alone can do: a stream that shows one class after the other is
// no drift, though its features change. Where the classes of reference frames are known, it is measured on
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "adapt/frame_features.h"
#include "base/status.h"

namespace limber::adapt {

// How the frames of a domain look, in deviations of the source.
struct DomainSignature {
  std::array<float, kFrameFeatures> mean{}, variance{};
  int64_t frames = 0;
};
// By how many deviations two domains differ, root mean square over features, less what chance alone would
// make of so few frames. 0: no difference can be seen. REQUIRES: both have frames
double distance(const DomainSignature& a, const DomainSignature& b);

struct DriftOptions {
  double frames_per_alarm = 1e6;  // false alarms are at least so far apart, on average
  double tolerated = 0.15;        // shifts in deviations that are never drift; more where classes cause more
  int64_t settle = 128;           // frames after an alarm that show what the new domain is like
  double same_domain = 0.35;      // distance below which a domain is one that was seen before
  size_t max_domains = 64;        // that are remembered; beyond, the one met longest ago is forgotten
};
Status check(const DriftOptions& options);

struct DriftAlarm {
  int64_t frame = 0;  // of observe(), from 0
  int64_t since = 0;  // since when things look different, as far as can be told
  FrameFeature feature = FrameFeature::kBrightness;  // that gave it away
};

inline constexpr size_t kMinReference = 100;   // frames
inline constexpr size_t kMaxReference = 2048;  // that are kept

struct ReferenceFrame {
  Frame frame;
  int32_t label = -1;  // true class, where it is known
};

// Memory is fixed at creation: it grows with the number of classes (about 180 bytes each) and not with the
// number of frames. Use from one thread.
class DriftDetector {
 public:
  // kInvalidArgument when the options or the number of frames make no sense. Of more than kMaxReference
  // frames those kept are evenly spread.
  static Result<DriftDetector> create(std::span<const ReferenceFrame> source,
                                      const DriftOptions& options = {});

  std::optional<DriftAlarm> observe(const Frame& frame);

  // While the new domain is learnt no change is noticed.
  bool settling() const { return settling_ > 0; }
  // Which domain this is, as a number that is never used again for another: 0 is the source. While settling,
  // the one before.
  int64_t domain() const { return domain_; }
  int64_t frames() const { return frames_; }
  // Mean stake of all bets, as a share of what raises the alarm.
  double alertness() const;
  // What a window of frames looks like.
  DomainSignature signature_of(std::span<const Frame> frames) const;
  // Null when it was forgotten.
  const DomainSignature* known(int64_t domain) const;
  size_t bytes() const;

  // All that observe() changed, as numbers, for a detector that was made of the same frames with the same
  // options to go on from. kCorrupt, and nothing changes, for what none of them gave.
  std::vector<double> state() const;
  Status restore(std::span<const double> state);

 private:
  template <typename Detector, typename Number>
  static void visit(Detector& detector, Number& number);
  using Scores = std::array<float, kFrameFeatures>;
  using Square = std::array<Scores, kFrameFeatures>;
  static constexpr int kStakes = 3;  // sizes of bets, in each of two directions
  // A feature's values in the present domain and what can be lost on it.
  struct Watched {
    std::vector<float> sorted;  // deviations
    float tolerated = 0;
    double stakes[2 * kStakes] = {};
    int64_t since[2 * kStakes] = {};
  };
  struct ClassScale {
    Scores median{}, scale{};
    bool known = false;
  };
  // The direction in which the source lies, seen from another domain: all features together.
  struct WayBack {
    Scores weights{};
    size_t feature = 0;  // that counts most
    Watched watched;
    float at(const Scores& deviations) const;
  };
  struct ClassMean {
    Scores deviation{};
    float frames = 0;
  };
  struct KnownDomain {
    int64_t number = 0;
    DomainSignature signature;
    int64_t met = 0;  // frame
  };

  explicit DriftDetector(const DriftOptions& options) : options_(options) {}
  void learn_classes(std::span<const ReferenceFrame> source);
  void watch(std::span<const Scores> deviations);
  void tolerate(size_t feature, float shift);
  void measure_class_shifts(std::span<const ReferenceFrame> source, std::span<const Scores> deviations);
  Scores deviations_of(const Frame& frame) const;
  void rank_scores(size_t count);
  float score_of(const Watched& watched, float deviation) const;
  double bet(Watched& watched, float score, int directions = 2) const;
  double bets() const { return (kFrameFeatures * 2 + (domain_ != 0 ? 1 : 0)) * kStakes; }
  void measure_covariance(std::span<const Scores> deviations);
  static Scores solve(Square a, Scores b);
  void find_way_back(const DomainSignature& here, float uncertainty);
  void end_settling();
  void meet(const DomainSignature& signature);

  DriftOptions options_;
  std::vector<ClassScale> classes_;  // by claimed class; the last: all others
  std::array<Watched, kFrameFeatures> watched_, source_;
  Scores class_shift_{};                // what the mix of classes can do to each feature
  std::vector<ClassMean> class_means_;  // of the source, by true class
  Square covariance_{};                 // of the source's deviations, with a ridge
  WayBack way_back_;                    // where this is not the source
  std::vector<float> quantiles_;        // standard score by rank
  std::vector<Scores> newest_;
  std::vector<KnownDomain> known_;
  int64_t frames_ = 0, settling_ = 0, domain_ = 0, next_domain_ = 1;
};

}  // namespace limber::adapt
