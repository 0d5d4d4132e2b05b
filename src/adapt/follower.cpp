#include "adapt/follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"

namespace limber::adapt {
namespace {

constexpr int64_t kKeptOf = 5;       // one frame of so many is never learnt from, but judged by
constexpr size_t kRecent = 125;      // frames to judge by that are remembered: one window's and its kept ones
constexpr size_t kWatched = 100;     // frames by which what answers is judged on and on
constexpr size_t kLeastJudged = 25;  // frames; by fewer nothing is judged
constexpr size_t kLeastWatched = 40;

}  // namespace

const char* follow_name(FollowKind kind) {
  constexpr const char* kNames[] = {"alarm",       "domain",   "adapted", "rejected",
                                    "rolled back", "returned", "failed",  "reset"};
  return kNames[static_cast<size_t>(kind)];
}

Follower::Follower(const AdaptedModel& model, std::unique_ptr<Strategy> strategy, SourceStudy source,
                   const FollowerOptions& options, WeightSnapshot as_it_came, WeightSnapshot now)
    : model_(model),
      strategy_(std::move(strategy)),
      source_(std::move(source)),
      options_(options),
      guard_(options.guard),
      source_weights_(std::move(as_it_came)),
      last_weights_(now),
      begun_weights_(std::move(now)) {}

Result<std::unique_ptr<Follower>> Follower::create(const AdaptedModel& model,
                                                   std::unique_ptr<Strategy> strategy, SourceStudy source,
                                                   const FollowerOptions& options,
                                                   const std::optional<WeightSnapshot>& as_it_came) {
  if (options.window < 10)
    return invalid("a window to learn from is {} frames; expected 10 or more", options.window);
  if (options.batch < 1) return invalid("{} images run at once; expected 1 or more", options.batch);
  LIMBER_TRY(check(options.guard));
  LIMBER_ASSIGN(const WeightSnapshot now, model.weights->snapshot());
  std::unique_ptr<Follower> made(
      new Follower(model, std::move(strategy), std::move(source), options, as_it_came.value_or(now), now));
  LIMBER_TRY(made->start());
  return made;
}

Status Follower::start() {
  original_.net = std::make_shared<const Net>(Net{model_.graph, source_weights_, "as it came", 0, true});
  LIMBER_ASSIGN(original_.answerer, Answerer::create(model_.graph, source_weights_, model_.backends,
                                                     model_.threads, options_.batch));
  LIMBER_ASSIGN(original_.footing, footing_on_source(*original_.net, *original_.answerer));
  net_ = original_.net;
  image_size_ = source_.images.data<float>().size() / source_.labels.size();
  return {};
}

std::shared_ptr<const Net> Follower::net() const {
  const std::lock_guard lock(mutex_);
  return net_;
}

int64_t Follower::domain() const {
  const std::lock_guard lock(mutex_);
  return domain_;
}

std::vector<FollowEvent> Follower::take_events() { return std::exchange(events_, {}); }

FollowEvent& Follower::tell(FollowKind kind, std::string reason) {
  events_.push_back({.kind = kind, .frame = counts_.frames, .domain = domain_, .reason = std::move(reason)});
  return events_.back();
}

// --- seeing ------------------------------------------------------------------------------------------------

Status Follower::begin(int64_t domain) {
  LIMBER_ASSERT(options_.borders_known);
  {
    const std::lock_guard lock(mutex_);
    domain_ = domain;
  }
  begun_at_ = counts_.frames;
  start_over();
  tell(FollowKind::kDomain, "the stream says so");
  LIMBER_TRY(strategy_->enter(domain));
  begun_weights_ = last_weights_;
  return remodels() ? Status() : go_on_from(source_weights_);
}

// What answers, and what was collected, belong to a world that is no more.
void Follower::start_over() {
  forget_waiting();
  recent_.clear();
  collected_ = 0;
  learnt_ = false;
  answer_as_it_came();
}

Result<Logits> Follower::answer_by(Runner& runner, const Tensor& images, FollowCounts::Time& time) {
  const double began = now_seconds();
  LIMBER_ASSIGN(Logits logits, runner.answerer->answer(images));
  if (std::exchange(runner.has_answered, true)) {
    time.frames += static_cast<int64_t>(logits.size());
    time.seconds += now_seconds() - began;
  }
  return logits;
}

Result<Look> Follower::answer(const Tensor& images) {
  const double began = now_seconds();
  Look look;
  LIMBER_ASSIGN(look.original, answer_by(original_, images, counts_.original));
  look.answers = look.original;
  if (answering_.answerer != nullptr) {
    LIMBER_ASSIGN(look.answers, answer_by(answering_, images, counts_.learnt));
    const auto count = static_cast<int64_t>(look.answers.size());
    counts_.by_learnt += count;
    counts_.operations += answering_.net->operations * static_cast<double>(count);
  }
  counts_.answering_s += now_seconds() - began;
  return look;
}

Result<Look> Follower::see(const Tensor& images, const std::vector<bool>& stand_ins) {
  LIMBER_TRY(check_images(model_.graph, images));
  LIMBER_ASSIGN(Look look, answer(images));
  const double looked = now_seconds();
  const auto pixels = images.data<float>();
  const size_t row = pixels.size() / look.original.size();
  std::vector<Frame> frames;
  for (size_t i = 0; i < look.original.size(); ++i)
    frames.push_back(describe(pixels.subspan(i * row, row), look.original[i]));
  look.estimate = estimate_original(frames, look.original);
  look.accuracy = std::clamp(look.estimate.accuracy + gain_of(look), 0.0, 1.0);
  LIMBER_TRY(watch(look, frames, stand_ins));
  for (size_t i = 0; i < frames.size(); ++i) {
    if (!stand_ins.empty() && stand_ins[i]) {
      ++counts_.frames;
      ++counts_.faults.unreadable;
    } else {
      LIMBER_TRY(take_in(pixels.subspan(i * row, row), frames[i], look.original[i]));
    }
  }
  counts_.detecting_s += now_seconds() - looked;
  return look;
}

AccuracyEstimate Follower::estimate_original(std::span<const Frame> frames, const Logits& logits) const {
  std::vector<Sureness> sure;
  for (const auto& row : logits) sure.push_back(sureness_of(row, source_.estimator.temperature()));
  return source_.estimator.estimate(source_.detector.signature_of(frames), sure);
}

double Follower::gain_of(const Look& look) const {
  if (answering_.answerer == nullptr) return 0;
  return compare(look.original, original_.footing, look.answers, answering_.footing).gain();
}

Status Follower::take_in(std::span<const float> pixels, const Frame& frame,
                         const std::vector<float>& logits) {
  const FrameFault fault = fault_of(pixels, frame);
  counts_.faults.count(fault);
  ++counts_.frames;
  if (fault == FrameFault::kNotANumber) return {};
  if (!options_.borders_known) LIMBER_TRY(detect(frame));
  if (fault == FrameFault::kNone) keep(pixels, frame, logits);
  return {};
}

Status Follower::detect(const Frame& frame) {
  const auto alarm = source_.detector.observe(frame);
  if (alarm) LIMBER_TRY(begin_anew(*alarm));
  const bool settled = settling_ && !source_.detector.settling();
  settling_ = source_.detector.settling();
  return settled ? enter_domain() : Status();
}

bool Follower::learning_is_over() const {
  return options_.borders_known && counts_.frames - begun_at_ > options_.window;
}

void Follower::forget_waiting() {
  waiting_.clear();
  waiting_numbers_.clear();
}

void Follower::keep(std::span<const float> pixels, const Frame& frame, const std::vector<float>& logits) {
  if (strategy_->batch() == 0 || learning_is_over()) return;
  const int64_t number = counts_.frames - 1;
  ++collected_;
  const bool kept = options_.guarded && collected_ % kKeptOf == 0;
  if (!kept) {
    // What nobody had time to learn from gives way to what is newer.
    const auto most = static_cast<size_t>(options_.window) * pixels.size();
    if (waiting_.size() >= most) {
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(pixels.size()));
      waiting_numbers_.pop_front();
    }
    waiting_.insert(waiting_.end(), pixels.begin(), pixels.end());
    waiting_numbers_.push_back(number);
  }
  if (!options_.guarded) return;
  recent_.push_back({{pixels.begin(), pixels.end()}, logits, frame, number, kept});
  if (recent_.size() > kRecent) recent_.pop_front();
}

Status Follower::begin_anew(const DriftAlarm& alarm) {
  FollowEvent& event = tell(FollowKind::kAlarm, feature_name(alarm.feature));
  event.frame = alarm.frame;
  event.since = alarm.since;
  if (!options_.guarded) return {};
  start_over();
  begun_weights_ = last_weights_;
  return remodels() ? Status() : go_on_from(source_weights_);
}

Status Follower::enter_domain() {
  const int64_t entered = source_.detector.domain();
  {
    const std::lock_guard lock(mutex_);
    domain_ = entered;
  }
  LIMBER_TRY(strategy_->enter(entered));
  tell(FollowKind::kDomain, entered == 0 ? "the source" : fmt::format("domain {}", entered));
  if (!options_.guarded) return {};
  if (entered != 0) return go_back_to_what_was_known(entered);
  if (answering_.answerer == nullptr) return {};
  answer_as_it_came();
  ++counts_.returned;
  tell(FollowKind::kReturned, "the source again: the model as it came answers");
  return remodels() ? Status() : go_on_from(source_weights_);
}

// What was accepted here before is judged by all that was seen since the alarm.
Status Follower::go_back_to_what_was_known(int64_t entered) {
  const auto known = std::find_if(accepted_.begin(), accepted_.end(),
                                  [&](const auto& net) { return net->domain == entered; });
  if (known == accepted_.end()) return {};
  LIMBER_ASSIGN(Runner runner, runner_of(*known));
  LIMBER_ASSIGN(const auto trial, try_on_recent(runner, LearntFrom::kNothing));
  if (!trial) return {};
  const Verdict verdict = guard_.judge(*trial);
  if (!verdict.good) return {};
  ++counts_.returned;
  tell(FollowKind::kReturned, fmt::format("{} answers again: {}", runner.net->name, verdict.reason));
  const std::shared_ptr<const Net> net = runner.net;
  answer_with(std::move(runner));
  return remodels() ? Status() : go_on_from(net->weights);
}

// What answers is judged by what comes, from which it has not learnt yet.
Status Follower::watch(const Look& look, std::span<const Frame> frames, const std::vector<bool>& stand_ins) {
  if (!options_.guarded || answering_.answerer == nullptr) return {};
  for (size_t i = 0; i < look.answers.size(); ++i) {
    if (stand_ins.empty() || !stand_ins[i])
      watched_.push_back({look.original[i], look.answers[i], frames[i]});
  }
  while (watched_.size() > kWatched) watched_.pop_front();
  if (watched_.size() < kLeastWatched) return {};
  Logits original, answers;
  std::vector<Frame> watched;
  for (const WatchedFrame& one : watched_) {
    original.push_back(one.original);
    answers.push_back(one.answers);
    watched.push_back(one.frame);
  }
  const Verdict verdict = guard_.watch({original_.footing,
                                        answering_.footing,
                                        compare(original, original_.footing, answers, answering_.footing),
                                        estimate_original(watched, original).accuracy,
                                        {}});
  if (verdict.good) return {};
  ++counts_.rolled_back;
  tell(FollowKind::kRolledBack, verdict.reason);
  std::erase(accepted_, answering_.net);
  answer_as_it_came();
  return take_back();
}

// What this visit taught was not worth it.
Status Follower::take_back() {
  if (!remodels()) return go_on_from(source_weights_);
  LIMBER_TRY(strategy_->forget(domain()));
  return go_on_from(begun_weights_);
}

// --- learning ----------------------------------------------------------------------------------------------

bool Follower::due() const {
  // A network that is cut for a domain is not cut before it is known which one that is.
  if (strategy_->batch() == 0 || (remodels() && settling_)) return false;
  // The model as it came was trained for the source; nothing learnt without labels will do better there.
  if (options_.guarded && domain_ == 0 && !settling_) return false;
  if (options_.borders_known)
    return !learnt_ && !waiting_numbers_.empty() && counts_.frames - begun_at_ >= options_.window;
  const int64_t wanted = options_.guarded ? options_.window * (kKeptOf - 1) / kKeptOf : options_.window;
  // Of a new world soon.
  return static_cast<int64_t>(waiting_numbers_.size()) >=
         (learnt_ || !options_.guarded ? wanted : (wanted + 1) / 2);
}

Status Follower::learn() {
  if (!due()) return {};
  const double began = now_seconds();
  const Tensor images = images_of(waiting_);
  forget_waiting();
  learnt_ = true;
  const auto changed = strategy_->adapt(images);
  counts_.learning_s += now_seconds() - began;
  if (!changed.ok()) {
    ++counts_.failed;
    tell(FollowKind::kFailed, changed.status().message()).seconds = now_seconds() - began;
    return go_on_from(last_weights_);
  }
  if (!*changed) return {};
  const double judged = now_seconds();
  LIMBER_ASSIGN(Runner learnt,
                candidate(fmt::format("{} after {} frames", strategy_->name(), counts_.frames)));
  const size_t verdict = events_.size();
  LIMBER_TRY(settle_on(std::move(learnt)));
  counts_.judging_s += now_seconds() - judged;
  events_[verdict].seconds = now_seconds() - began;
  return {};
}

Result<Follower::Runner> Follower::candidate(std::string name) {
  const AdaptedModel& from = remodels() ? *strategy_->remodelled() : model_;
  LIMBER_ASSIGN(WeightSnapshot weights, from.weights->snapshot());
  return runner_of(std::make_shared<const Net>(
      Net{from.graph, std::move(weights), std::move(name), domain_, false, strategy_->operations()}));
}

Result<Follower::Runner> Follower::runner_of(std::shared_ptr<const Net> net) {
  Runner runner{std::move(net), nullptr, {}, false};
  const Net& of = *runner.net;
  if (remodels()) {
    LIMBER_ASSIGN(runner.answerer,
                  Answerer::create(of.graph, of.weights, model_.backends, model_.threads, options_.batch));
  } else {
    LIMBER_ASSIGN(runner.answerer, original_.answerer->with(of.weights));
  }
  if (!options_.guarded) return runner;
  LIMBER_ASSIGN(runner.footing, footing_on_source(of, *runner.answerer));
  return runner;
}

// By statistics of the source: those of another domain say nothing about what the weights still know.
Result<Footing> Follower::footing_on_source(const Net& net, const Answerer& over) {
  LIMBER_ASSIGN(
      const WeightSnapshot weights,
      with_statistics_of(source_.images, {net.graph, nullptr, model_.backends, model_.threads}, net.weights));
  LIMBER_ASSIGN(const auto answerer, over.with(weights));
  LIMBER_ASSIGN(const Logits logits, answerer->answer(source_.images));
  return footing_of(logits, source_.labels);
}

Result<std::optional<Trial>> Follower::try_on_recent(const Runner& runner, LearntFrom learnt_from) {
  if (recent_.size() < kLeastJudged) return std::optional<Trial>();
  std::vector<float> pixels;
  Logits original;
  std::vector<Frame> frames;
  for (const RecentFrame& one : recent_) {
    pixels.insert(pixels.end(), one.pixels.begin(), one.pixels.end());
    original.push_back(one.original);
    frames.push_back(one.frame);
  }
  LIMBER_ASSIGN(const Logits answers, runner.answerer->answer(images_of(pixels)));
  Trial trial{original_.footing,
              runner.footing,
              compare(original, original_.footing, answers, runner.footing),
              estimate_original(frames, original).accuracy,
              {}};
  if (learnt_from == LearntFrom::kNothing) return std::optional(std::move(trial));
  Logits kept_original, kept_answers;
  for (size_t i = 0; i < recent_.size(); ++i) {
    if (!recent_[i].kept) continue;
    kept_original.push_back(original[i]);
    kept_answers.push_back(answers[i]);
  }
  if (!kept_original.empty())
    trial.unlearnt = compare(kept_original, original_.footing, kept_answers, runner.footing);
  return std::optional(std::move(trial));
}

// May it answer?
Status Follower::settle_on(Runner learnt) {
  if (!options_.guarded) return accept(std::move(learnt), "nobody judges");
  LIMBER_ASSIGN(const auto trial, try_on_recent(learnt, LearntFrom::kAllButKept));
  if (!trial) return reject(fmt::format("fewer than {} frames to judge it by", kLeastJudged));
  const Verdict verdict = guard_.judge(*trial);
  if (!verdict.good) return reject(verdict.reason);
  if (answering_.answerer != nullptr) {
    LIMBER_ASSIGN(const auto present, try_on_recent(answering_, LearntFrom::kAllButKept));
    const double before = guard_.judge(*present).gain;
    if (verdict.gain < before - options_.guard.most_loss)
      return reject(
          fmt::format("{:+.1f} points, what answers has {:+.1f}", 100 * verdict.gain, 100 * before));
  }
  return accept(std::move(learnt), verdict.reason);
}

Status Follower::accept(Runner learnt, const std::string& reason) {
  ++counts_.adapted;
  tell(FollowKind::kAdapted, reason);
  LIMBER_TRY(strategy_->keep());
  LIMBER_ASSIGN(last_weights_, model_.weights->snapshot());
  remember(learnt.net);
  answer_with(std::move(learnt));
  return options_.guarded && remodels() ? judge_master() : Status();
}

// It is what networks for all other domains will be cut from.
Status Follower::judge_master() {
  LIMBER_ASSIGN(const Footing footing,
                footing_on_source({model_.graph, last_weights_, "the master"}, *original_.answerer));
  if (footing.accuracy >= original_.footing.accuracy - options_.guard.master_loss) return {};
  tell(FollowKind::kReset,
       fmt::format(
           "the master knows {:.1f} % of the kept source images, as it came {:.1f} %: as it came again",
           100 * footing.accuracy, 100 * original_.footing.accuracy));
  return go_on_from(source_weights_);
}

Status Follower::reject(const std::string& reason) {
  ++counts_.rejected;
  tell(FollowKind::kRejected, reason);
  return go_on_from(last_weights_);
}

void Follower::remember(const std::shared_ptr<const Net>& net) {
  if (!options_.guarded || net->domain == 0) return;
  std::erase_if(accepted_, [&](const auto& one) { return one->domain == net->domain; });
  accepted_.insert(accepted_.begin(), net);
  if (accepted_.size() > options_.remembered) accepted_.pop_back();
}

void Follower::answer_with(Runner runner) {
  answering_ = std::move(runner);
  watched_.clear();
  const std::lock_guard lock(mutex_);
  net_ = answering_.net;
}

void Follower::answer_as_it_came() {
  answering_ = {};
  watched_.clear();
  const std::lock_guard lock(mutex_);
  net_ = original_.net;
}

Status Follower::set_weights(const WeightSnapshot& weights) {
  for (const std::string& name : model_.weights->names()) {
    if (!weights.weights().contains(name)) model_.weights->erase(name);
  }
  for (const std::string& name : weights.weights().names()) {
    LIMBER_ASSIGN(const Tensor tensor, weights.weights().get(name));
    LIMBER_ASSIGN(Tensor own, tensor.copy());  // the strategy writes it; the snapshot's stay as they are
    model_.weights->set(name, std::move(own));
  }
  return {};
}

Status Follower::go_on_from(const WeightSnapshot& weights) {
  LIMBER_TRY(set_weights(weights));
  last_weights_ = begun_weights_ = weights;
  return strategy_->reset();
}

Frame Follower::describe(std::span<const float> pixels, const std::vector<float>& logits) const {
  const auto side = [&](int axis) { return static_cast<int>(source_.images.shape().dim(axis)); };
  return frame_of(pixels, side(1), side(2), side(3), logits);
}

Tensor Follower::images_of(std::span<const float> pixels) const {
  Shape shape = source_.images.shape();
  shape[0] = Dim(static_cast<int64_t>(pixels.size() / image_size_));
  return Tensor::from(pixels, shape);
}

}  // namespace limber::adapt
