#include "serve/model_server.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "device/load_index.h"

namespace limber {
namespace {

std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

ForecastOptions forecast_options(const ModelServerOptions& options) {
  ForecastOptions forecast;
  forecast.horizon = std::max(1, static_cast<int>(options.forecast_s / options.tick_s + 0.5));
  return forecast;
}

}  // namespace

ModelServer::ModelServer(const ModelRepository& repository, std::unique_ptr<DeviceSensor> sensor,
                         const ModelServerOptions& options)
    : repository_(repository),
      options_(options),
      started_(now_seconds()),
      sensor_(std::move(sensor)),
      forecast_(forecast_options(options)),
      control_([this] { control(); }) {}

ModelServer::~ModelServer() {
  drain();
  {
    const std::lock_guard lock(stop_mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  control_.join();
}

ServerMetadata ModelServer::server() const {
  return {.version = options_.version, .extensions = {"binary_tensor_data", "model_repository"}};
}

// What is loaded later, or could not be loaded, does not take the others away: who wants it asks for it by
// name.
bool ModelServer::ready() const {
  const std::shared_lock lock(mutex_);
  bool any = false;
  for (const auto& [name, state] : models_) {
    if (state.announced) return false;
    any |= state.model != nullptr;
  }
  return any && !draining_;
}

void ModelServer::announce(const std::vector<std::string>& models) {
  const std::unique_lock lock(mutex_);
  for (const std::string& model : models) models_[model].loading = models_[model].announced = true;
}

std::shared_ptr<ServedModel> ModelServer::find(std::string_view model, std::string_view version,
                                               ServeStatus& status) const {
  const std::shared_lock lock(mutex_);
  if (draining_) {
    status = {Refusal::kUnavailable, "the server is shutting down", 1};
    return nullptr;
  }
  const auto at = models_.find(model);
  if (at == models_.end()) {
    std::vector<std::string> names;
    for (const auto& [name, state] : models_) names.push_back(name);
    status = {Refusal::kNotFound, fmt::format("no model '{}'; there are: {}", model, names_text(names))};
    return nullptr;
  }
  const State& state = at->second;
  if (state.model == nullptr) {
    status = {Refusal::kUnavailable,
              state.loading ? fmt::format("model '{}' is being loaded", model)
                            : fmt::format("model '{}' is not loaded: {}", model, state.reason),
              1};
    return nullptr;
  }
  if (!version.empty() && version != state.model->version()) {
    status = {Refusal::kNotFound, fmt::format("model '{}' has no version '{}'; there is: {}", model, version,
                                              state.model->version())};
    return nullptr;
  }
  return state.model;
}

ServeStatus ModelServer::model_ready(std::string_view model, std::string_view version) const {
  ServeStatus status;
  (void)find(model, version, status);
  return status;
}

ServeStatus ModelServer::metadata(std::string_view model, std::string_view version, ModelMetadata& to) const {
  ServeStatus status;
  if (const auto found = find(model, version, status)) to = found->metadata();
  return status;
}

void ModelServer::infer(InferRequest request, InferDone done) {
  ServeStatus status;
  const auto model = find(request.model, request.version, status);
  if (model != nullptr) return model->infer(std::move(request), std::move(done));
  InferResponse response{
      .status = std::move(status), .model = request.model, .version = request.version, .id = request.id};
  done(std::move(response));
}

std::vector<RepositoryEntry> ModelServer::index(bool ready_only) const {
  std::vector<RepositoryEntry> entries;
  const std::vector<std::string> known = repository_.names();
  const std::shared_lock lock(mutex_);
  for (const auto& [name, state] : models_) {
    if (ready_only && state.model == nullptr) continue;
    entries.push_back({name, state.model != nullptr ? state.model->version() : "",
                       state.loading            ? "LOADING"
                       : state.model != nullptr ? "READY"
                                                : "UNAVAILABLE",
                       state.reason});
  }
  for (const std::string& name : known)
    if (!ready_only && !models_.contains(name)) entries.push_back({name, "", "UNAVAILABLE", "unloaded"});
  return entries;
}

ServeStatus ModelServer::load(const std::string& model) {
  const Status status = open(model);
  if (status.ok()) return {};
  const std::shared_lock lock(mutex_);
  if (draining_) return {Refusal::kUnavailable, status.message(), 1};
  return {status.code() == Code::kNotFound ? Refusal::kNotFound : Refusal::kBadRequest, status.message()};
}

Status ModelServer::open(const std::string& model) {
  const Status over = error(Code::kResourceExhausted, "the server is shutting down");
  const std::lock_guard one_at_a_time(loading_);
  {
    const std::unique_lock lock(mutex_);
    if (draining_) return over;
    models_[model].loading = true;
  }
  auto source = repository_.open(model);
  Status status = source.status();
  std::shared_ptr<ServedModel> made;
  if (status.ok()) {
    auto started = ServedModel::start(*std::move(source), repository_.backends(),
                                      repository_.serving(model, options_.model));
    status = started.status();
    if (started.ok()) made = *std::move(started);
  }
  const std::unique_lock lock(mutex_);
  if (draining_) return over;
  State& state = models_[model];
  state.loading = state.announced = false;
  state.reason = status.ok() ? "" : status.message();
  if (status.ok()) {
    if (state.model != nullptr) remember(model, *state.model);
    std::swap(state.model, made);  // what was there goes when its last request has left, below
  } else if (status.code() == Code::kNotFound && state.model == nullptr) {
    models_.erase(model);
  }
  return status;
}

ServeStatus ModelServer::unload(const std::string& model) {
  std::shared_ptr<ServedModel> gone;
  const std::unique_lock lock(mutex_);
  const auto at = models_.find(model);
  if (at == models_.end()) return {Refusal::kNotFound, fmt::format("no model '{}' is loaded", model)};
  gone = std::move(at->second.model);
  if (gone != nullptr) remember(model, *gone);
  models_.erase(at);
  return {};
}

ServeStatus ModelServer::force(const std::string& model, const std::string& variant) {
  ServeStatus status;
  const auto found = find(model, "", status);
  if (found == nullptr) return status;
  const Status forced = found->force(variant);
  return forced.ok() ? ServeStatus() : ServeStatus{Refusal::kNotFound, forced.message()};
}

void ModelServer::drain() {
  std::map<std::string, State, std::less<>> gone;
  {
    const std::unique_lock lock(mutex_);
    draining_ = true;
    for (const auto& [name, state] : models_)
      if (state.model != nullptr) remember(name, *state.model);
    std::swap(gone, models_);
  }
}

std::vector<std::pair<std::string, std::shared_ptr<ServedModel>>> ModelServer::models() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::pair<std::string, std::shared_ptr<ServedModel>>> all;
  for (const auto& [name, state] : models_)
    if (state.model != nullptr) all.emplace_back(name, state.model);
  return all;
}

// REQUIRES: mutex_ is held alone
void ModelServer::remember(const std::string& name, const ServedModel& model) {
  std::erase_if(leaving_, [&](const auto& one) {
    const auto& [model_name, version, stats] = one;
    if (stats.use_count() > 1) return false;
    past_[{model_name, version}] += stats->totals();
    return true;
  });
  leaving_.emplace_back(name, model.version(), model.kept_stats());
}

std::vector<ModelServer::Served> ModelServer::served() const {
  const std::shared_lock lock(mutex_);
  auto sums = past_;
  for (const auto& [name, version, stats] : leaving_) sums[{name, version}] += stats->totals();
  for (const auto& [name, state] : models_)
    if (state.model != nullptr) sums[{name, state.model->version()}] += state.model->stats().totals();
  std::vector<Served> all;
  for (const auto& [key, totals] : sums) all.push_back({key.first, key.second, totals});
  return all;
}

ModelServer::Sensed ModelServer::sensed() const {
  const std::lock_guard lock(sensed_mutex_);
  return sensed_;
}

// A forecast goes by ticks of equal length: at rest, where they are longer, it says what is.
void ModelServer::sense(bool resting) {
  auto sample = sensor_->sample();
  if (!sample.ok()) return;  // the last one stays
  const std::lock_guard lock(sensed_mutex_);
  const DeviceSample before = std::exchange(sensed_.sample, *std::move(sample));
  const DeviceSample& now = sensed_.sample;
  sensed_.load = load_index(now, LoadOf::kOthers).value_or(0);
  if (!resting) forecast_.add(sensed_.load);
  sensed_.forecast = resting ? sensed_.load : forecast_.predict(forecast_options(options_).horizon);
  const double passed = now.time_s - before.time_s;
  if (now.energy_j && before.energy_j && passed > 0)
    sensed_.power_w = (*now.energy_j - *before.energy_j) / passed;
}

void ModelServer::tell_switches(const std::string& name, const ServedModel& model) {
  if (!on_switch_) return;
  double& told = told_[name];
  for (const SwitchEvent& event : model.stats().switches()) {
    if (event.time <= told) continue;
    told = event.time;
    on_switch_(name, event);
  }
}

void ModelServer::control() {
  uint64_t requests = 0;
  double busy_at = now_seconds();
  bool resting = false;
  while (true) {
    sense(resting);
    const Sensed sensed = this->sensed();
    uint64_t count = 0;
    for (const auto& [name, model] : models()) {
      model->tick({now_seconds(), sensed.load, sensed.forecast});
      count += model->stats().totals().requests;
      tell_switches(name, *model);
    }
    if (std::exchange(requests, count) != count) busy_at = now_seconds();
    // Somebody who was here ten seconds ago may come back, and history goes on by seconds.
    resting = now_seconds() - busy_at >= 10;
    const double pause = resting ? options_.idle_tick_s : options_.tick_s;
    std::unique_lock lock(stop_mutex_);
    if (stopped_.wait_for(lock, std::chrono::duration<double>(pause), [&] { return stop_; })) return;
  }
}

}  // namespace limber
