#include "jobs/adapt_job.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/parallel.h"
#include "data/stream.h"
#include "data/subset.h"
#include "jobs/adapt_folder.h"
#include "jobs/classifier.h"
#include "jobs/version.h"
#include "passes/classifier.h"
#include "record/master_note.h"
#include "variant/elastic_folder.h"

namespace limber {
namespace {

// Frames that are answered before anybody looks at them: what is noticed changes the answers from there on.
constexpr int64_t kSeenAtOnce = 25;
constexpr int64_t kSpan = 5000;  // frames over which adapting must not lose: see docs/adaptation.md

struct World {
  std::shared_ptr<const Stream> stream;
  std::shared_ptr<const Dataset> source;
  std::optional<size_t> home;  // the stream's domain that is the source

  bool begins_in_source() const { return home && stream->visit(0).domain == *home; }
};

std::optional<size_t> home_in(const Stream& stream, bool own) {
  const auto& domains = stream.domains();
  const size_t first = stream.visit(0).domain;
  if (!own) {
    const bool plain = domains[first].find('@') == std::string::npos && domains[first] != "noise";
    return plain ? std::optional(first) : std::nullopt;
  }
  const auto clean = std::find(domains.begin(), domains.end(), "clean");
  return clean == domains.end() ? std::nullopt : std::optional(static_cast<size_t>(clean - domains.begin()));
}

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
  world.home = home_in(*world.stream, own);
  return world;
}

// In its first `total` frames.
std::vector<DomainChange> changes_of(const World& world, int64_t total) {
  std::vector<DomainChange> changes;
  const Stream& stream = *world.stream;
  std::optional<size_t> before;
  for (int64_t frame = 0; frame < total;) {
    const Visit visit = stream.visit(static_cast<size_t>(frame));
    const bool change = before ? *before != visit.domain : !world.begins_in_source();
    if (change) {
      if (!changes.empty()) changes.back().until = frame;
      changes.push_back({frame, total, stream.domains()[visit.domain], std::nullopt});
    }
    before = visit.domain;
    frame += visit.frames;
  }
  return changes;
}

AdaptWindowRecord record_of(const WindowScore& window) {
  return {.step = window.first + window.frames,
          .frames = window.frames,
          .domain = window.domain,
          .mixed = window.mixed,
          .labelled = window.labelled,
          .scored = window.scored,
          .accuracy = window.accuracy,
          .frozen = window.frozen,
          .estimate = window.answers_estimate,
          .frozen_estimate = window.estimate,
          .atc = window.atc,
          .doc = window.doc,
          .found = window.found,
          .net = window.net};
}

WindowScore window_of(const AdaptWindowRecord& record) {
  return {.first = record.step - record.frames,
          .frames = record.frames,
          .domain = record.domain,
          .mixed = record.mixed,
          .labelled = record.labelled,
          .scored = record.scored,
          .accuracy = record.accuracy,
          .frozen = record.frozen,
          .estimate = record.frozen_estimate,
          .atc = record.atc,
          .doc = record.doc,
          .answers_estimate = record.estimate,
          .found = record.found,
          .net = record.net};
}

// Images begin .. begin + count of a batch.
Result<Tensor> images_in(const Batch& batch, int64_t begin, int64_t count) {
  TensorType type = batch.images.type();
  type.shape[0] = Dim(count);
  LIMBER_ASSIGN(Tensor images, Tensor::allocate(type));
  const size_t row = batch.images.bytes() / static_cast<size_t>(batch.size);
  std::memcpy(images.raw(),
              static_cast<const std::byte*>(batch.images.raw()) + row * static_cast<size_t>(begin),
              images.bytes());
  return images;
}

class AdaptRun {
 public:
  AdaptRun(const AdaptJobOptions& options, const World& world, LoaderOptions loading,
           adapt::Follower& follower, AdaptFolder* folder, AdaptResult& result)
      : options_(options),
        world_(world),
        loading_(std::move(loading)),
        follower_(follower),
        folder_(folder),
        result_(result) {}

  Status run(const JobControl& control) {
    LIMBER_TRY(go_on());
    LIMBER_ASSIGN(const auto loader, Loader::make(world_.stream, loading_));
    LIMBER_TRY(loader->start_epoch(0, result_.frames / options_.window));
    double saved = now_seconds();
    bool over = false;
    while (!control.stop_asked()) {
      LIMBER_ASSIGN(const Batch batch, loader->next());
      over = batch.size == 0;
      if (over) break;
      LIMBER_TRY(take(batch));
      if (now_seconds() - saved >= options_.save_every_s) {
        LIMBER_TRY(save());
        saved = now_seconds();
      }
      control.progress(
          {.stage = "following the stream",
           .share = static_cast<double>(result_.frames) / static_cast<double>(world_.stream->size()),
           .text = ""});
    }
    result_.counts = follower_.counts();
    return over ? end() : save();
  }

 private:
  // What is done is not done again.
  Status go_on() {
    if (folder_ == nullptr || !folder_->saved()) return {};
    const SavedFollower& saved = *folder_->saved();
    LIMBER_TRY(follower_.restore(saved.follower,
                                 [this](std::span<const int64_t> frames) { return images_of(frames); }));
    result_.frames = saved.frames;
    for (const AdaptWindowRecord& record : folder_->windows()) result_.windows.push_back(window_of(record));
    for (const AdaptEventRecord& record : folder_->events()) take(record);
    return {};
  }
  Result<Tensor> images_of(std::span<const int64_t> frames) const {
    std::vector<uint32_t> samples;
    for (const int64_t frame : frames) {
      if (frame >= static_cast<int64_t>(world_.stream->size()))
        return corrupt("frame {} of a stream of {}", frame, world_.stream->size());
      samples.push_back(static_cast<uint32_t>(frame));
    }
    LIMBER_ASSIGN(const auto part, make_subset(world_.stream, std::move(samples)));
    LoaderOptions all = loading_;
    all.batch = static_cast<int64_t>(frames.size());
    LIMBER_ASSIGN(const auto loader, Loader::make(part, all));
    LIMBER_TRY(loader->start_epoch(0));
    LIMBER_ASSIGN(Batch batch, loader->next());
    return std::move(batch.images);
  }

  // Windows end where a batch does and, where borders are known, with a visit and with what is learnt from.
  Status take(const Batch& batch) {
    const int64_t first = result_.frames, end = first + batch.size;
    while (result_.frames < end) {
      WindowScore window;
      window.first = result_.frames;
      int64_t until = end;
      if (options_.borders_known) {
        const Visit visit = world_.stream->visit(static_cast<size_t>(window.first));
        const int64_t learnt = visit.first + options_.window;
        if (window.first == visit.first) LIMBER_TRY(follower_.begin(number_of(visit.domain)));
        window.scored = window.first >= learnt;
        until = std::min({end, visit.first + visit.frames, window.scored ? end : learnt});
      }
      window.frames = until - window.first;
      LIMBER_TRY(this->window(batch, window.first - first, std::move(window)));
    }
    return {};
  }
  // By which the follower knows the domain: 0 is the source.
  int64_t number_of(size_t domain) const {
    return world_.home == domain ? 0 : static_cast<int64_t>(domain) + 1;
  }
  // Scored first, learnt from afterwards. Its frames begin at `offset` of the batch.
  Status window(const Batch& batch, int64_t offset, WindowScore window) {
    place(window);
    int64_t read = 0, right = 0, frozen = 0;
    for (int64_t done = 0; done < window.frames;) {
      const int64_t begin = offset + done, some = std::min(kSeenAtOnce, window.frames - done);
      LIMBER_ASSIGN(const Tensor images, images_in(batch, begin, some));
      const std::vector<bool> stand_ins = stand_ins_in(batch, begin, window.first + done, some);
      window.net = follower_.net()->name;
      LIMBER_ASSIGN(const adapt::Look look, follower_.see(images, stand_ins));
      const auto labels =
          batch.labels.data<int64_t>().subspan(static_cast<size_t>(begin), static_cast<size_t>(some));
      read += std::count(stand_ins.begin(), stand_ins.end(), false);
      right += count_right(look.answers, labels, stand_ins);
      frozen += count_right(look.original, labels, stand_ins);
      const double share = static_cast<double>(some) / static_cast<double>(window.frames);
      window.estimate += share * look.estimate.accuracy;
      window.atc += share * look.estimate.atc;
      window.doc += share * look.estimate.doc;
      window.answers_estimate += share * look.accuracy;
      if (follower_.due()) LIMBER_TRY(follower_.learn());
      done += some;
    }
    window.labelled = window.labelled && read > 0;
    const auto of = static_cast<double>(std::max<int64_t>(1, read));
    window.accuracy = static_cast<double>(right) / of;
    window.frozen = static_cast<double>(frozen) / of;
    window.found = follower_.domain();
    result_.frames += window.frames;
    for (const adapt::FollowEvent& event : follower_.take_events()) LIMBER_TRY(tell(event));
    result_.windows.push_back(window);
    return folder_ == nullptr ? Status() : folder_->add(record_of(window));
  }
  Status tell(const adapt::FollowEvent& event) {
    const Visit visit = world_.stream->visit(static_cast<size_t>(std::max<int64_t>(0, event.frame - 1)));
    const AdaptEventRecord record{.step = result_.frames,
                                  .what = adapt::follow_name(event.kind),
                                  .frame = event.frame,
                                  .since = event.since,
                                  .found = event.domain,
                                  .domain = world_.stream->domains()[visit.domain],
                                  .reason = event.reason,
                                  .estimate = event.estimate,
                                  .seconds = event.seconds};
    take(record);
    return folder_ == nullptr ? Status() : folder_->add(record);
  }
  void take(const AdaptEventRecord& record) {
    if (record.what == adapt::follow_name(adapt::FollowKind::kAlarm))
      result_.alarms.push_back({record.frame, record.since, record.reason, record.domain});
    result_.events.push_back(record);
  }
  Status save() {
    if (folder_ == nullptr) return {};
    LIMBER_ASSIGN(adapt::FollowerState state, follower_.state());
    return folder_->save({std::move(state), result_.frames});
  }
  Status end() {
    if (folder_ == nullptr) return {};
    LIMBER_TRY(save());
    const adapt::FollowCounts& counts = result_.counts;
    return folder_->add(
        AdaptEndRecord{.step = result_.frames,
                       .skipped = counts.faults.unreadable,
                       .not_a_number = counts.faults.not_a_number,
                       .flat = counts.faults.flat,
                       .noise = counts.faults.noise,
                       .worst_below_frozen = score_windows(result_.windows, kSpan).worst_below_frozen,
                       .answering_s = counts.answering_s,
                       .detecting_s = counts.detecting_s,
                       .learning_s = counts.learning_s,
                       .judging_s = counts.judging_s});
  }
  void place(WindowScore& window) const {
    const Visit first = world_.stream->visit(static_cast<size_t>(window.first));
    const Visit last = world_.stream->visit(static_cast<size_t>(window.first + window.frames - 1));
    window.domain = world_.stream->domains()[first.domain];
    window.mixed = first.domain != last.domain || last.first > first.first + first.frames;
    window.labelled = world_.stream->is_labelled(first.domain) && world_.stream->is_labelled(last.domain);
  }
  // Which images of the batch, from `begin` on, stand where a frame cannot be read.
  static std::vector<bool> stand_ins_in(const Batch& batch, int64_t begin, int64_t frame, int64_t count) {
    std::vector<bool> stand_ins;
    for (int64_t i = 0; i < count; ++i)
      stand_ins.push_back(batch.samples[static_cast<size_t>(begin + i)] != static_cast<uint32_t>(frame + i));
    return stand_ins;
  }
  static int64_t count_right(const adapt::Logits& logits, std::span<const int64_t> labels,
                             const std::vector<bool>& stand_ins) {
    int64_t right = 0;
    for (size_t i = 0; i < logits.size(); ++i)
      right += !stand_ins[i] && among_best(logits[i], labels[i], 1) ? 1 : 0;
    return right;
  }

  const AdaptJobOptions& options_;
  const World& world_;
  const LoaderOptions loading_;
  adapt::Follower& follower_;
  AdaptFolder* folder_;  // null: nothing is written down
  AdaptResult& result_;
};

RunTexts describe(const AdaptJobOptions& options) {
  return {{"model", options.model},
          {"stream", options.stream},
          {"data", options.data},
          {"source-images", fmt::format("{}", options.source_images)},
          {"strategy", options.strategy},
          {"operations", fmt::format("{}", options.settings.operations)},
          {"write-back", options.settings.write_back ? "on" : "off"},
          {"guard", options.guard ? "on" : "off"},
          {"borders", options.borders_known ? "known" : "found"},
          {"window", fmt::format("{}", options.window)},
          {"frames-per-alarm", fmt::format("{}", options.drift.frames_per_alarm)},
          {"seed", fmt::format("{}", options.seed)}};
}

// A master is followed as it is, others as load_classifier() has them.
Result<Classifier> load_followed(AdaptJobOptions& options, const JobControl& control) {
  if (!is_elastic(options.model)) {
    LIMBER_ASSIGN(const auto recorded, checkpoint_of(options.model));
    if (recorded) use_recorded(options.image, recorded->input);
    options.open_batch = true;
    return load_classifier(options, options.image, control);
  }
  LIMBER_ASSIGN(const ElasticFolder folder, load_elastic(options.model));
  LIMBER_ASSIGN(const auto note, find_note<MasterNote>(folder.info.notes));
  if (!note) LIMBER_TRY(refuse_elastic(options.model));
  LIMBER_ASSIGN(const WeightSnapshot weights, folder.model.params->snapshot());
  Classifier made;
  made.model.graph = folder.model.base;
  made.model.params = std::make_shared<Parameters>(weights);
  made.input = folder.info.input;
  return made;
}

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

Result<std::unique_ptr<adapt::Follower>> make_follower(const AdaptJobOptions& options,
                                                       const adapt::AdaptedModel& model,
                                                       adapt::SourceStudy study) {
  LIMBER_ASSIGN(const WeightSnapshot as_it_came, model.weights->snapshot());
  LIMBER_ASSIGN(auto strategy, make_strategy(options.strategy, model, options.settings, study.images));
  const adapt::FollowerOptions following{.window = options.window,
                                         .guarded = options.guard,
                                         .borders_known = options.borders_known,
                                         .batch = kSeenAtOnce};
  return adapt::Follower::create(model, std::move(strategy), std::move(study), following, as_it_came);
}

void score(const World& world, bool detected, AdaptResult& result) {
  if (detected) result.changes = changes_of(world, result.frames);
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
  LIMBER_TRY(check(options.settings));
  if (!(options.save_every_s >= 0))
    return invalid("saved every {} s; expected 0 or more", options.save_every_s);
  if (options.resume && options.output.empty())
    return invalid("nothing to resume without an output; name the folder of the stream that was followed");
  return adapt::check(options.drift);
}

Result<std::optional<AdaptResult>> run_adapt(const AdaptJobOptions& asked, const JobControl& control) {
  LIMBER_TRY(check(asked));
  AdaptJobOptions options = asked;
  LIMBER_ASSIGN(const World world, open_world(options));
  LIMBER_ASSIGN(const Classifier classifier, load_followed(options, control));
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
  AdaptResult result;
  result.source_accuracy = study->estimator.source_accuracy();
  result.source_images = study->studied;
  std::unique_ptr<AdaptFolder> folder;
  if (!options.output.empty()) {
    LIMBER_ASSIGN(folder, AdaptFolder::open(options.output, options.resume, describe(options),
                                            {{"threads", fmt::format("{}", threads)},
                                             {"version", version_text()},
                                             {"source", fmt::format("{}", result.source_accuracy)}}));
    options.settings.folder = folder->master_folder();
  }
  LIMBER_ASSIGN(const auto follower, make_follower(options, model, *std::move(study)));
  AdaptRun run(options, world, loading_of(options, classifier.input, threads), *follower, folder.get(),
               result);
  LIMBER_TRY(run.run(control));
  if (result.frames == 0) return std::optional<AdaptResult>();
  result.detector_bytes = follower->detector().bytes();
  score(world, !options.borders_known, result);
  return std::optional(std::move(result));
}

}  // namespace limber
