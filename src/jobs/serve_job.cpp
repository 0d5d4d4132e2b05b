#include "jobs/serve_job.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/parallel.h"
#include "device/linux_sensor.h"
#include "jobs/serve_search.h"
#include "jobs/served_folder.h"
#include "jobs/version.h"
#include "record/record_file.h"
#include "record/serve_records.h"

namespace limber {
namespace {

int worker_count(const ServeJobOptions& job) {
  if (job.workers > 0) return job.workers;
  return std::max(1, available_cores() / thread_count({.threads = job.threads}));
}

ModelServerOptions server_options(const ServeJobOptions& job) {
  ModelServerOptions options{.model = job.serving, .version = version_number()};
  options.model.ready.workers = worker_count(job);
  options.model.ready.threads = thread_count({.threads = job.threads});
  return options;
}

ServedFolderOptions folder_options(const ServeJobOptions& job) {
  ServedFolderOptions options;
  static_cast<EngineOptions&>(options) = job;
  options.path = job.model;
  options.name = job.name;
  options.image = job.image;
  options.exits = job.exits;
  return options;
}

Status load_all(const ServedFolder& folder, ModelServer& server, const JobControl& control) {
  const std::vector<std::string> names = folder.names();
  for (size_t i = 0; i < names.size(); ++i) {
    if (control.stop_asked()) return {};
    control.progress({"getting ready", static_cast<double>(i) / static_cast<double>(names.size()), names[i]});
    const ServeStatus status = server.load(names[i]);
    if (status.ok()) continue;
    // Of several the others serve.
    if (folder.single()) return error(Code::kInvalidArgument, "{}", status.message);
    control.note(NoteKind::kWarning, fmt::format("{} is not served: {}", names[i], status.message));
  }
  if (server.models().empty() && !control.stop_asked())
    return error(Code::kNotFound, "no model could be loaded");
  for (const auto& [name, model] : server.models())
    if (!model->note().empty()) control.note(NoteKind::kNote, model->note());
  return {};
}

Status finish_record(RecordWriter& writer, const ServeOutcome& outcome) {
  for (const ServeOutcome::Served& one : outcome.models) {
    const auto count = [](uint64_t value) { return static_cast<int64_t>(value); };
    LIMBER_TRY(writer.add(ServedRecord{one.model, one.version, count(one.totals.requests),
                                       count(one.totals.answered), count(one.totals.all_refused()),
                                       count(one.totals.late), count(one.totals.rescued),
                                       count(one.totals.switches), outcome.seconds}));
  }
  return writer.sync();
}

}  // namespace

Status check(const ServeJobOptions& job) {
  if (job.model.empty()) return invalid("which model? None is named");
  const ServeOptions& serving = job.serving;
  if (!(serving.governor.budget_s > 0))
    return invalid("the latency is {} s; expected more than 0", serving.governor.budget_s);
  if (!(serving.governor.dwell_s >= 0))
    return invalid("dwell_s is {}; expected 0 or more", serving.governor.dwell_s);
  if (job.workers < 0 || job.workers > 256) return invalid("workers is {}; expected 0 to 256", job.workers);
  if (serving.queue_limit < 1) return invalid("queue_limit is 0; expected 1 or more");
  if (serving.warm_limit < 1) return invalid("warm_limit is 0; expected 1 or more");
  if (serving.ready.max_batch < 1)
    return invalid("max_batch is {}; expected 1 or more", serving.ready.max_batch);
  for (const double weight : {serving.weights.latency, serving.weights.energy, serving.weights.error})
    if (!(weight >= 0)) return invalid("a weight is {}; expected 0 or more", weight);
  LIMBER_TRY(check(job.http));
  return job.with_grpc ? check(job.grpc) : Status();
}

Result<ServeOutcome> run_serve(const ServeJobOptions& job, const JobControl& control,
                               const std::function<void(const Serving&)>& on_ready) {
  LIMBER_TRY(check(job));
  const double start = now_seconds();
  LIMBER_ASSIGN(const auto folder, ServedFolder::open(folder_options(job)));
  std::optional<RecordWriter> record;
  if (!job.record.empty()) {
    LIMBER_ASSIGN(record, RecordWriter::open(job.record));
  }
  ModelServer server(*folder, std::make_unique<LinuxSensor>(), server_options(job));
  server.on_switch([&](const std::string& model, const SwitchEvent& event) {
    // A full disk must not stop the server; what is missing is seen in the file.
    if (record) (void)record->add(SwitchRecord{model, event.from, event.to, event.reason});
  });

  // Liveness answers at once; readiness when the models are warm.
  LIMBER_ASSIGN(const auto http, HttpServer::start(job.http, server));
  std::unique_ptr<GrpcServer> grpc;
  if (job.with_grpc) {
    LIMBER_ASSIGN(grpc, GrpcServer::start(job.grpc, server));
  }
  LIMBER_TRY(load_all(*folder, server, control));
  std::optional<BackgroundSearch> search;
  if (!job.search.data.empty()) search.emplace(job, *folder, server, control);
  if (on_ready && !control.stop_asked()) {
    Serving serving{
        http->port(), http->metrics_port(), grpc != nullptr ? grpc->port() : 0, {}, now_seconds() - start};
    for (const auto& [name, model] : server.models()) serving.models.push_back(name);
    on_ready(serving);
  }
  while (!control.stop_asked()) std::this_thread::sleep_for(std::chrono::milliseconds(100));

  search.reset();
  http->stop(job.grace_s);
  if (grpc != nullptr) grpc->stop(job.grace_s);
  ServeOutcome outcome{.models = {}, .seconds = now_seconds() - start};
  for (const auto& [name, model] : server.models())
    outcome.models.push_back({name, model->version(), model->stats().totals()});
  server.drain();
  if (record) LIMBER_TRY(finish_record(*record, outcome));
  return outcome;
}

}  // namespace limber
