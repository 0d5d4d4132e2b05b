#include "serve/served_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/clock.h"
#include "base/median.h"
#include "base/priority.h"

namespace limber {
namespace {

// What is never chosen must not be what a late request is saved by either.
void leave_out(std::vector<ServedVariant>& variants, const ChoiceLimits& limits) {
  std::erase_if(variants, [&](const ServedVariant& one) {
    return one.point.accuracy < limits.accuracy || one.point.memory_bytes > limits.memory_bytes ||
           one.point.energy_j > limits.energy_j;
  });
}

double best_accuracy(const std::vector<ServedVariant>& variants) {
  double best = 0;
  for (const ServedVariant& one : variants) best = std::max(best, one.point.accuracy);
  return best;
}

// REQUIRES: all are judged by the same images
ChoiceLimits limits_for(const std::vector<ServedVariant>& variants, const ServeOptions& options) {
  ChoiceLimits limits = options.governor.limits;
  if (limits.accuracy == 0) limits.accuracy = options.least_share * best_accuracy(variants);
  return limits;
}

// How far from the limits the variants are.
Status nothing_left(const std::string& name, const std::vector<ServedVariant>& all,
                    const ChoiceLimits& limits) {
  if (all.empty()) return invalid("{}: has no variant at all; expected the original at least", name);
  ChoicePoint best = all.front().point;
  for (const ServedVariant& one : all) {
    best.accuracy = std::max(best.accuracy, one.point.accuracy);
    best.memory_bytes = std::min(best.memory_bytes, one.point.memory_bytes);
    best.energy_j = std::min(best.energy_j, one.point.energy_j);
  }
  if (best.accuracy == 0 && limits.accuracy > 0)
    return invalid(
        "{}: the accuracy of its variants is not known, and at least {} was asked for; judge them by "
        "'limber search', or ask for no accuracy",
        name, limits.accuracy);
  if (best.accuracy < limits.accuracy)
    return invalid("{}: its best variant has accuracy {:.4g}, and at least {} was asked for", name,
                   best.accuracy, limits.accuracy);
  if (best.memory_bytes > limits.memory_bytes)
    return invalid("{}: its smallest variant needs {} bytes, and at most {} were asked for", name,
                   best.memory_bytes, limits.memory_bytes);
  if (best.energy_j > limits.energy_j)
    return invalid("{}: its thriftiest variant needs {:.4g} J a run, and at most {} were asked for", name,
                   best.energy_j, limits.energy_j);
  return invalid("{}: no variant keeps the limits of accuracy, memory and energy together", name);
}

}  // namespace

ServedModel::ServedModel(ServedSource source, ServedSignature signature,
                         std::vector<std::shared_ptr<Backend>> backends, const ServeOptions& options,
                         const ChoiceLimits& limits, WeightSnapshot weights)
    : source_(std::move(source)),
      signature_(std::move(signature)),
      preprocessor_([&]() -> std::optional<Preprocessor> {
        if (!source_.images) return {};
        auto made = Preprocessor::make(*source_.images);
        return made.ok() ? std::optional(*std::move(made)) : std::nullopt;
      }()),
      backends_(std::move(backends)),
      options_(options),
      weights_(std::move(weights)),
      warm_(std::make_shared<WarmSet>()),
      limits_(limits),
      variants_(source_.variants),
      judged_by_(source_.judged_by) {}

Result<std::unique_ptr<ServedModel>> ServedModel::start(ServedSource source,
                                                        std::vector<std::shared_ptr<Backend>> backends,
                                                        const ServeOptions& options) {
  ServeOptions used = options;
  const std::vector<ServedVariant> all = source.variants;
  const ChoiceLimits limits = limits_for(all, options);
  leave_out(source.variants, limits);
  if (source.variants.empty()) return nothing_left(source.name, all, limits);
  LIMBER_ASSIGN(ServedSignature signature, signature_of(source.graph));
  if (source.images) LIMBER_TRY(check_preprocess(*source.images));
  LIMBER_ASSIGN(WeightSnapshot weights, source.params->snapshot());
  used.governor.workers = options.ready.workers;
  if (!signature.batched) used.ready.max_batch = 1;
  std::unique_ptr<ServedModel> model(new ServedModel(std::move(source), std::move(signature),
                                                     std::move(backends), used, limits, std::move(weights)));
  LIMBER_TRY(model->warm_up());
  model->start_threads();
  return model;
}

ServedModel::~ServedModel() {
  {
    const std::scoped_lock lock(control_mutex_, mutex_);
    stopping_ = over_ = true;
  }
  waiting_.notify_all();
  deploying_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ServedModel::start_threads() {
  for (int worker = 0; worker < options_.ready.workers; ++worker)
    threads_.emplace_back([this, worker] { work(worker); });
  threads_.emplace_back([this] { deploy(); });
}

// The one that is best on an idle machine, the quickest, then others at even distances in latency.
std::vector<int> ServedModel::warm_up_order() const {
  std::vector<int> by_latency(variants_.size());
  for (size_t i = 0; i < by_latency.size(); ++i) by_latency[i] = static_cast<int>(i);
  std::sort(by_latency.begin(), by_latency.end(), [&](int a, int b) {
    return variants_[static_cast<size_t>(a)].point.latency_s <
           variants_[static_cast<size_t>(b)].point.latency_s;
  });
  std::vector<int> order{governor_->active()};
  const auto add = [&](int number) {
    if (std::find(order.begin(), order.end(), number) == order.end()) order.push_back(number);
  };
  if (options_.governor.policy == Policy::kFixed) return order;
  add(by_latency.front());
  const size_t most = std::min(options_.warm_limit, by_latency.size());
  for (size_t i = 0; i < most; ++i) add(by_latency[i * by_latency.size() / most]);
  if (order.size() > std::max<size_t>(2, most)) order.resize(std::max<size_t>(2, most));
  return order;
}

void ServedModel::make_governor() {
  GovernorOptions options = options_.governor;
  options.limits = limits_;
  governor_ = std::make_unique<Governor>(make_index(), options);
  if (options_.governor.policy != Policy::kFixed) return;
  for (size_t i = 0; i < variants_.size(); ++i)
    if (variants_[i].name == "original") governor_->use(make_index(), static_cast<int>(i), limits_);
}

Status ServedModel::warm_up() {
  const std::lock_guard lock(control_mutex_);
  make_governor();
  std::vector<std::shared_ptr<const ReadyVariant>> ready;
  for (const int number : warm_up_order()) {
    if (!ready.empty() && options_.stop != nullptr && *options_.stop) break;
    LIMBER_ASSIGN(auto made, prepare(number));
    ready.push_back(std::move(made));
  }
  publish(ready, ready.front());
  // With times of this machine the choice may be another.
  make_governor();
  const auto set = warm();
  auto active = find(*set, governor_->active());
  if (active == nullptr) {
    LIMBER_ASSIGN(active, prepare(governor_->active()));
    ready.push_back(active);
  }
  publish(ready, active);
  return {};
}

Result<std::shared_ptr<const ReadyVariant>> ServedModel::make_ready(const ServedVariant& variant, int number,
                                                                    const ServedNet* net) const {
  if (net != nullptr && variant.name == "original")
    return ReadyVariant::make(*net, variant.name, number, nullptr, backends_, options_.ready);
  return ReadyVariant::make(source_, variant, number, weights_, backends_, options_.ready);
}

Result<std::shared_ptr<const ReadyVariant>> ServedModel::prepare(int number) const {
  auto made = make_ready(variants_[static_cast<size_t>(number)], number, net_.get());
  if (!made.ok())
    return made.status().in(
        fmt::format("{}: variant '{}'", source_.name, variants_[static_cast<size_t>(number)].name));
  return made;
}

// Times of variants that are warm are those of this process; the others' are brought to the same measure.
std::shared_ptr<const ChoiceIndex> ServedModel::make_index() const {
  const auto set = warm();
  std::vector<double> ratios;
  for (const auto& one : set->variants) {
    const ServedVariant& variant = variants_[static_cast<size_t>(one->number())];
    if (variant.timed && variant.point.latency_s > 0)
      ratios.push_back(one->seconds() / variant.point.latency_s);
  }
  const double ratio = ratios.empty() ? 1 : median(ratios);
  std::vector<ChoicePoint> points;
  for (size_t i = 0; i < variants_.size(); ++i) {
    points.push_back(variants_[i].point);
    const auto ready = find(*set, static_cast<int>(i));
    points.back().latency_s = ready != nullptr ? ready->seconds() : ratio * variants_[i].point.latency_s;
    // So much that everything else is better, whatever the weights.
    if (!variants_[i].usable) points.back() = {.latency_s = 1e9, .energy_j = 1e9};
  }
  return std::make_shared<const ChoiceIndex>(std::move(points), options_.weights);
}

std::shared_ptr<const ServedModel::WarmSet> ServedModel::warm() const {
  const std::lock_guard lock(mutex_);
  return warm_;
}

std::shared_ptr<const ReadyVariant> ServedModel::find(const WarmSet& set, int number) {
  for (const auto& one : set.variants)
    if (one->number() == number) return one;
  return nullptr;
}

void ServedModel::publish(std::vector<std::shared_ptr<const ReadyVariant>> variants,
                          std::shared_ptr<const ReadyVariant> active) {
  std::sort(variants.begin(), variants.end(),
            [](const auto& a, const auto& b) { return a->seconds() < b->seconds(); });
  auto next = std::make_shared<WarmSet>(WarmSet{std::move(variants), std::move(active)});
  std::shared_ptr<const WarmSet> before = std::move(next);
  {
    const std::lock_guard lock(mutex_);
    std::swap(warm_, before);
  }
  // What goes, goes here and not under the mutex that requests need.
}

// Beyond the limit the one goes that was active longest ago; never the active one nor the quickest, which
// saves requests that are late.
void ServedModel::keep_warm(const std::shared_ptr<const ReadyVariant>& made) {
  const auto set = warm();
  auto variants = set->variants;
  variants.push_back(made);
  while (variants.size() > std::max<size_t>(2, options_.warm_limit)) {
    auto oldest = variants.end();
    for (auto at = variants.begin(); at != variants.end(); ++at) {
      if (*at == made || *at == set->active || at == variants.begin()) continue;
      const auto used = [&](const auto& one) {
        return used_at_.contains(one->number()) ? used_at_.at(one->number()) : -1;
      };
      if (oldest == variants.end() || used(*at) < used(*oldest)) oldest = at;
    }
    if (oldest == variants.end()) break;
    variants.erase(oldest);
  }
  publish(std::move(variants), set->active);
}

void ServedModel::switch_to(const std::shared_ptr<const ReadyVariant>& to, const std::string& reason,
                            double asked_at) {
  const auto set = warm();
  if (set->active == to) return;
  const std::string from = set->active->name();
  used_at_[to->number()] = ++switches_;
  switched_at_ = now_seconds();
  publish(set->variants, to);
  stats_->switched({unix_seconds(), from, to->name(), reason}, now_seconds() - asked_at);
}

void ServedModel::activate(const Decision& decision, double now) {
  const auto set = warm();
  if (const auto ready = find(*set, decision.variant); ready != nullptr) {
    to_deploy_.reset();
    return switch_to(ready, decision.reason, now);
  }
  to_deploy_ = decision;
  asked_at_ = now;
  deploying_.notify_all();
  // Until it is compiled: when time presses, the slowest that is ready and quick enough.
  const double wanted = variants_[static_cast<size_t>(decision.variant)].point.latency_s;
  if (wanted >= variants_[static_cast<size_t>(set->active->number())].point.latency_s) return;
  std::shared_ptr<const ReadyVariant> instead = set->variants.front();
  for (const auto& one : set->variants)
    if (variants_[static_cast<size_t>(one->number())].point.latency_s <= wanted) instead = one;
  switch_to(instead, decision.reason + "; until a better one is compiled", now);
}

void ServedModel::deploy() {
  run_in_background();
  std::unique_lock lock(control_mutex_);
  while (true) {
    deploying_.wait(lock, [&] { return over_ || net_to_use_ != nullptr || to_deploy_.has_value(); });
    if (over_) return;
    if (net_to_use_ != nullptr) {
      change_net(lock);
      continue;
    }
    const Decision wanted = *std::exchange(to_deploy_, std::nullopt);
    const double asked_at = asked_at_;
    const ServedVariant variant = variants_[static_cast<size_t>(wanted.variant)];
    const auto net = net_;
    lock.unlock();
    auto made = make_ready(variant, wanted.variant, net.get());
    lock.lock();
    if (over_) return;
    if (!made.ok()) {
      problem_ = fmt::format("variant '{}' cannot be used: {}", variant.name, made.status().message());
      variants_[static_cast<size_t>(wanted.variant)].usable = false;
      governor_->use(make_index(), warm()->active->number(), limits_);
      continue;
    }
    keep_warm(*made);
    governor_->use(make_index(), governor_->active(), limits_);
    // What stands in for it has just been switched to: that is a switch, too.
    const double rest = switched_at_ + options_.governor.dwell_s - now_seconds();
    if (rest > 0)
      deploying_.wait_for(lock, std::chrono::duration<double>(rest),
                          [&] { return over_ || to_deploy_.has_value(); });
    if (over_) return;
    if (governor_->active() == wanted.variant) switch_to(*made, wanted.reason, asked_at);
  }
}

void ServedModel::tick(const Surroundings& around) {
  const Slowdown slowdown = meter_.read(around.now).within(options_.governor.budget_s);
  double overhead = 0, size = 1;
  std::string active;
  {
    const std::lock_guard lock(mutex_);
    slowdown_ = slowdown;
    overhead = overhead_s_;
    size = size_;
    active = warm_->active->name();
  }
  stats_->tick(around.now, unix_seconds(), around.load, around.expected_load, active);
  const std::lock_guard lock(control_mutex_);
  // A tenth at least: where decoding takes all of the budget, the quickest variant is the answer, not none.
  if (std::isfinite(options_.governor.budget_s))
    governor_->set_budget(std::max(0.1 * options_.governor.budget_s, options_.governor.budget_s - overhead));
  const Situation situation{around.now, slowdown, stats_->rate(), size, around.load, around.expected_load};
  const Decision decision = governor_->decide(situation);
  if (decision.changed) activate(decision, around.now);
  if (decision.nothing_fits && on_nothing_fits_) {
    const double room = (governor_->options().budget_s - slowdown.stall_s) / std::max(1.0, slowdown.slowdown);
    const double original_s = size * slowest_s();
    if (room > 0 && original_s > 0) on_nothing_fits_(std::min(1.0, room / original_s));
  }
}

Status ServedModel::force(const std::string& variant) {
  const std::lock_guard lock(control_mutex_);
  const auto set = warm();
  for (const auto& one : set->variants) {
    if (one->name() != variant) continue;
    switch_to(one, "asked for", now_seconds());
    governor_->use(make_index(), one->number(), limits_);
    return {};
  }
  return error(Code::kNotFound, "variant '{}' is not warm", variant);
}

// The original where it is one of them: what shares of latency are of.
double ServedModel::slowest_s() const {
  double slowest = 0;
  for (size_t i = 0; i < variants_.size(); ++i) {
    if (!variants_[i].usable) continue;
    const double seconds = governor_->index().point(static_cast<int>(i)).latency_s;
    if (variants_[i].name == "original") return seconds;
    slowest = std::max(slowest, seconds);
  }
  return slowest;
}

Status ServedModel::use_variants(std::vector<ServedVariant> variants, const std::string& judged_by) {
  const std::lock_guard lock(control_mutex_);
  for (const ServedVariant& variant : variants)
    if (source_.elastic != nullptr) LIMBER_TRY(check_variant(*source_.elastic, variant.variant));
  std::vector<ServedVariant> all = variants;
  if (judged_by == judged_by_)
    for (const ServedVariant& one : variants_)
      if (one.usable) all.push_back(one);
  const ChoiceLimits limits = limits_for(all, options_);
  leave_out(variants, limits);
  if (variants.empty()) return {};
  limits_ = limits;
  for (ServedVariant& one : variants_)
    one.usable &= judged_by == judged_by_ && one.point.accuracy >= limits.accuracy;
  judged_by_ = judged_by;
  for (ServedVariant& variant : variants) {
    const auto known = std::find_if(variants_.begin(), variants_.end(),
                                    [&](const ServedVariant& one) { return one.name == variant.name; });
    if (known == variants_.end()) {
      variants_.push_back(std::move(variant));
    } else {
      known->point.accuracy = variant.point.accuracy;
      known->usable = true;
    }
  }
  governor_->use(make_index(), governor_->active(), limits_);
  return {};
}

void ServedModel::on_nothing_fits(std::function<void(double)> call) {
  const std::lock_guard lock(control_mutex_);
  on_nothing_fits_ = std::move(call);
}

ModelMetadata ServedModel::metadata() const {
  ModelMetadata metadata{.name = source_.name, .versions = {source_.version}, .classes = source_.classes};
  metadata.platform = source_.elastic != nullptr ? "limber_elastic" : "limber_onnx";
  metadata.takes_images = preprocessor_.has_value();
  const auto describe = [&](const std::vector<ServedSignature::Port>& ports, std::vector<TensorSpec>& to) {
    for (const ServedSignature::Port& port : ports) {
      to.push_back({port.name, port.type.dtype, port.type.shape.dims()});
      if (signature_.batched) to.back().shape[0] = -1;
    }
  };
  describe(signature_.inputs, metadata.inputs);
  describe(signature_.outputs, metadata.outputs);
  return metadata;
}

ServedModel::View ServedModel::view() const {
  const std::scoped_lock lock(control_mutex_, mutex_);
  View view{.active = warm_->active->name(),
            .net = net_ != nullptr ? net_->name : "",
            .estimated_s = warm_->active->seconds()};
  view.accuracy = variants_[static_cast<size_t>(warm_->active->number())].point.accuracy;
  view.budget_s = options_.governor.budget_s;
  view.least_accuracy = limits_.accuracy;
  view.slowdown = slowdown_.slowdown;
  view.queue = queue_.size();
  view.queue_limit = options_.queue_limit;
  view.policy = options_.governor.policy;
  view.problem = problem_;
  for (size_t i = 0; i < variants_.size(); ++i) {
    const auto ready = find(*warm_, static_cast<int>(i));
    View::Entry entry{variants_[i].name, variants_[i].point, ready != nullptr, ready == warm_->active};
    if (ready != nullptr) {
      entry.point.latency_s = ready->seconds();
      view.warm_bytes += ready->memory_bytes();
    }
    view.pool.push_back(std::move(entry));
  }
  return view;
}

}  // namespace limber
