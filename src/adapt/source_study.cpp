#include "adapt/source_study.h"

#include <algorithm>

#include "adapt/answerer.h"
#include "data/corruptions.h"
#include "data/subset.h"

namespace limber::adapt {
namespace {

constexpr int kStudiedStrengths[] = {1, 3, 5};
constexpr int64_t kBatch = 100;  // images that run at once

struct Seen {
  std::vector<Frame> frames;
  std::vector<JudgedFrame> judged;
};

class Student {
 public:
  static Result<Student> create(const AdaptedModel& model, const StudyOptions& options,
                                std::function<bool()> stop) {
    Student made;
    LIMBER_ASSIGN(const WeightSnapshot weights, model.weights->snapshot());
    LIMBER_ASSIGN(made.answerer_,
                  Answerer::create(model.graph, weights, model.backends, model.threads, kBatch));
    made.stop_ = std::move(stop);
    made.loading_.batch = kBatch;
    made.loading_.shuffle = made.loading_.augment = false;
    made.loading_.workers = options.workers;
    made.loading_.threads = model.threads;
    made.loading_.input = options.input;
    made.loading_.on_bad_image = OnBadImage::kSkip;
    return made;
  }

  // Nothing when it was stopped.
  Result<std::optional<Seen>> look(const std::shared_ptr<const Dataset>& data) {
    LIMBER_ASSIGN(const auto loader, Loader::make(data, loading_));
    LIMBER_TRY(loader->start_epoch(0));
    Seen seen;
    for (;;) {
      LIMBER_ASSIGN(const Batch batch, loader->next());
      if (batch.size == 0) return std::optional(std::move(seen));
      if (stop_ && stop_()) return std::optional<Seen>();
      LIMBER_TRY(add(batch, seen));
    }
  }
  Result<Batch> load(const std::shared_ptr<const Dataset>& data) {
    LoaderOptions all = loading_;
    all.batch = static_cast<int64_t>(data->size());
    LIMBER_ASSIGN(const auto loader, Loader::make(data, all));
    LIMBER_TRY(loader->start_epoch(0));
    return loader->next();
  }

 private:
  Student() = default;
  Status add(const Batch& batch, Seen& seen) {
    LIMBER_ASSIGN(Logits logits, answerer_->answer(batch.images));
    const Preprocess& input = loading_.input;
    const auto pixels = batch.images.data<float>();
    const size_t row = pixels.size() / logits.size();
    for (size_t i = 0; i < logits.size(); ++i) {
      seen.frames.push_back(
          frame_of(pixels.subspan(i * row, row), input.channels, input.height, input.width, logits[i]));
      seen.judged.push_back({std::move(logits[i]), batch.labels.data<int64_t>()[i]});
    }
    return {};
  }

  std::unique_ptr<Answerer> answerer_;
  std::function<bool()> stop_;
  LoaderOptions loading_;
};

// Spread evenly: images may come class by class.
Result<std::shared_ptr<const Dataset>> some_of(const std::shared_ptr<const Dataset>& data, size_t count) {
  std::vector<uint32_t> few(std::min(count, data->size()));
  for (size_t i = 0; i < few.size(); ++i) few[i] = static_cast<uint32_t>(i * data->size() / few.size());
  return make_subset(data, std::move(few));
}

std::vector<ReferenceFrame> references_in(const Seen& seen) {
  std::vector<ReferenceFrame> references;
  for (size_t i = 0; i < seen.frames.size(); ++i)
    references.push_back({seen.frames[i], static_cast<int32_t>(seen.judged[i].label)});
  return references;
}

// False when it was stopped.
Result<bool> learn_errors(Student& student, const std::shared_ptr<const Dataset>& few, uint64_t seed,
                          SourceStudy& study) {
  for (int kind = kBenchmarkCorruptions; kind < kCorruptions; ++kind) {
    for (const int strength : kStudiedStrengths) {
      LIMBER_ASSIGN(const auto seen,
                    student.look(corrupt_dataset(few, static_cast<Corruption>(kind), strength, seed)));
      if (!seen) return false;
      study.estimator.learn(study.detector.signature_of(seen->frames), seen->judged);
    }
  }
  return true;
}

}  // namespace

Result<std::optional<SourceStudy>> study_source(const AdaptedModel& model,
                                                const std::shared_ptr<const Dataset>& data,
                                                const StudyOptions& options,
                                                const std::function<bool()>& stop) {
  LIMBER_ASSIGN(Student student, Student::create(model, options, stop));
  LIMBER_ASSIGN(const auto seen, student.look(data));
  if (!seen) return std::optional<SourceStudy>();
  LIMBER_ASSIGN(auto detector, DriftDetector::create(references_in(*seen), options.drift));
  LIMBER_ASSIGN(auto estimator, AccuracyEstimator::create(seen->judged, detector.signature_of(seen->frames)));
  LIMBER_ASSIGN(const auto kept, some_of(data, options.kept));
  LIMBER_ASSIGN(const Batch batch, student.load(kept));
  const auto labels = batch.labels.data<int64_t>();
  SourceStudy study{std::move(detector),
                    std::move(estimator),
                    batch.images,
                    {labels.begin(), labels.end()},
                    static_cast<int64_t>(seen->frames.size())};
  LIMBER_ASSIGN(const auto few, some_of(data, options.corrupted));
  LIMBER_ASSIGN(const bool done, learn_errors(student, few, model.seed, study));
  return done ? std::optional(std::move(study)) : std::nullopt;
}

}  // namespace limber::adapt
