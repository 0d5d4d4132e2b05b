#include "jobs/followed_model.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/priority.h"
#include "data/subset.h"
#include "jobs/adapt_strategies.h"
#include "jobs/classifier.h"
#include "passes/answers.h"

namespace limber {
namespace {

// Images that are looked at together, as many as a follower runs at once.
constexpr size_t kTogether = 50;
// Those that come slowly do not wait longer for others: a change is seen within so many seconds.
constexpr double kPatience_s = 1;
// Images that wait in memory to be looked at: two seconds' worth where one of 20 ms is looked at after the
// other, 1.2 MB of 32x32 pixels, 60 MB of 224x224.
constexpr size_t kRing = 100;
// Images behind a point of the estimate: fewer say little, by four points of accuracy either way.
constexpr int64_t kPoint = 100;

template <typename T>
void push_last(std::vector<T>& list, T item, size_t most) {
  list.push_back(std::move(item));
  if (list.size() > most) list.erase(list.begin());
}

std::optional<double> known(double share) { return share > 0 ? std::optional(share) : std::nullopt; }

// Why the model's world cannot be followed, whatever the method.
Status check_followed(const ServedSource& source) {
  if (!source.images)
    return invalid("{}: takes no images, and adapting follows a classifier of images", source.name);
  LIMBER_ASSIGN(const ServedSignature signature, signature_of(source.graph));
  if (signature.inputs.size() != 1)
    return invalid("{}: has {} inputs; adapting follows a model with one, which are images", source.name,
                   signature.inputs.size());
  if (const Status answers = check_answers(source.graph, Answers::kClasses); !answers.ok())
    return answers.in(fmt::format("{}: adapting follows a classifier", source.name));
  if (!signature.batched)
    return invalid(
        "{}: takes one image at a time, and adapting needs several; export the model with an open batch",
        source.name);
  return {};
}

}  // namespace

Status check(const ServeAdaptOptions& options) {
  if (options.method.empty()) {
    if (!options.data.empty())
      return invalid("adapt-data '{}' are for adapting, and no method is named", options.data);
    return {};
  }
  const auto names = adapt_strategies();
  if (options.method == "none" || std::find(names.begin(), names.end(), options.method) == names.end())
    return no_such("method", options.method, names);
  LIMBER_TRY(check(options.settings));
  if (options.data.empty())
    return invalid(
        "no images of the source; adapting needs labelled images like those the model was trained on, to "
        "know "
        "what is normal: adapt-data names them");
  if (!(options.share > 0) || options.share > 1)
    return invalid("a share of {} of the cores; expected more than 0, at most 1", options.share);
  if (options.window < 10 || options.window > 100000)
    return invalid("window is {} images; expected 10 to 100000", options.window);
  if (options.source_images < adapt::kMinReference)
    return invalid("source_images is {}; expected {} or more", options.source_images, adapt::kMinReference);
  return {};
}

Result<std::shared_ptr<const Dataset>> open_source_images(const ServeAdaptOptions& options, uint64_t seed) {
  LIMBER_ASSIGN(auto opened, open_dataset(options.data, {.split = Split::kTest}));
  std::shared_ptr<const Dataset> data = std::move(opened);
  if (data->size() < adapt::kMinReference)
    return invalid("{}: has {} images; expected {} or more, to know what is normal", options.data,
                   data->size(), adapt::kMinReference);
  if (data->size() <= options.source_images) return data;
  LIMBER_ASSIGN(SplitDataset split, hold_out(std::move(data), options.source_images, seed));
  return std::move(split.held);
}

FollowedModel::FollowedModel(const std::shared_ptr<ServedModel>& model, const WeightSnapshot& weights,
                             std::shared_ptr<const Dataset> source, const FollowedModelSettings& settings)
    : model_(model),
      settings_(settings),
      adapted_{model->source().graph, std::make_shared<Parameters>(weights),
               settings.backends,     settings.threads,
               settings.seed,         [this] { return go_on(); }},
      source_(std::move(source)),
      name_(model->source().name),
      input_(*model->source().images),
      images_{0, input_.channels, input_.height, input_.width},
      tap_(std::make_shared<RequestTap>(
          static_cast<size_t>(input_.channels) * static_cast<size_t>(input_.height * input_.width), kRing)) {
  told_.method = settings.adapt.method;
}

Result<std::unique_ptr<FollowedModel>> FollowedModel::create(const std::shared_ptr<ServedModel>& model,
                                                             std::shared_ptr<const Dataset> source,
                                                             const FollowedModelSettings& settings) {
  const ServedSource& served = model->source();
  LIMBER_TRY(check_followed(served));
  LIMBER_TRY(check_classes(served.graph, source->class_names(), settings.adapt.data));
  LIMBER_ASSIGN(const WeightSnapshot weights, served.params->snapshot());
  std::unique_ptr<FollowedModel> made(new FollowedModel(model, weights, std::move(source), settings));
  if (!needs_source_images(settings.adapt.method)) LIMBER_TRY(made->choose_strategy({}));
  made->tell("starting");
  return made;
}

FollowedModel::~FollowedModel() {
  if (const auto model = model_.lock()) model->use_tap(nullptr);
}

Status FollowedModel::choose_strategy(const Tensor& source) {
  auto made = make_strategy(settings_.adapt.method, adapted_, settings_.adapt.settings, source);
  if (!made.ok()) return made.status().in(name_);
  strategy_ = *std::move(made);
  return {};
}

bool FollowedModel::go_on() {
  stopped_ = stopped_ || (settings_.go_on && !settings_.go_on());
  return !stopped_;
}

Result<bool> FollowedModel::study() {
  tell("looking at the images of the source");
  const ThreadScope threads(settings_.threads);
  LIMBER_ASSIGN(auto study, adapt::study_source(adapted_, source_, {.input = input_, .workers = 0},
                                                [&] { return !go_on(); }));
  if (!study) return false;
  told_.source_accuracy = study->estimator.source_accuracy();
  if (strategy_ == nullptr) LIMBER_TRY(choose_strategy(study->images));
  LIMBER_ASSIGN(follower_, adapt::Follower::create(adapted_, std::move(strategy_), *std::move(study),
                                                   {.window = settings_.adapt.window}));
  published_ = follower_->net();
  tell("following");
  if (const auto model = model_.lock()) model->use_tap(tap_);
  return true;
}

double FollowedModel::learning_cost() const {
  constexpr double kPasses = 10;  // over a window's images, of a method that was not seen at work yet
  if (told_.learning_cpu_s > 0) return told_.learning_cpu_s;
  return kPasses * cost() * static_cast<double>(settings_.adapt.window);
}

Result<bool> FollowedModel::step(bool may_learn) {
  const ThreadScope threads(settings_.threads);
  const double before = thread_cpu_seconds();
  bool worked = may_learn && follower_->due();
  if (worked) {
    LIMBER_TRY(follower_->learn());
    if (!stopped_) told_.learning_cpu_s = (thread_cpu_seconds() - before) * settings_.threads;
  } else {
    LIMBER_ASSIGN(worked, look());
  }
  if (!worked || stopped_) return false;  // a training that was stopped has not failed
  LIMBER_TRY(publish());
  note_events();
  told_.cpu_seconds += (thread_cpu_seconds() - before) * settings_.threads;
  tell("following");
  return true;
}

Result<bool> FollowedModel::look() {
  const size_t row = tap_->row_floats(), before = pixels_.size() / row;
  const size_t count = before + tap_->take(kTogether - before, pixels_);
  const double now = now_seconds();
  if (count == 0 || (count < kTogether && now - looked_at_ < kPatience_s)) return false;
  looked_at_ = now;
  images_[0] = static_cast<int64_t>(count);
  const Tensor images = Tensor::from(std::span<const float>(pixels_), images_);
  pixels_.clear();
  LIMBER_ASSIGN(const adapt::Look seen, follower_->see(images));
  told_.seen += count;
  add_point(seen, static_cast<int64_t>(count));
  return true;
}

void FollowedModel::add_point(const adapt::Look& look, int64_t images) {
  in_point_ += images;
  estimate_sum_ += look.accuracy * static_cast<double>(images);
  original_sum_ += look.estimate.accuracy * static_cast<double>(images);
  if (in_point_ < kPoint) return;
  const auto count = static_cast<double>(std::exchange(in_point_, 0));
  FollowedPoint point{unix_seconds(), follower_->domain(), known(std::exchange(estimate_sum_, 0) / count),
                      known(std::exchange(original_sum_, 0) / count)};
  told_.estimate = point.estimate;
  push_last(told_.points, point, Followed::kPoints);
}

void FollowedModel::note_events() {
  for (adapt::FollowEvent& event : follower_->take_events()) {
    FollowedEvent noted{unix_seconds(),          adapt::follow_name(event.kind), event.domain,
                        std::move(event.reason), known(event.estimate),          event.seconds};
    if (event.kind == adapt::FollowKind::kDomain) ++told_.domains;
    if (settings_.tell)
      settings_.tell({name_, noted.kind, noted.domain, noted.reason,
                      published_->original ? "" : published_->name, noted.estimate, noted.seconds},
                     noted.time);
    push_last(told_.events, std::move(noted), Followed::kEvents);
  }
}

Status FollowedModel::publish() {
  const auto net = follower_->net();
  if (net == published_) return {};
  published_ = net;
  const auto model = model_.lock();
  if (model == nullptr) return {};
  return model->use_net(
      net->original ? nullptr
                    : std::make_shared<const ServedNet>(ServedNet{net->name, net->graph, net->weights}));
}

void FollowedModel::tell(const std::string& state) {
  told_.state = state;
  if (follower_ != nullptr) {
    const adapt::FollowCounts& counts = follower_->counts();
    const auto number = [](int64_t count) { return static_cast<uint64_t>(count); };
    told_.net = published_->original ? "" : published_->name;
    told_.domain = follower_->domain();
    told_.bad = number(counts.faults.all());
    told_.adapted = number(counts.adapted);
    told_.rejected = number(counts.rejected);
    told_.rolled_back = number(counts.rolled_back);
    told_.returned = number(counts.returned);
    told_.failed = number(counts.failed);
    const RequestTap::Counts asked = tap_->counts();
    told_.passed = asked.offered - asked.copied + asked.overwritten;
  }
  if (const auto model = model_.lock()) model->tell_followed(std::make_shared<const Followed>(told_));
}

}  // namespace limber
