// What a server says about itself: the status that the live page shows, and metrics for Prometheus.
#include <cmath>
#include <functional>

#include "base/clock.h"
#include "base/memory.h"
#include "record/fields.h"
#include "serve/model_server.h"

namespace limber {
namespace {

std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// 0 is what a model has that nobody judged.
std::optional<double> judged(double accuracy) {
  return accuracy > 0 ? std::optional(accuracy) : std::nullopt;
}

struct PoolStatus {
  std::string variant;
  double latency_s = 0, accuracy = 0;
  bool warm = false, active = false;
  static void fields(auto& self, auto& field) {
    field("variant", self.variant);
    field("latency_s", self.latency_s);
    field("accuracy", judged(self.accuracy));
    field("warm", self.warm);
    field("active", self.active);
  }
};

struct SwitchStatus {
  SwitchEvent event;
  static void fields(auto& self, auto& field) {
    field("time", self.event.time);
    field("from", self.event.from);
    field("to", self.event.to);
    field("reason", self.event.reason);
  }
};

struct SecondStatus {
  ServedSecond second;
  static void fields(auto& self, auto& field) {
    field("time", self.second.time);
    field("p50_s", self.second.p50_s);
    field("p95_s", self.second.p95_s);
    field("rate", self.second.rate);
    field("load", self.second.load);
    field("forecast", self.second.forecast);
    field("variant", self.second.variant);
  }
};

struct FollowedEventStatus {
  FollowedEvent event;
  static void fields(auto& self, auto& field) {
    field("time", self.event.time);
    field("kind", self.event.kind);
    field("domain", self.event.domain);
    field("reason", self.event.reason);
    field("estimate", self.event.estimate);
    field("seconds", self.event.seconds);
  }
};

struct FollowedPointStatus {
  FollowedPoint point;
  static void fields(auto& self, auto& field) {
    field("time", self.point.time);
    field("domain", self.point.domain);
    field("estimate", self.point.estimate);
    field("original", self.point.original);
  }
};

struct FollowedStatus {
  std::shared_ptr<const Followed> followed;  // not null
  std::vector<FollowedEventStatus> events;
  std::vector<FollowedPointStatus> points;

  explicit FollowedStatus(std::shared_ptr<const Followed> from) : followed(std::move(from)) {
    for (const FollowedEvent& event : followed->events) events.push_back({event});
    for (const FollowedPoint& point : followed->points) points.push_back({point});
  }
  static void fields(auto& self, auto& field) {
    const Followed& followed = *self.followed;
    field("method", followed.method);
    field("state", followed.state);
    field("net", followed.net);
    field("domain", followed.domain);
    field("estimate", followed.estimate);
    field("source_accuracy", followed.source_accuracy);
    field("seen_total", followed.seen);
    field("bad_total", followed.bad);
    field("passed_total", followed.passed);
    field("domains_total", followed.domains);
    field("adapted_total", followed.adapted);
    field("rejected_total", followed.rejected);
    field("rolled_back_total", followed.rolled_back);
    field("returned_total", followed.returned);
    field("failed_total", followed.failed);
    field("cpu_seconds_total", followed.cpu_seconds);
    field("learning_cpu_s", followed.learning_cpu_s);
    field("events", self.events);
    field("points", self.points);
  }
};

struct TurnStatus {
  std::shared_ptr<const Scheduled> turn;  // not null
  static void fields(auto& self, auto& field) {
    const Scheduled& turn = *self.turn;
    field("importance", turn.importance);
    field("minimum_accuracy", turn.minimum_accuracy);
    field("learns", turn.learns);
    field("why", turn.why);
    field("cores", turn.cores);
    field("start_s", turn.start_s);
    field("end_s", turn.end_s);
    field("before", turn.before);
    field("after", turn.after);
  }
};

struct ModelStatus {
  std::string name, version;
  bool ready = true;
  ServedModel::View view;
  ServeStats::Totals totals;
  ServeStats::Window window;
  std::vector<PoolStatus> pool;
  std::vector<SwitchStatus> switches;
  std::vector<SecondStatus> history;
  std::optional<FollowedStatus> adaptation;
  std::optional<TurnStatus> turn;

  static void fields(auto& self, auto& field) {
    field("name", self.name);
    field("version", self.version);
    field("ready", self.ready);
    field("budget_s", finite(self.view.budget_s));
    field("variant", self.view.active);
    field("accuracy", judged(self.view.accuracy));
    field("estimated_s", self.view.estimated_s);
    field("correction", self.view.slowdown);
    field("requests_total", self.totals.requests);
    field("refused_total", self.totals.all_refused());
    field("late_total", self.totals.late);
    field("rescued_total", self.totals.rescued);
    field("rate_per_s", self.window.rate);
    field("p50_s", self.window.p50_s);
    field("p95_s", self.window.p95_s);
    field("p99_s", self.window.p99_s);
    field("miss_share", self.window.miss_share);
    field("queue", static_cast<uint64_t>(self.view.queue));
    field("queue_limit", static_cast<uint64_t>(self.view.queue_limit));
    if (!self.view.problem.empty()) field("problem", self.view.problem);
    field("pool", self.pool);
    field("switches", self.switches);
    field("history", self.history);
    field("adaptation", self.adaptation);
    field("turn", self.turn);
  }
};

struct DeviceStatus {
  ModelServer::Sensed sensed;
  static void fields(auto& self, auto& field) {
    const DeviceSample& sample = self.sensed.sample;
    field("load", self.sensed.load);
    field("forecast", self.sensed.forecast);
    field("cpu_others", sample.cpu_others);
    field("cpu", sample.cpu_busy);
    field("memory", sample.memory_used);
    field("pressure", sample.cpu_pressure);
    field("temperature_c", sample.temperature_c);
    if (self.sensed.power_w > 0) field("power_w", self.sensed.power_w);
  }
};

struct ServerStatus {
  double time = 0, uptime_s = 0;
  std::string version, policy;
  DeviceStatus device;
  std::vector<ModelStatus> models;
  static void fields(auto& self, auto& field) {
    field("time", self.time);
    field("uptime_s", self.uptime_s);
    field("version", self.version);
    field("policy", self.policy);
    field("device", self.device);
    field("models", self.models);
  }
};

ModelStatus status_of(const std::string& name, const ServedModel& model) {
  ModelStatus status{.name = name, .version = model.version(), .view = model.view()};
  status.totals = model.stats().totals();
  status.window = model.stats().window();
  for (const auto& entry : status.view.pool)
    status.pool.push_back(
        {entry.name, entry.point.latency_s, entry.point.accuracy, entry.warm, entry.active});
  for (SwitchEvent& event : model.stats().switches()) status.switches.push_back({std::move(event)});
  for (ServedSecond& second : model.stats().history()) status.history.push_back({std::move(second)});
  if (auto followed = model.followed()) status.adaptation.emplace(std::move(followed));
  if (auto turn = model.scheduled()) status.turn.emplace(TurnStatus{std::move(turn)});
  return status;
}

// Prometheus' text format: backslash, quote and line break are escaped in values of labels.
std::string label(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return escaped;
}

class Exposition {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void add(std::string_view name, const std::string& labels, double value) {
    text_ += fmt::format("{}{{{}}} {}\n", name, labels, value);
  }
  void add(std::string_view name, double value) { text_ += fmt::format("{} {}\n", name, value); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

using Models = std::vector<ModelStatus>;

std::string labels_of(const ModelStatus& model) {
  return fmt::format("model=\"{}\",version=\"{}\"", label(model.name), label(model.version));
}

void write_requests(Exposition& out, const Models& models) {
  out.family("limber_inference_requests_total", "counter", "Requests, by what became of them.");
  for (const ModelStatus& model : models) {
    out.add("limber_inference_requests_total", labels_of(model) + ",code=\"ok\"",
            static_cast<double>(model.totals.answered));
    for (size_t i = 1; i < model.totals.refused.size(); ++i)
      out.add("limber_inference_requests_total",
              fmt::format("{},code=\"{}\"", labels_of(model), refusal_name(static_cast<Refusal>(i))),
              static_cast<double>(model.totals.refused[i]));
  }
  const auto counter = [&](std::string_view name, std::string_view help, auto&& value) {
    out.family(name, "counter", help);
    for (const ModelStatus& model : models)
      out.add(name, labels_of(model), static_cast<double>(value(model.totals)));
  };
  counter("limber_inference_rows_total", "Rows that were computed.", [](const auto& t) { return t.rows; });
  counter("limber_inference_late_total", "Answers that came after the budget or their deadline.",
          [](const auto& t) { return t.late; });
  counter("limber_inference_rescued_total",
          "Requests that a quicker variant than the active one answered in time.",
          [](const auto& t) { return t.rescued; });
  counter("limber_inference_queue_seconds_total", "Time that requests waited.",
          [](const auto& t) { return t.queue_sum_s; });
  counter("limber_inference_compute_seconds_total", "Time that requests were computed.",
          [](const auto& t) { return t.compute_sum_s; });
}

void write_latency(Exposition& out, const Models& models) {
  constexpr std::string_view kName = "limber_inference_duration_seconds";
  out.family(kName, "histogram", "From the last byte of a request to its answer.");
  for (const ModelStatus& model : models) {
    uint64_t below = 0;
    for (size_t i = 0; i <= ServeStats::kBuckets.size(); ++i) {
      below += model.totals.latency[i];
      const std::string end =
          i < ServeStats::kBuckets.size() ? fmt::format("{}", ServeStats::kBuckets[i]) : "+Inf";
      out.add(fmt::format("{}_bucket", kName), fmt::format("{},le=\"{}\"", labels_of(model), end),
              static_cast<double>(below));
    }
    out.add(fmt::format("{}_sum", kName), labels_of(model), model.totals.latency_sum_s);
    out.add(fmt::format("{}_count", kName), labels_of(model), static_cast<double>(below));
  }
}

void write_shape(Exposition& out, const Models& models) {
  const auto gauge = [&](std::string_view name, std::string_view help, auto&& value) {
    out.family(name, "gauge", help);
    for (const ModelStatus& model : models) out.add(name, labels_of(model), value(model));
  };
  out.family("limber_active_subnet", "gauge", "1 for the variant that answers.");
  for (const ModelStatus& model : models)
    out.add("limber_active_subnet",
            fmt::format("{},variant=\"{}\"", labels_of(model), label(model.view.active)), 1);
  out.family("limber_active_subnet_accuracy", "gauge",
             "Share of images that it has right, as it was judged.");
  for (const ModelStatus& model : models)
    if (const auto accuracy = judged(model.view.accuracy))
      out.add("limber_active_subnet_accuracy", labels_of(model), *accuracy);
  gauge("limber_active_subnet_estimated_seconds", "What it takes on an idle machine.",
        [](const auto& m) { return m.view.estimated_s; });
  gauge("limber_latency_correction", "Actual by estimated, lately.",
        [](const auto& m) { return m.view.slowdown; });
  gauge("limber_queue_requests", "Requests that wait.",
        [](const auto& m) { return static_cast<double>(m.view.queue); });
  gauge("limber_warm_subnets_bytes", "Memory of variants that are ready, weights apart.",
        [](const auto& m) { return static_cast<double>(m.view.warm_bytes); });
  out.family("limber_model_switches_total", "counter", "Changes of the active variant.");
  for (const ModelStatus& model : models)
    out.add("limber_model_switches_total", labels_of(model), static_cast<double>(model.totals.switches));
  out.family("limber_model_switch_duration_seconds", "summary", "From the decision to the switch.");
  for (const ModelStatus& model : models) {
    out.add("limber_model_switch_duration_seconds_sum", labels_of(model), model.totals.switch_sum_s);
    out.add("limber_model_switch_duration_seconds_count", labels_of(model),
            static_cast<double>(model.totals.switches));
  }
}

// Only models whose world is followed have these.
void write_adaptation(Exposition& out, const Models& models) {
  using Values = std::vector<std::pair<std::string, std::optional<double>>>;  // labels beside the model's
  const auto family = [&](std::string_view name, std::string_view type, std::string_view help,
                          const std::function<Values(const Followed&)>& values) {
    bool first = true;
    for (const ModelStatus& model : models) {
      if (!model.adaptation) continue;
      for (const auto& [labels, value] : values(*model.adaptation->followed)) {
        if (!value) continue;
        if (std::exchange(first, false)) out.family(name, type, help);
        out.add(name, labels_of(model) + labels, *value);
      }
    }
  };
  const auto number = [](uint64_t count) { return static_cast<double>(count); };
  family("limber_domain", "gauge", "The kind of images that come now; 0: as where the model was trained.",
         [](const Followed& f) {
           return Values{{"", static_cast<double>(f.domain)}};
         });
  family("limber_accuracy_estimate", "gauge", "Share of images that are right, estimated without labels.",
         [](const Followed& f) {
           return Values{{"", f.estimate}};
         });
  family("limber_domain_changes_total", "counter", "Times that another kind of images began.",
         [&](const Followed& f) {
           return Values{{"", number(f.domains)}};
         });
  family("limber_adaptations_total", "counter", "Networks that were learnt, by what became of them.",
         [&](const Followed& f) {
           return Values{{",result=\"adapted\"", number(f.adapted)},
                         {",result=\"rejected\"", number(f.rejected)},
                         {",result=\"failed\"", number(f.failed)}};
         });
  family("limber_adaptation_rollbacks_total", "counter", "Networks that were taken back.",
         [&](const Followed& f) {
           return Values{{"", number(f.rolled_back)}};
         });
  family("limber_adaptation_images_total", "counter", "Images that were asked, by what became of them.",
         [&](const Followed& f) {
           return Values{{",use=\"seen\"", number(f.seen)},
                         {",use=\"bad\"", number(f.bad)},
                         {",use=\"passed\"", number(f.passed)}};
         });
  family("limber_adaptation_cpu_seconds_total", "counter", "Time of a core that following took.",
         [](const Followed& f) {
           return Values{{"", f.cpu_seconds}};
         });
}

// Only models whose learning is scheduled have these.
void write_turns(Exposition& out, const Models& models) {
  const auto gauge = [&](std::string_view name, std::string_view help,
                         std::optional<double> (*value)(const Scheduled&)) {
    bool first = true;
    for (const ModelStatus& model : models) {
      const auto found = model.turn ? value(*model.turn->turn) : std::nullopt;
      if (!found) continue;
      if (std::exchange(first, false)) out.family(name, "gauge", help);
      out.add(name, labels_of(model), *found);
    }
  };
  gauge("limber_learning_turn", "1 for the model that may learn now.",
        [](const Scheduled& turn) { return std::optional<double>(turn.learns ? 1 : 0); });
  gauge("limber_learning_cores", "Cores that it may learn with.",
        [](const Scheduled& turn) { return std::optional(turn.cores); });
  gauge("limber_accuracy_expected",
        "Share of images that will be right when it has learnt, as was decided by.",
        [](const Scheduled& turn) { return turn.after; });
}

void write_machine(Exposition& out, const ModelServer::Sensed& sensed, double uptime_s) {
  const auto gauge = [&](std::string_view name, std::string_view help, std::optional<double> value) {
    if (!value) return;
    out.family(name, "gauge", help);
    out.add(name, *value);
  };
  gauge("limber_device_load", "Load index of what others do, 0 to 1.", sensed.load);
  gauge("limber_device_load_forecast", "The same, a moment ahead.", sensed.forecast);
  gauge("limber_device_cpu_busy", "Share of the cores that is in use.", sensed.sample.cpu_busy);
  gauge("limber_device_memory_used", "Share of the memory that is in use.", sensed.sample.memory_used);
  gauge("limber_device_temperature_celsius", "The hottest place of the processor.",
        sensed.sample.temperature_c);
  gauge("limber_uptime_seconds", "Since the server started.", uptime_s);
  gauge("process_resident_memory_bytes", "Memory of this process.",
        static_cast<double>(process_memory().resident));
}

}  // namespace

std::string ModelServer::status_json() const {
  ServerStatus status{unix_seconds(),   now_seconds() - started_,
                      options_.version, policy_name(options_.model.governor.policy),
                      {sensed()},       {}};
  for (const auto& [name, model] : models()) status.models.push_back(status_of(name, *model));
  return format_fields(status);
}

std::string ModelServer::metrics() const {
  Models models;
  for (const auto& [name, model] : this->models()) models.push_back(status_of(name, *model));
  Exposition out;
  out.family("limber_build_info", "gauge", "1; the version is a label.");
  out.add("limber_build_info", fmt::format("version=\"{}\"", label(options_.version)), 1);
  write_requests(out, models);
  write_latency(out, models);
  write_shape(out, models);
  write_adaptation(out, models);
  write_turns(out, models);
  write_machine(out, sensed(), now_seconds() - started_);
  return out.take();
}

}  // namespace limber
