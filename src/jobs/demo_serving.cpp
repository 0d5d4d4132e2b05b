#include "jobs/demo_serving.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <semaphore>
#include <thread>

#include "base/clock.h"
#include "base/parallel.h"
#include "data/loader.h"
#include "device/linux_sensor.h"
#include "jobs/busy_neighbour.h"
#include "jobs/served_folder.h"
#include "serve/loadgen/schedule.h"
#include "serve/loadgen/summary.h"
#include "variant/elastic_folder.h"

namespace limber {
namespace {

constexpr double kMostRate = 5000;   // requests a second that one thread sends on time
constexpr int64_t kMostImages = 64;  // of a request
constexpr int kMoments = 80;         // that the plot has of the whole script

Status stopped() { return error(Code::kResourceExhausted, "stopped"); }

// A span of the script.
struct Span {
  bool busy = false;
  double from = 0, to = 0;
};

// What a request brings.
struct Images {
  Tensor pixels;
  Tensor labels;  // i64, one for each
};

// How many rows of scores have their greatest where the label says.
int count_right(const Tensor& scores, const Tensor& labels) {
  if (scores.type().dtype != DType::kF32) return 0;
  const auto values = scores.data<float>();
  const auto wanted = labels.data<int64_t>();
  const size_t classes = values.size() / wanted.size();
  int right = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto row = values.subspan(i * classes, classes);
    right += std::max_element(row.begin(), row.end()) - row.begin() == wanted[i] ? 1 : 0;
  }
  return right;
}

// A server of one model with what it was asked and answered. Requests are answered until it ends.
class Served {
 public:
  static Result<std::unique_ptr<Served>> start(const ModelRepository& models, const ServeOptions& options) {
    std::unique_ptr<Served> made(new Served(models, options));
    const std::string name = models.names()[0];
    const ServeStatus status = made->server_->load(name);
    if (!status.ok()) return error(Code::kInvalidArgument, "{}", status.message);
    made->model_ = made->server_->models()[0].second;
    const ModelMetadata metadata = made->model_->metadata();
    if (metadata.inputs.size() != 1 || metadata.outputs.empty())
      return invalid("{} is no classifier of images", name);
    made->request_.model = name;
    made->request_.inputs = {{.name = metadata.inputs[0].name}};
    made->request_.outputs = {metadata.outputs[0].name};
    return made;
  }

  // `done` is called from a thread of the server's.
  void ask(const Images& images, InferDone done) {
    InferRequest request = request_;
    request.inputs[0].tensor = images.pixels;
    server_->infer(std::move(request), std::move(done));
  }

  ServedModel::View view() const { return model_->view(); }

  // All that was asked is answered; the switches of the variant.
  std::vector<SwitchEvent> end() {
    server_.reset();
    std::vector<SwitchEvent> switches = model_->stats().switches();
    model_.reset();
    return switches;
  }

 private:
  Served(const ModelRepository& models, const ServeOptions& options)
      : server_(std::make_unique<ModelServer>(models, std::make_unique<LinuxSensor>(),
                                              ModelServerOptions{.model = options})) {}

  std::unique_ptr<ModelServer> server_;
  std::shared_ptr<ServedModel> model_;
  InferRequest request_;  // without its image
};

// Sends requests when they are due, and wakes the neighbour when it is its time.
class Sender {
 public:
  Sender(Served& served, const std::vector<Images>& images, const std::vector<double>& due,
         const JobControl& control)
      : served_(served), images_(images), control_(control), right_(due.size(), 0) {
    log_.records.resize(due.size());
    for (size_t i = 0; i < due.size(); ++i) log_.records[i].due = due[i];
  }

  // REQUIRES: the script begins at 0 and has no gaps; `neighbour` may be null when it is never busy
  Status run(const std::vector<Span>& script, BusyNeighbour* neighbour, std::string_view stage) {
    script_ = script;
    neighbour_ = neighbour;
    stage_ = stage;
    log_.started_unix = unix_seconds();
    start_ = now_seconds();
    for (size_t i = 0; i < log_.records.size(); ++i) {
      LIMBER_TRY(wait_until(log_.records[i].due));
      log_.records[i].sent = now_seconds() - start_;
      served_.ask(images_[i % images_.size()],
                  [this, i](const InferResponse& response) { answered(i, response); });
    }
    return wait_until(script_.back().to);
  }

  // REQUIRES (both): the server has ended
  const LoadLog& log() const { return log_; }
  const std::vector<int>& right() const { return right_; }  // images of each request

 private:
  Status wait_until(double due) {
    for (double now = now_seconds() - start_;; now = now_seconds() - start_) {
      keep_to_script(now);
      if (now >= due) return {};
      if (control_.stop_asked()) return stopped();
      constexpr double kLongest = 0.05;  // seconds of a pause: who asks to stop does not notice it
      const double pause = std::min({due - now, script_[span_].to - now, kLongest});
      std::this_thread::sleep_for(std::chrono::duration<double>(std::max(0.0, pause)));
    }
  }

  void keep_to_script(double now) {
    while (span_ + 1 < script_.size() && now >= script_[span_].to) {
      ++span_;
      if (neighbour_ != nullptr) script_[span_].busy ? neighbour_->wake() : neighbour_->sleep();
    }
    constexpr double kTellEvery = 0.2;  // seconds: as often as an eye follows
    if (now < told_ + kTellEvery) return;
    told_ = now;
    control_.progress({stage_, now / script_.back().to, script_[span_].busy ? "busy neighbour" : "idle"});
  }

  // Each record is written by one thread, and read when all of them have ended.
  void answered(size_t request, const InferResponse& response) {
    LoadRecord& record = log_.records[request];
    record.done = now_seconds() - start_;
    record.status = static_cast<int16_t>(http_status(response.status.refusal));
    if (!response.status.ok()) return;
    right_[request] = count_right(response.outputs[0].tensor, images_[request % images_.size()].labels);
    const std::lock_guard lock(mutex_);
    const auto at = std::find(log_.variants.begin(), log_.variants.end(), response.variant);
    record.variant = static_cast<int16_t>(at - log_.variants.begin());
    if (at == log_.variants.end()) log_.variants.push_back(response.variant);
  }

  Served& served_;
  const std::vector<Images>& images_;
  const JobControl& control_;
  std::vector<int> right_;
  std::vector<Span> script_;
  BusyNeighbour* neighbour_ = nullptr;
  std::string stage_;
  double start_ = 0, told_ = -1;
  size_t span_ = 0;
  std::mutex mutex_;  // of the variants' names
  LoadLog log_;
};

// `batch`: images of a request.
DemoPhase phase_of(const Sender& sender, const Span& span, double budget_s, int64_t batch) {
  const LoadLog& log = sender.log();
  LoadLog part{.variants = log.variants, .seconds = span.to - span.from};
  int64_t right = 0;
  for (size_t i = 0; i < log.records.size(); ++i) {
    if (log.records[i].due < span.from || log.records[i].due >= span.to) continue;
    part.records.push_back(log.records[i]);
    right += sender.right()[i];
  }
  const LoadSummary summary = summarize(part, budget_s);
  DemoPhase phase{.busy = span.busy, .from_s = span.from, .to_s = span.to, .requests = summary.requests};
  phase.answered = summary.good;
  phase.refused = summary.refused;
  phase.within = summary.requests - summary.missed;
  phase.p50_s = summary.latency.p50;
  phase.p95_s = summary.latency.p95;
  if (summary.good > 0)
    phase.accuracy = static_cast<double>(right) / static_cast<double>(summary.good * batch);
  for (size_t i = 0; i < summary.variants.size(); ++i) {
    if (summary.variants[i] > 0) phase.variants.emplace_back(log.variants[i], summary.variants[i]);
  }
  std::stable_sort(phase.variants.begin(), phase.variants.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return phase;
}

std::vector<DemoServed::Moment> moments_of(const LoadLog& log, double seconds) {
  std::vector<std::vector<double>> latencies(kMoments);
  const double width = seconds / kMoments;
  for (const LoadRecord& record : log.records) {
    const auto at = std::min<size_t>(kMoments - 1, static_cast<size_t>(record.due / width));
    latencies[at].push_back(record.good() ? record.latency() : LoadRecord::kNever);
  }
  std::vector<DemoServed::Moment> moments;
  for (size_t i = 0; i < latencies.size(); ++i) {
    if (latencies[i].empty()) continue;
    moments.push_back({(static_cast<double>(i) + 0.5) * width, summarize(std::move(latencies[i])).p90});
  }
  return moments;
}

void add_switches(const std::vector<SwitchEvent>& events, double started_unix, DemoServed& to) {
  for (const SwitchEvent& event : events) {
    const double at = event.time - started_unix;
    to.switches.push_back({at, event.from, event.to, event.reason});
    for (DemoPhase& phase : to.phases) phase.switches += at >= phase.from_s && at < phase.to_s ? 1 : 0;
  }
}

class Trial final : public ServingTrial {
 public:
  Trial(const ServingTrialOptions& options, const JobControl& control);
  Status prepare();

  Status find_budget() override;
  Status play(const std::string& name, Policy policy) override;
  const DemoServing& outcome() const override { return outcome_; }

 private:
  Result<int64_t> find_batch();
  Status read_images(int64_t batch);
  ServeOptions serving(Policy policy) const;
  Result<double> find_capacity();

  const ServingTrialOptions options_;
  const JobControl control_;
  std::unique_ptr<ServedFolder> folder_;
  std::vector<Images> images_;
  DemoServing outcome_;
};

Trial::Trial(const ServingTrialOptions& options, const JobControl& control)
    : options_(options), control_(control) {
  outcome_.slack = options.slack;
  outcome_.use = options.use;
  outcome_.workers =
      options.workers > 0 ? options.workers : std::min(ServingTrialOptions::kMostWorkers, available_cores());
}

Status Trial::prepare() {
  ServedFolderOptions folder;
  folder.path = options_.folder;
  folder.threads = 1;
  LIMBER_ASSIGN(folder_, ServedFolder::open(folder));
  LIMBER_ASSIGN(const int64_t batch, find_batch());
  return read_images(batch);
}

// Also says what may be chosen from.
Result<int64_t> Trial::find_batch() {
  LIMBER_ASSIGN(const auto served, Served::start(*folder_, serving(Policy::kFixed)));
  const ServedModel::View view = served->view();
  const double one_s = view.estimated_s;
  outcome_.least_accuracy = view.least_accuracy;
  outcome_.variants = static_cast<int>(view.pool.size());
  (void)served->end();
  const auto batch = static_cast<int64_t>(std::lround(options_.request_s / std::max(1e-6, one_s)));
  return std::clamp<int64_t>(batch, 1, std::min<int64_t>(kMostImages, options_.images));
}

Status Trial::read_images(int64_t batch) {
  LIMBER_ASSIGN(const ElasticInfo info, load_elastic_info(options_.folder));
  LIMBER_ASSIGN(std::shared_ptr<const Dataset> data,
                open_dataset(options_.data, {.split = Split::kTest, .expected = info.classes}));
  LoaderOptions how{
      .batch = batch, .seed = options_.seed, .workers = 0, .drop_last = true, .input = info.input};
  how.augment = false;
  LIMBER_ASSIGN(const auto loader, Loader::make(std::move(data), how));
  LIMBER_TRY(loader->start_epoch(0));
  outcome_.batch = batch;
  while (outcome_.images + batch <= options_.images) {
    if (control_.stop_asked()) return stopped();
    LIMBER_ASSIGN(Batch read, loader->next());
    if (read.size == 0) break;
    images_.push_back({std::move(read.images), std::move(read.labels)});
    outcome_.images += batch;
  }
  if (images_.empty()) return invalid("{}: holds fewer than {} images", options_.data, batch);
  return {};
}

ServeOptions Trial::serving(Policy policy) const {
  ServeOptions options;
  options.governor.policy = policy;
  if (outcome_.budget_s > 0) options.governor.budget_s = outcome_.budget_s;
  options.ready.workers = outcome_.workers;
  return options;
}

// Answers a second when there is always something to do.
Result<double> Trial::find_capacity() {
  LIMBER_ASSIGN(const auto served, Served::start(*folder_, serving(Policy::kFixed)));
  std::counting_semaphore<> free(2 * outcome_.workers);
  const double start = now_seconds(), end = start + options_.finding_s / 3;
  int64_t asked = 0;
  while (now_seconds() < end && !control_.stop_asked()) {
    if (!free.try_acquire_for(std::chrono::milliseconds(50))) continue;
    served->ask(images_[static_cast<size_t>(asked++) % images_.size()],
                [&](const InferResponse&) { free.release(); });
  }
  (void)served->end();
  if (control_.stop_asked()) return stopped();
  return static_cast<double>(asked) / (now_seconds() - start);
}

Status Trial::find_budget() {
  control_.progress({"finding a budget", -1, "the fixed model on the idle machine"});
  LIMBER_ASSIGN(const double capacity, find_capacity());
  outcome_.rate = std::min(kMostRate, options_.use * capacity);
  const double seconds = options_.finding_s * 2 / 3;
  const std::vector<LoadPhase> phases = {{outcome_.rate, seconds}};
  LIMBER_TRY(check(phases));
  const std::vector<double> due = due_times(phases, Arrivals::kPoisson, options_.seed + 1);
  LIMBER_ASSIGN(const auto served, Served::start(*folder_, serving(Policy::kFixed)));
  Sender sender(*served, images_, due, control_);
  const Status sent = sender.run({{false, 0, seconds}}, nullptr, "finding a budget");
  (void)served->end();
  LIMBER_TRY(sent);
  outcome_.idle_p90_s = summarize(sender.log(), 0).latency.p90;
  if (!(outcome_.idle_p90_s > 0)) return error(Code::kInternal, "no request was answered");
  outcome_.budget_s = options_.slack * outcome_.idle_p90_s;
  return {};
}

Status Trial::play(const std::string& name, Policy policy) {
  const double busy_at = options_.idle_s, idle_at = busy_at + options_.busy_s;
  const std::vector<Span> script = {
      {false, 0, busy_at}, {true, busy_at, idle_at}, {false, idle_at, idle_at + options_.idle_s}};
  // Before there is much to copy, and long before the first request: both take time.
  LIMBER_ASSIGN(BusyNeighbour neighbour, BusyNeighbour::make());
  outcome_.neighbours = static_cast<int>(neighbour.processes());
  const std::vector<LoadPhase> phases = {{outcome_.rate, script.back().to}};
  LIMBER_TRY(check(phases));
  const std::vector<double> due = due_times(phases, Arrivals::kPoisson, options_.seed);
  LIMBER_ASSIGN(const auto served, Served::start(*folder_, serving(policy)));
  Sender sender(*served, images_, due, control_);
  const Status sent = sender.run(script, &neighbour, "serving, " + name);
  const std::vector<SwitchEvent> switches = served->end();
  LIMBER_TRY(sent);
  DemoServed run{.name = name};
  for (const Span& span : script)
    run.phases.push_back(phase_of(sender, span, outcome_.budget_s, outcome_.batch));
  run.moments = moments_of(sender.log(), script.back().to);
  add_switches(switches, sender.log().started_unix, run);
  outcome_.runs.push_back(std::move(run));
  return {};
}

}  // namespace

Result<std::unique_ptr<ServingTrial>> ServingTrial::open(const ServingTrialOptions& options,
                                                         const JobControl& control) {
  auto made = std::make_unique<Trial>(options, control);
  LIMBER_TRY(made->prepare());
  return std::unique_ptr<ServingTrial>(std::move(made));
}

}  // namespace limber
