#include "jobs/adapt_job.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "adapt/estimate.h"
#include "adapt/methods/batch_norm.h"
#include "adapt/methods/shot.h"
#include "adapt/methods/tent.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "data/corruptions.h"
#include "data/stream.h"
#include "data/subset.h"
#include "jobs/classifier.h"
#include "passes/classifier.h"
#include "runtime/compile.h"

namespace limber {
namespace {

constexpr int64_t kSpan = 5000;  // frames over which adapting must not lose: see docs/adaptation.md
constexpr size_t kCalibration =
    200;  // source images that are corrupted each way, to see how far estimates are off
constexpr int kCalibrationStrengths[] = {1, 3, 5};

struct Seen {
  adapt::Frame frame;
  std::vector<float> logits;
  int64_t label = 0;
};

// A model's sessions over one plan: as it came, and as it was adapted.
class Watcher {
 public:
  static Result<Watcher> create(const AdaptJobOptions& options, const Classifier& classifier) {
    Watcher made;
    const BuildSpec spec = build_spec(options, false);
    made.threads_ = thread_count(spec);
    LIMBER_ASSIGN(const WeightSnapshot weights, classifier.model.params->snapshot());
    const Graph graph = logits_of(classifier.model.graph);
    LIMBER_ASSIGN(auto plan, compile(graph, weights, make_backends(spec),
                                     batch_settings(graph, options.window, made.threads_)));
    LIMBER_ASSIGN(made.frozen_, Session::create(plan, weights));
    made.loading_.batch = made.frozen_->input(0).shape().dim(0);
    made.loading_.shuffle = made.loading_.augment = false;
    made.loading_.workers = options.workers;
    made.loading_.threads = made.threads_;
    made.loading_.input = classifier.input;
    made.loading_.on_bad_image = OnBadImage::kSkip;
    if (options.strategy != "none") {
      LIMBER_ASSIGN(made.adapted_, Session::create(plan, weights));
    }
    return made;
  }

  int threads() const { return threads_; }
  int64_t window() const { return loading_.batch; }
  Session* adapted() const { return adapted_.get(); }
  const LoaderOptions& loading() const { return loading_; }
  double seconds() const { return seconds_; }
  double feature_seconds() const { return feature_seconds_; }

  // Logits of the model as it came, one row an image.
  Result<std::vector<std::vector<float>>> ask(const Batch& batch) {
    const double begin = now_seconds();
    auto rows = answers(*frozen_, batch);
    seconds_ += now_seconds() - begin;
    return rows;
  }
  static Result<std::vector<std::vector<float>>> answers(Session& session, const Batch& batch) {
    std::memcpy(session.input(0).raw(), batch.images.raw(), batch.images.bytes());
    LIMBER_TRY(session.run());
    const Tensor out = session.output(0);
    const auto classes = static_cast<size_t>(out.elements() / out.shape().dim(0));
    std::vector<std::vector<float>> rows;
    for (size_t i = 0; i < static_cast<size_t>(batch.size); ++i) {
      const auto row = out.data<float>().subspan(i * classes, classes);
      rows.emplace_back(row.begin(), row.end());
    }
    return rows;
  }
  std::vector<adapt::Frame> frames_of(const Batch& batch, const std::vector<std::vector<float>>& logits) {
    const double begin = now_seconds();
    const Preprocess& input = loading_.input;
    const auto pixels = batch.images.data<float>();
    const size_t row = pixels.size() / static_cast<size_t>(batch.size);
    std::vector<adapt::Frame> frames;
    for (size_t i = 0; i < logits.size(); ++i)
      frames.push_back(adapt::frame_of(pixels.subspan(i * row, row), input.channels, input.height,
                                       input.width, logits[i]));
    feature_seconds_ += now_seconds() - begin;
    return frames;
  }

  // Nothing when it was stopped.
  Result<std::vector<Seen>> look(const std::shared_ptr<const Dataset>& data, const JobControl& control) {
    LIMBER_ASSIGN(const auto loader, Loader::make(data, loading_));
    LIMBER_TRY(loader->start_epoch(0));
    std::vector<Seen> seen;
    for (;;) {
      LIMBER_ASSIGN(const Batch batch, loader->next());
      if (batch.size == 0) return seen;
      if (control.stop_asked()) return std::vector<Seen>();
      LIMBER_ASSIGN(auto logits, ask(batch));
      const auto frames = frames_of(batch, logits);
      for (size_t i = 0; i < frames.size(); ++i)
        seen.push_back({frames[i], std::move(logits[i]), batch.labels.data<int64_t>()[i]});
    }
  }
  void restart_clocks() { seconds_ = feature_seconds_ = 0; }

 private:
  Watcher() = default;
  std::unique_ptr<Session> frozen_, adapted_;
  LoaderOptions loading_;
  int threads_ = 1;
  double seconds_ = 0, feature_seconds_ = 0;
};

std::vector<adapt::Frame> frames_in(std::span<const Seen> seen) {
  std::vector<adapt::Frame> frames;
  for (const Seen& one : seen) frames.push_back(one.frame);
  return frames;
}

std::vector<adapt::JudgedFrame> judged_in(std::span<const Seen> seen) {
  std::vector<adapt::JudgedFrame> judged;
  for (const Seen& one : seen) judged.push_back({one.logits, one.label});
  return judged;
}

// The strategy with the weights it works on, and images it has not been given yet.
class Adapter {
 public:
  static Result<Adapter> create(const AdaptJobOptions& options, const Classifier& classifier,
                                const Watcher& watcher) {
    LIMBER_ASSIGN(WeightSnapshot weights, classifier.model.params->snapshot());
    Adapter made(std::move(weights));
    made.params_ = std::make_shared<Parameters>(made.last_);
    LIMBER_ASSIGN(made.strategy_, make_strategy(options.strategy, {classifier.model.graph, made.params_,
                                                                   make_backends(build_spec(options, false)),
                                                                   watcher.threads(), options.seed}));
    return made;
  }

  // The session runs with what was learnt from its next run on.
  Status learn(const Batch& batch, Session& session, AdaptResult& result) {
    const double begin = now_seconds();
    const auto pixels = batch.images.data<float>();
    pixels_.insert(pixels_.end(), pixels.begin(), pixels.end());
    const size_t row = pixels.size() / static_cast<size_t>(batch.size);
    const size_t wanted = static_cast<size_t>(strategy_->batch()) * row;
    while (wanted > 0 && pixels_.size() >= wanted) {
      Shape shape = batch.images.shape();
      shape[0] = strategy_->batch();
      const auto from = std::span<const float>(pixels_).first(wanted);
      LIMBER_TRY(step(Tensor::from(from, shape), session, result));
      pixels_.erase(pixels_.begin(), pixels_.begin() + static_cast<std::ptrdiff_t>(wanted));
    }
    if (wanted == 0) pixels_.clear();
    result.adapting_seconds += now_seconds() - begin;
    return {};
  }

 private:
  explicit Adapter(WeightSnapshot weights) : last_(std::move(weights)) {}
  Status step(const Tensor& images, Session& session, AdaptResult& result) {
    const auto changed = strategy_->adapt(images);
    if (!changed.ok()) {
      ++result.failures;
      for (const std::string& name : last_.weights().names()) {
        LIMBER_ASSIGN(Tensor tensor, last_.weights().get(name));
        params_->set(name, std::move(tensor));
      }
      return strategy_->reset();
    }
    if (!*changed) return {};
    ++result.adaptations;
    LIMBER_ASSIGN(last_, params_->snapshot());
    return session.use(last_);
  }

  std::shared_ptr<Parameters> params_;
  WeightSnapshot last_;
  std::unique_ptr<adapt::Strategy> strategy_;
  std::vector<float> pixels_;
};

struct World {
  std::shared_ptr<const Stream> stream;
  std::shared_ptr<const Dataset> source;
  bool begins_in_source = false;
};

Result<World> open_world(const AdaptJobOptions& options) {
  auto spec = parse_stream(options.stream);
  if (!spec.ok()) return spec.status();
  World world;
  const bool own = options.data.empty();
  LIMBER_ASSIGN(world.stream,
                Stream::open(*spec, {.data = options.data, .keep = own ? options.source_images : 0}));
  if (own) {
    world.source = world.stream->kept();
  } else {
    LIMBER_ASSIGN(auto data, open_dataset(options.data, {Split::kTest, false, world.stream->class_names()}));
    world.source = std::move(data);
    if (world.source->size() > options.source_images) {
      LIMBER_ASSIGN(auto split, hold_out(world.source, options.source_images, options.seed));
      world.source = std::move(split.held);
    }
  }
  const std::string& first = world.stream->domains()[world.stream->visit(0).domain];
  const bool plain = first.find('@') == std::string::npos && first != "noise";
  world.begins_in_source = own ? first == "clean" : plain;
  return world;
}

std::vector<DomainChange> changes_of(const World& world) {
  std::vector<DomainChange> changes;
  const Stream& stream = *world.stream;
  const auto total = static_cast<int64_t>(stream.size());
  std::optional<size_t> before;
  for (int64_t frame = 0; frame < total;) {
    const Visit visit = stream.visit(static_cast<size_t>(frame));
    const bool change = before ? *before != visit.domain : !world.begins_in_source;
    if (change) {
      if (!changes.empty()) changes.back().until = frame;
      changes.push_back({frame, total, stream.domains()[visit.domain], std::nullopt});
    }
    before = visit.domain;
    frame += visit.frames;
  }
  return changes;
}

Result<adapt::AccuracyEstimator> learn_estimator(Watcher& watcher, const adapt::DriftDetector& detector,
                                                 const std::shared_ptr<const Dataset>& source,
                                                 std::span<const Seen> seen, const AdaptJobOptions& options,
                                                 const JobControl& control) {
  LIMBER_ASSIGN(auto estimator,
                adapt::AccuracyEstimator::create(judged_in(seen), detector.signature_of(frames_in(seen))));
  std::vector<uint32_t> few(std::min(kCalibration, source->size()));
  std::iota(few.begin(), few.end(), 0U);
  // Spread over the images, which may come class by class.
  for (uint32_t& index : few) index = static_cast<uint32_t>(index * source->size() / few.size());
  LIMBER_ASSIGN(const auto part, make_subset(source, few));
  for (int kind = kBenchmarkCorruptions; kind < kCorruptions; ++kind) {
    for (const int strength : kCalibrationStrengths) {
      LIMBER_ASSIGN(const auto domain,
                    watcher.look(corrupt_dataset(part, static_cast<Corruption>(kind), strength, options.seed),
                                 control));
      if (domain.empty()) return estimator;  // stopped
      estimator.learn(detector.signature_of(frames_in(domain)), judged_in(domain));
    }
  }
  return estimator;
}

class AdaptRun {
 public:
  AdaptRun(const World& world, Watcher& watcher, adapt::DriftDetector& detector,
           const adapt::AccuracyEstimator& estimator)
      : world_(world), watcher_(watcher), detector_(detector), estimator_(estimator) {}

  Status run(Adapter* adapter, AdaptResult& result, const JobControl& control) {
    LIMBER_ASSIGN(const auto loader, Loader::make(world_.stream, watcher_.loading()));
    LIMBER_TRY(loader->start_epoch(0));
    while (!control.stop_asked()) {
      LIMBER_ASSIGN(const Batch batch, loader->next());
      if (batch.size == 0) break;
      LIMBER_TRY(window(batch, adapter, result));
      control.progress(
          {.stage = "following the stream",
           .share = static_cast<double>(result.frames) / static_cast<double>(world_.stream->size()),
           .text = ""});
    }
    result.skipped = loader->skipped();
    return {};
  }

 private:
  Status window(const Batch& batch, Adapter* adapter, AdaptResult& result) {
    LIMBER_ASSIGN(const auto logits, watcher_.ask(batch));
    const auto frames = watcher_.frames_of(batch, logits);
    observe(frames, result);
    WindowScore window;
    window.first = result.frames;
    window.frames = batch.size;
    place(window);
    window.frozen = window.accuracy = share_right(batch, logits);
    std::vector<adapt::Sureness> sure;
    for (const auto& row : logits) sure.push_back(adapt::sureness_of(row, estimator_.temperature()));
    const auto estimate = estimator_.estimate(detector_.signature_of(frames), sure);
    window.estimate = estimate.accuracy;
    window.atc = estimate.atc;
    window.doc = estimate.doc;
    if (watcher_.adapted() != nullptr) {
      LIMBER_ASSIGN(const auto adapted, Watcher::answers(*watcher_.adapted(), batch));
      window.accuracy = share_right(batch, adapted);
      LIMBER_TRY(adapter->learn(batch, *watcher_.adapted(), result));
    }
    result.windows.push_back(window);
    result.frames += batch.size;
    return {};
  }
  void observe(std::span<const adapt::Frame> frames, AdaptResult& result) {
    const double begin = now_seconds();
    for (const adapt::Frame& frame : frames) {
      const auto alarm = detector_.observe(frame);
      if (!alarm) continue;
      const Visit visit = world_.stream->visit(static_cast<size_t>(alarm->frame));
      result.alarms.push_back(
          {alarm->frame, alarm->since, feature_name(alarm->feature), world_.stream->domains()[visit.domain]});
    }
    result.detector_seconds += now_seconds() - begin;
  }
  void place(WindowScore& window) const {
    const Visit first = world_.stream->visit(static_cast<size_t>(window.first));
    const Visit last = world_.stream->visit(static_cast<size_t>(window.first + window.frames - 1));
    window.domain = world_.stream->domains()[first.domain];
    window.mixed = first.domain != last.domain || last.first > first.first + first.frames;
    window.labelled = world_.stream->is_labelled(first.domain) && world_.stream->is_labelled(last.domain);
  }
  static double share_right(const Batch& batch, const std::vector<std::vector<float>>& logits) {
    int64_t right = 0;
    for (size_t i = 0; i < logits.size(); ++i)
      right += among_best(logits[i], batch.labels.data<int64_t>()[i], 1) ? 1 : 0;
    return static_cast<double>(right) / static_cast<double>(batch.size);
  }

  const World& world_;
  Watcher& watcher_;
  adapt::DriftDetector& detector_;
  const adapt::AccuracyEstimator& estimator_;
};

std::vector<adapt::ReferenceFrame> references_in(std::span<const Seen> seen) {
  std::vector<adapt::ReferenceFrame> references;
  for (const Seen& one : seen) references.push_back({one.frame, static_cast<int32_t>(one.label)});
  return references;
}

}  // namespace

Status check(const AdaptJobOptions& options) {
  if (options.stream.empty())
    return invalid("no stream; expected domains such as 'synthetic:clean*500,fog@3*500', or a folder");
  if (options.window < 10 || options.window > 100000)
    return invalid("window is {} frames; expected 10 to 100000", options.window);
  if (options.source_images < adapt::kMinReference)
    return invalid("source_images is {}; expected {} or more", options.source_images, adapt::kMinReference);
  const auto names = adapt_strategies();
  if (std::find(names.begin(), names.end(), options.strategy) == names.end())
    return no_such("strategy", options.strategy, names);
  return adapt::check(options.drift);
}

std::vector<std::string> adapt_strategies() { return {"none", "bn", "onda", "tent", "shot-im", "shot"}; }

Result<std::unique_ptr<adapt::Strategy>> make_strategy(const std::string& name,
                                                       const adapt::AdaptedModel& model) {
  if (name == "none") return std::unique_ptr<adapt::Strategy>(std::make_unique<adapt::Frozen>());
  if (name == "bn") return adapt::BatchNormStatistics::create(model, {});
  if (name == "onda") return adapt::Onda::create(model, {});
  if (name == "tent") return adapt::Tent::create(model, {});
  if (name == "shot-im") return adapt::Shot::create(model, adapt::shot_im());
  if (name == "shot") return adapt::Shot::create(model, adapt::shot_with_labels());
  return no_such("strategy", name, adapt_strategies());
}

Result<std::optional<AdaptResult>> run_adapt(const AdaptJobOptions& asked, const JobControl& control) {
  LIMBER_TRY(check(asked));
  AdaptJobOptions options = asked;
  LIMBER_ASSIGN(const World world, open_world(options));
  LIMBER_ASSIGN(const auto recorded, checkpoint_of(options.model));
  if (recorded) use_recorded(options.image, recorded->input);
  options.open_batch = true;
  LIMBER_ASSIGN(const Classifier classifier, load_classifier(options, options.image, control));
  LIMBER_TRY(check_classes(classifier.model.graph, world.stream->class_names(), options.stream));
  LIMBER_ASSIGN(Watcher watcher, Watcher::create(options, classifier));
  const ThreadScope threads(watcher.threads());
  control.progress({.stage = "looking at the source", .share = -1, .text = ""});
  LIMBER_ASSIGN(const auto seen, watcher.look(world.source, control));
  if (seen.empty()) return std::optional<AdaptResult>();
  LIMBER_ASSIGN(auto detector, adapt::DriftDetector::create(references_in(seen), options.drift));
  LIMBER_ASSIGN(const auto estimator,
                learn_estimator(watcher, detector, world.source, seen, options, control));
  watcher.restart_clocks();
  AdaptResult result;
  result.source_accuracy = estimator.source_accuracy();
  result.source_images = static_cast<int64_t>(seen.size());
  std::optional<Adapter> adapter;
  if (watcher.adapted() != nullptr) {
    LIMBER_ASSIGN(adapter, Adapter::create(options, classifier, watcher));
  }
  AdaptRun run(world, watcher, detector, estimator);
  LIMBER_TRY(run.run(adapter ? &*adapter : nullptr, result, control));
  if (result.frames == 0) return std::optional<AdaptResult>();
  result.serving_seconds = watcher.seconds();
  result.detector_seconds += watcher.feature_seconds();
  result.detector_bytes = detector.bytes();
  for (const DomainChange& change : changes_of(world)) {
    if (change.frame < result.frames) result.changes.push_back(change);
  }
  std::vector<int64_t> alarms;
  for (const AdaptAlarm& alarm : result.alarms) alarms.push_back(alarm.frame);
  result.alarm_score = score_alarms(result.changes, alarms);
  result.score = score_windows(result.windows, kSpan);
  return std::optional(std::move(result));
}

}  // namespace limber
