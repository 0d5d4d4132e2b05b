// A follower of small pictures whose strategy does what it is told.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "adapt/follower.h"
#include "tests/adapt/methods/small_model.h"

namespace limber::adapt {

inline constexpr int64_t kSide = 8;

// Smooth, each another; `light` is added to all pixels.
inline Tensor pictures(int64_t count, uint64_t seed, float light = 0) {
  Tensor images = *Tensor::allocate({DType::kF32, {count, 3, kSide, kSide}});
  Random random(seed);
  auto pixels = images.data<float>();
  for (size_t i = 0; i < pixels.size(); i += kSide * kSide) {
    const double phase = random.uniform(0, 6), slope = random.uniform(-1, 1),
                 height = random.uniform(0.5, 1.5);
    for (size_t k = 0; k < kSide * kSide; ++k) {
      const auto x = static_cast<double>(k % kSide), y = static_cast<double>(k / kSide);
      pixels[i + k] = light + static_cast<float>(height * std::sin(phase + x / 3) + slope * y / 4);
    }
  }
  return images;
}

inline Tensor one_of(const Tensor& images, int64_t index) {
  const size_t row = images.data<float>().size() / static_cast<size_t>(images.shape().dim(0));
  return Tensor::from(images.data<float>().subspan(static_cast<size_t>(index) * row, row),
                      {1, 3, kSide, kSide});
}

// The classes are what the model says, but for one in five.
inline SourceStudy studied(const AdaptedModel& model) {
  const Tensor images = pictures(200, 1);
  const auto answerer = *Answerer::create(model.graph, *model.weights->snapshot(), model.backends, 1, 50);
  const Logits logits = *answerer->answer(images);
  std::vector<ReferenceFrame> references;
  std::vector<JudgedFrame> judged;
  std::vector<int64_t> labels;
  std::vector<Frame> frames;
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto pixels = images.data<float>().subspan(i * 3 * kSide * kSide, 3 * kSide * kSide);
    frames.push_back(frame_of(pixels, 3, kSide, kSide, logits[i]));
    labels.push_back((frames.back().claimed + (i % 5 == 0 ? 1 : 0)) % 4);
    references.push_back({frames.back(), static_cast<int32_t>(labels.back())});
    judged.push_back({logits[i], labels.back()});
  }
  DriftDetector detector = *DriftDetector::create(references, {.frames_per_alarm = 1e4, .settle = 16});
  AccuracyEstimator estimator = *AccuracyEstimator::create(judged, detector.signature_of(frames));
  return {std::move(detector), std::move(estimator), images, labels, 200};
}

// Does what it is told, and remembers what it was given.
class Scripted : public Strategy {
 public:
  using Change = std::function<Status(Parameters& weights)>;
  Scripted(AdaptedModel model, Change change) : model_(std::move(model)), change_(std::move(change)) {}
  std::string_view name() const override { return "scripted"; }
  int64_t batch() const override { return 16; }
  Result<bool> adapt(const Tensor& images) override {
    const auto pixels = images.data<float>();
    seen.insert(seen.end(), pixels.begin(), pixels.end());
    LIMBER_TRY(change_(*model_.weights));
    return true;
  }
  Status enter(int64_t domain) override {
    entered.push_back(domain);
    return {};
  }
  Status reset() override {
    ++resets;
    return {};
  }

  std::vector<float> seen;
  std::vector<int64_t> entered;
  int resets = 0;

 private:
  AdaptedModel model_;
  Change change_;
};

// Multiplies a parameter.
inline Scripted::Change times(std::string name, float factor) {
  return [name = std::move(name), factor](Parameters& weights) -> Status {
    LIMBER_ASSIGN(Tensor tensor, weights.writable(name));
    for (float& x : tensor.data<float>()) x *= factor;
    weights.mark_changed(std::vector{name});
    return {};
  };
}

inline constexpr FollowerOptions kQuick{.window = 20, .batch = 16};

struct Case {
  explicit Case(Scripted::Change change, FollowerOptions options = kQuick) : model(small_model()) {
    auto made = std::make_unique<Scripted>(model, std::move(change));
    strategy = made.get();
    follower = *Follower::create(model, std::move(made), studied(model), options);
  }
  // Sees so many in pieces of ten, and learns whenever it is due.
  void show(int64_t count, uint64_t seed, float light) {
    const Tensor images = pictures(count, seed, light);
    for (int64_t begin = 0; begin < count; begin += 10) {
      const size_t row = 3 * kSide * kSide;
      const auto part = images.data<float>().subspan(static_cast<size_t>(begin) * row, 10 * row);
      ASSERT_TRUE(follower->see(Tensor::from(part, {10, 3, kSide, kSide})).ok());
      ASSERT_TRUE(follower->learn().ok());
    }
  }
  int64_t count(FollowKind kind) {
    for (FollowEvent& event : follower->take_events()) events.push_back(std::move(event));
    return std::count_if(events.begin(), events.end(), [&](const auto& e) { return e.kind == kind; });
  }

  AdaptedModel model;
  Scripted* strategy = nullptr;
  std::unique_ptr<Follower> follower;
  std::vector<FollowEvent> events;
};

inline const Scripted::Change kNothing = [](Parameters&) { return Status(); };

inline FollowerOptions trusting() {
  FollowerOptions options = kQuick;
  options.guard.least_gain = 0;
  return options;
}

}  // namespace limber::adapt
