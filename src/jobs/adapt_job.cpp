#include "jobs/adapt_job.h"

#include <algorithm>

#include "base/parallel.h"
#include "data/stream.h"
#include "data/subset.h"
#include "jobs/classifier.h"
#include "passes/classifier.h"

namespace limber {
namespace {

constexpr int64_t kSpan = 5000;  // frames over which adapting must not lose: see docs/adaptation.md

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


class AdaptRun {
 public:
  AdaptRun(const World& world, adapt::Follower& follower, AdaptResult& result)
      : world_(world), follower_(follower), result_(result) {}

  Status run(const LoaderOptions& loading, const JobControl& control) {
    LIMBER_ASSIGN(const auto loader, Loader::make(world_.stream, loading));
    LIMBER_TRY(loader->start_epoch(0));
    while (!control.stop_asked()) {
      LIMBER_ASSIGN(const Batch batch, loader->next());
      if (batch.size == 0) break;
      LIMBER_TRY(window(batch));
      control.progress(
          {.stage = "following the stream",
           .share = static_cast<double>(result_.frames) / static_cast<double>(world_.stream->size()),
           .text = ""});
    }
    result_.skipped = loader->skipped();
    return {};
  }

 private:
  // Scored first, learnt from afterwards.
  Status window(const Batch& batch) {
    LIMBER_ASSIGN(const adapt::Look look, follower_.see(batch.images));
    WindowScore window;
    window.first = result_.frames;
    window.frames = batch.size;
    place(window);
    window.frozen = share_right(batch, look.original);
    window.accuracy = share_right(batch, look.answers);
    window.estimate = look.estimate.accuracy;
    window.atc = look.estimate.atc;
    window.doc = look.estimate.doc;
    window.answers_estimate = look.accuracy;
    result_.windows.push_back(window);
    result_.frames += batch.size;
    if (follower_.due()) LIMBER_TRY(follower_.learn());
    for (adapt::FollowEvent& event : follower_.take_events()) tell(std::move(event));
    return {};
  }
  void tell(adapt::FollowEvent event) {
    if (event.kind == adapt::FollowKind::kAlarm) {
      const Visit visit = world_.stream->visit(static_cast<size_t>(event.frame));
      result_.alarms.push_back(
          {event.frame, event.since, event.reason, world_.stream->domains()[visit.domain]});
    }
    result_.events.push_back(std::move(event));
  }
  void place(WindowScore& window) const {
    const Visit first = world_.stream->visit(static_cast<size_t>(window.first));
    const Visit last = world_.stream->visit(static_cast<size_t>(window.first + window.frames - 1));
    window.domain = world_.stream->domains()[first.domain];
    window.mixed = first.domain != last.domain || last.first > first.first + first.frames;
    window.labelled = world_.stream->is_labelled(first.domain) && world_.stream->is_labelled(last.domain);
  }
  static double share_right(const Batch& batch, const adapt::Logits& logits) {
    int64_t right = 0;
    for (size_t i = 0; i < logits.size(); ++i)
      right += among_best(logits[i], batch.labels.data<int64_t>()[i], 1) ? 1 : 0;
    return static_cast<double>(right) / static_cast<double>(batch.size);
  }

  const World& world_;
  adapt::Follower& follower_;
  AdaptResult& result_;
};

LoaderOptions loading_of(const AdaptJobOptions& options, const Preprocess& input, int threads) {
  LoaderOptions loading;
  loading.batch = options.window;
  loading.shuffle = loading.augment = false;
  loading.workers = options.workers;
  loading.threads = threads;
  loading.input = input;
  loading.on_bad_image = OnBadImage::kSkip;
  return loading;
}

void score(const World& world, AdaptResult& result) {
  for (const DomainChange& change : changes_of(world)) {
    if (change.frame < result.frames) result.changes.push_back(change);
  }
  std::vector<int64_t> alarms;
  for (const AdaptAlarm& alarm : result.alarms) alarms.push_back(alarm.frame);
  result.alarm_score = score_alarms(result.changes, alarms);
  result.score = score_windows(result.windows, kSpan);
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

Result<std::optional<AdaptResult>> run_adapt(const AdaptJobOptions& asked, const JobControl& control) {
  LIMBER_TRY(check(asked));
  AdaptJobOptions options = asked;
  LIMBER_ASSIGN(const World world, open_world(options));
  LIMBER_ASSIGN(const auto recorded, checkpoint_of(options.model));
  if (recorded) use_recorded(options.image, recorded->input);
  options.open_batch = true;
  LIMBER_ASSIGN(const Classifier classifier, load_classifier(options, options.image, control));
  LIMBER_TRY(check_classes(classifier.model.graph, world.stream->class_names(), options.stream));
  const BuildSpec spec = build_spec(options, false);
  const int threads = thread_count(spec);
  const ThreadScope scope(threads);
  control.progress({.stage = "looking at the source", .share = -1, .text = ""});
  const adapt::AdaptedModel model{classifier.model.graph, classifier.model.params, make_backends(spec),
                                  threads, options.seed};
  const adapt::StudyOptions studying{
      .input = classifier.input, .workers = options.workers, .drift = options.drift};
  LIMBER_ASSIGN(auto study, adapt::study_source(model, world.source, studying,
                                                [&control] { return control.stop_asked(); }));
  if (!study) return std::optional<AdaptResult>();
  LIMBER_ASSIGN(auto strategy, make_strategy(options.strategy, model));
  AdaptResult result;
  result.source_accuracy = study->estimator.source_accuracy();
  result.source_images = study->studied;
  const adapt::FollowerOptions following{.window = options.window, .guarded = options.guard};
  LIMBER_ASSIGN(const auto follower,
                adapt::Follower::create(model, std::move(strategy), *std::move(study), following));
  LIMBER_TRY(
      AdaptRun(world, *follower, result).run(loading_of(options, classifier.input, threads), control));
  if (result.frames == 0) return std::optional<AdaptResult>();
  result.counts = follower->counts();
  result.detector_bytes = follower->detector().bytes();
  score(world, result);
  return std::optional(std::move(result));
}

}  // namespace limber
