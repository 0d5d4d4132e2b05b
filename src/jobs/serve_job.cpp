#include "jobs/serve_job.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/show.h"
#include "device/control_group.h"
#include "device/linux_sensor.h"
#include "jobs/output.h"
#include "jobs/serve_adapt.h"
#include "jobs/serve_apps.h"
#include "jobs/serve_search.h"
#include "jobs/served_folder.h"
#include "jobs/version.h"
#include "record/record_file.h"
#include "record/serve_records.h"

namespace limber {
namespace {

int worker_count(const ServeJobOptions& job) {
  if (job.workers > 0) return job.workers;
  // A container may have many cores to see and the time of few.
  const double quota = ControlGroup("").read(now_seconds()).cpu_limit.value_or(available_cores());
  const int cores = std::min(available_cores(), static_cast<int>(std::ceil(quota)));
  return std::max(1, cores / thread_count({.threads = job.threads}));
}

ModelServerOptions server_options(const ServeJobOptions& job, const JobControl& control) {
  ModelServerOptions options{.model = job.serving, .version = version_number()};
  options.model.ready.workers = worker_count(job);
  options.model.ready.threads = thread_count({.threads = job.threads});
  options.model.stop = control.stop;
  return options;
}

ServedFolderOptions folder_options(const ServeJobOptions& job) {
  ServedFolderOptions options;
  static_cast<EngineOptions&>(options) = job;
  options.path = job.model;
  options.name = job.name;
  options.image = job.image;
  options.exits = job.exits;
  options.open_batch = !job.adapt.method.empty();
  options.energy = job.serving.weights.energy > 0 || std::isfinite(job.serving.governor.limits.energy_j);
  return options;
}

// A budget that cannot be kept is told before requests find out.
void note_budget(const std::string& name, const ServedModel::View& view, const JobControl& control) {
  if (!std::isfinite(view.budget_s) || view.policy == Policy::kFixed) return;
  if (view.pool.size() == 1)
    control.note(NoteKind::kNote,
                 fmt::format("{}: there is one variant, so nothing can be switched to when {} is not kept; "
                             "'limber elastify' and 'limber search' make more",
                             name, show_seconds(view.budget_s)));
  double quickest = std::numeric_limits<double>::infinity();
  for (const auto& entry : view.pool)
    if (entry.warm) quickest = std::min(quickest, entry.point.latency_s);
  if (quickest > view.budget_s)
    control.note(NoteKind::kWarning,
                 fmt::format("{}: the quickest variant takes {} on an idle machine, more than the {} of a "
                             "request: every answer will be late",
                             name, show_seconds(quickest), show_seconds(view.budget_s)));
}

// `single`: there is one model, and what is wrong with it is what is wrong.
Status load_all(const ModelRepository& models_to_load, bool single, ModelServer& server,
                const JobControl& control) {
  const std::vector<std::string> names = models_to_load.names();
  for (size_t i = 0; i < names.size(); ++i) {
    if (control.stop_asked()) return {};
    control.progress({"getting ready", static_cast<double>(i) / static_cast<double>(names.size()), names[i]});
    const Status status = server.open(names[i]);
    if (status.ok()) continue;
    if (single) return status;
    // Of several the others serve.
    control.note(NoteKind::kWarning, fmt::format("{} is not served: {}", names[i], status.message()));
  }
  const auto models = server.models();
  if (models.empty() && !control.stop_asked())
    return error(Code::kNotFound, "none of the {} models could be loaded", names.size());
  for (const auto& [name, model] : models) {
    if (!model->note().empty()) control.note(NoteKind::kNote, model->note());
    note_budget(name, model->view(), control);
  }
  return {};
}

// What other threads have to say, kept until the thread that runs the job says it.
class KeptNotes final : public JobObserver {
 public:
  void on_note(NoteKind kind, const std::string& text) override {
    const std::lock_guard lock(mutex_);
    notes_.emplace_back(kind, text);
  }
  void say_to(const JobControl& control) {
    std::vector<std::pair<NoteKind, std::string>> notes;
    {
      const std::lock_guard lock(mutex_);
      std::swap(notes, notes_);
    }
    for (const auto& [kind, text] : notes) control.note(kind, text);
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<NoteKind, std::string>> notes_;
};

// Switches as they happen, in a file. Any thread may call.
class ServeLog {
 public:
  ServeLog(RecordWriter writer, KeptNotes& notes) : writer_(std::move(writer)), notes_(notes) {}

  // A full disk must not stop the server: it is said once, and what is missing is seen in the file.
  void add(const std::string& model, const SwitchEvent& event) {
    const std::lock_guard lock(mutex_);
    if (event.time <= told_[model]) return;
    told_[model] = event.time;
    write(record_line(SwitchRecord{model, event.from, event.to, event.reason}, event.time));
  }
  template <typename Record>
  void add(const Record& event, double time) {
    const std::lock_guard lock(mutex_);
    write(record_line(event, time));
  }

  Status finish(const ServeOutcome& outcome) {
    const std::lock_guard lock(mutex_);
    const auto count = [](uint64_t value) { return static_cast<int64_t>(value); };
    for (const ModelServer::Served& one : outcome.models) {
      LIMBER_TRY(writer_.add(ServedRecord{one.model, one.version, count(one.totals.requests),
                                          count(one.totals.answered), count(one.totals.all_refused()),
                                          count(one.totals.late), count(one.totals.rescued),
                                          count(one.totals.switches), outcome.seconds}));
    }
    return writer_.sync();
  }

 private:
  void write(const std::string& line) {
    const Status status = writer_.add_line(line);
    if (!status.ok() && !std::exchange(failed_, true))
      notes_.on_note(NoteKind::kWarning, fmt::format("events are not recorded: {}", status.message()));
  }

  std::mutex mutex_;
  RecordWriter writer_;
  KeptNotes& notes_;
  std::map<std::string, double> told_;  // model -> time of its last switch in the file
  bool failed_ = false;
};

Result<std::unique_ptr<ServeLog>> open_log(const ServeJobOptions& job, KeptNotes& notes) {
  if (job.record.empty()) return std::unique_ptr<ServeLog>();
  LIMBER_TRY(check_output_file(job.record, job.apps.empty() ? job.model : job.apps));
  LIMBER_ASSIGN(RecordWriter writer, RecordWriter::open(job.record));
  return std::make_unique<ServeLog>(std::move(writer), notes);
}

// Null where nothing is adapted.
Result<std::shared_ptr<const Dataset>> open_adapt_data(const ServeJobOptions& job,
                                                       const ServedFolder& folder) {
  if (job.adapt.method.empty()) return std::shared_ptr<const Dataset>();
  if (!folder.single())
    return invalid("{}: is a folder of models, and one model at a time adapts; serve it alone", job.model);
  return open_source_images(job.adapt, 0);
}

Result<std::unique_ptr<BackgroundAdapt>> start_adapting(const ServeJobOptions& job,
                                                        const ServedFolder& folder,
                                                        const std::shared_ptr<const Dataset>& source,
                                                        ModelServer& server, ServeLog* log,
                                                        const JobControl& control) {
  if (source == nullptr || control.stop_asked()) return std::unique_ptr<BackgroundAdapt>();
  BackgroundAdaptOptions options{folder.names()[0], job.adapt, job, source, {}, {}};
  options.share = std::make_shared<CoreShare>(job.adapt.share * available_cores());
  if (log != nullptr)
    options.tell = [log](const FollowedRecord& event, double time) { log->add(event, time); };
  return BackgroundAdapt::start(options, server, control);
}

std::vector<ServeOutcome::Adaptation> adaptations_in(const ModelServer& server) {
  std::vector<ServeOutcome::Adaptation> all;
  for (const auto& [name, model] : server.models())
    if (auto followed = model->followed()) all.push_back({name, std::move(followed)});
  return all;
}

// What is served: a model or a folder of models, or the applications of a file.
struct ServedWhat {
  std::unique_ptr<ServedFolder> folder;  // null: applications
  ServedApps apps;
  std::unique_ptr<AppModels> models;
  std::shared_ptr<const Dataset> source_images;  // null: nothing adapts, or applications have their own

  bool single() const { return folder != nullptr && folder->single(); }
  const ModelRepository& all() const {
    return folder != nullptr ? static_cast<const ModelRepository&>(*folder) : *models;
  }
};

Result<ServedWhat> open_served(const ServeJobOptions& job) {
  ServedWhat what;
  if (job.apps.empty()) {
    LIMBER_ASSIGN(what.folder, ServedFolder::open(folder_options(job)));
    LIMBER_ASSIGN(what.source_images, open_adapt_data(job, *what.folder));
    return what;
  }
  LIMBER_ASSIGN(what.apps, read_apps(job.apps));
  what.models = std::make_unique<AppModels>(job);
  for (const ServedApp& app : what.apps.apps) what.models->set(app);
  return what;
}

// What goes on beside requests.
struct Beside {
  std::optional<BackgroundSearch> search;
  std::unique_ptr<BackgroundAdapt> adapting;
  std::unique_ptr<RunningApps> apps;
};

Status start_beside(const ServeJobOptions& job, const ServedWhat& what, ModelServer& server, ServeLog* log,
                    const JobControl& control, Beside& beside) {
  if (control.stop_asked()) return {};
  if (what.folder != nullptr) {
    if (!job.search.data.empty()) beside.search.emplace(job, *what.folder, server, control);
    LIMBER_ASSIGN(beside.adapting,
                  start_adapting(job, *what.folder, what.source_images, server, log, control));
    return {};
  }
  RunningApps::Tell tell;
  if (log != nullptr)
    tell = {[log](const FollowedRecord& event, double time) { log->add(event, time); },
            [log](const TurnRecord& turn, double time) { log->add(turn, time); }};
  beside.apps = std::make_unique<RunningApps>(job, what.apps, *what.models, server, std::move(tell), control);
  return {};
}

// Together: neither takes requests while the other waits for its last ones.
void stop_both(HttpServer& http, GrpcServer* grpc, double grace_s) {
  std::thread other([&] {
    if (grpc != nullptr) grpc->stop(grace_s);
  });
  http.stop(grace_s);
  other.join();
}

// Switches that the file does not have yet.
void add_last_switches(const ModelServer& server, ServeLog& log) {
  for (const auto& [name, model] : server.models())
    for (const SwitchEvent& event : model->stats().switches()) log.add(name, event);
}

Status check_budget(const ServeOptions& serving) {
  const GovernorOptions& governor = serving.governor;
  if (!(governor.budget_s > 0)) return invalid("budget_s is {}; expected more than 0", governor.budget_s);
  if (!(governor.dwell_s >= 0) || !std::isfinite(governor.dwell_s))
    return invalid("dwell_s is {}; expected 0 or more", governor.dwell_s);
  if (!(governor.limits.accuracy >= 0 && governor.limits.accuracy <= 1))
    return invalid("the least accuracy is {}; expected a share, 0 to 1", governor.limits.accuracy);
  if (!(governor.limits.energy_j >= 0))
    return invalid("the most energy is {} J; expected 0 or more", governor.limits.energy_j);
  for (const double weight : {serving.weights.latency, serving.weights.energy, serving.weights.error})
    if (!(weight >= 0) || !std::isfinite(weight))
      return invalid("a weight is {}; expected 0 or more", weight);
  if (serving.queue_limit < 1) return invalid("queue_limit is 0; expected 1 or more");
  if (serving.warm_limit < 1) return invalid("warm_limit is 0; expected 1 or more");
  if (serving.ready.max_batch < 1 || serving.ready.max_batch > 256)
    return invalid("max_batch is {}; expected 1 to 256", serving.ready.max_batch);
  return {};
}

Status check_ports(const ServeJobOptions& job) {
  if (!job.with_grpc || job.grpc.port == 0) return {};
  if (job.grpc.port == job.http.port || job.grpc.port == job.http.metrics_port)
    return invalid("port {} is both for gRPC and for HTTP; expected two ports", job.grpc.port);
  return {};
}

// What the file of applications decides, of each by itself.
Status check_left_to_apps(const ServeJobOptions& job) {
  if (job.apps.empty()) return {};
  if (!(job.adapt.share > 0) || job.adapt.share > 1)
    return invalid("a share of {} of the cores; expected more than 0, at most 1", job.adapt.share);
  const ImageOptions& image = job.image;
  const std::pair<const char*, bool> decided[] = {
      {"model", !job.model.empty()},
      {"name", !job.name.empty()},
      {"latency (budget_s)", std::isfinite(job.serving.governor.budget_s)},
      {"how images are prepared",
       !image.size.empty() || image.crop > 0 || image.preset || image.normalisation},
      {"adapt", !job.adapt.method.empty()},
      {"adapt_data", !job.adapt.data.empty()}};
  for (const auto& [what, given] : decided)
    if (given) return invalid("{} is said in {}, of each application; leave it out here", what, job.apps);
  if (!job.search.data.empty() || job.exits)
    return invalid(
        "{}: applications are served without a search for variants and without exits; leave out "
        "the data, and exits",
        job.apps);
  return {};
}

}  // namespace

Status check(const ServeJobOptions& job) {
  if (job.model.empty() && job.apps.empty()) return invalid("which model? None is named");
  LIMBER_TRY(check_left_to_apps(job));
  LIMBER_TRY(check_budget(job.serving));
  if (job.workers < 0 || job.workers > 256) return invalid("workers is {}; expected 0 to 256", job.workers);
  if (job.threads < 0) return invalid("threads is {}; expected 0 or more", job.threads);
  if (!(job.grace_s >= 0) || !std::isfinite(job.grace_s))
    return invalid("grace_s is {}; expected 0 or more", job.grace_s);
  if (!job.search.data.empty()) LIMBER_TRY(check(job.search));
  if (!job.search.data.empty() && job.exits)
    return invalid("a search finds variants without exits; leave out the data, or exits");
  LIMBER_TRY(check(job.adapt));
  if (!job.adapt.method.empty() && job.exits)
    return invalid("a model that adapts answers without exits; leave out the method, or exits");
  LIMBER_TRY(check(job.access));
  LIMBER_TRY(check_left_to_access(job.http, job.grpc));
  LIMBER_TRY(check_ports(job));
  LIMBER_TRY(check(job.http));
  return job.with_grpc ? check(job.grpc) : Status();
}

Result<ServeOutcome> run_serve(const ServeJobOptions& job, const JobControl& control,
                               const std::function<void(const Serving&)>& on_ready) {
  LIMBER_TRY(check(job));
  const double start = now_seconds();
  HttpOptions http_options = job.http;
  GrpcOptions grpc_options = job.grpc;
  LIMBER_TRY(apply(job.access, http_options, grpc_options));
  if (const std::string warning = access_warning(job.access); !warning.empty())
    control.note(NoteKind::kWarning, warning);
  LIMBER_ASSIGN(const ServedWhat what, open_served(job));
  KeptNotes notes;  // outlives all that may say something
  LIMBER_ASSIGN(const auto log, open_log(job, notes));
  ModelServer server(what.all(), std::make_unique<LinuxSensor>(), server_options(job, control));
  if (log != nullptr)
    server.on_switch([&](const std::string& model, const SwitchEvent& event) { log->add(model, event); });
  server.announce(what.all().names());

  // Liveness answers at once; readiness when the models are warm.
  LIMBER_ASSIGN(const auto http, HttpServer::start(http_options, server));
  std::unique_ptr<GrpcServer> grpc;
  if (job.with_grpc) {
    LIMBER_ASSIGN(grpc, GrpcServer::start(grpc_options, server));
  }
  LIMBER_TRY(load_all(what.all(), what.single(), server, control));
  const JobControl behind{.observer = &notes, .stop = control.stop};
  Beside beside;
  LIMBER_TRY(start_beside(job, what, server, log.get(), behind, beside));
  if (on_ready && !control.stop_asked()) {
    Serving serving{
        http->port(), http->metrics_port(), grpc != nullptr ? grpc->port() : 0, {}, now_seconds() - start};
    for (const auto& [name, model] : server.models()) serving.models.push_back(name);
    on_ready(serving);
  }
  while (!control.stop_asked()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (beside.apps != nullptr) beside.apps->look();
    notes.say_to(control);
  }

  beside.search.reset();
  beside.adapting.reset();
  beside.apps.reset();
  stop_both(*http, grpc.get(), job.grace_s);
  if (log != nullptr) add_last_switches(server, *log);
  auto adaptations = adaptations_in(server);
  server.drain();
  const ServeOutcome outcome{server.served(), now_seconds() - start, std::move(adaptations)};
  notes.say_to(control);
  if (log != nullptr) LIMBER_TRY(log->finish(outcome));
  return outcome;
}

}  // namespace limber
