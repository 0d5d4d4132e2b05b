// What a server writes down about a model that it serves.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "record/fields.h"

namespace limber {

// Another variant became active.
struct SwitchRecord {
  static constexpr std::string_view kKind = "serve.switch", kOldKind = "";
  std::string model, from, to, reason;

  static void fields(auto& self, auto& field) {
    field("model", self.model);
    field("from", self.from);
    field("to", self.to);
    field("reason", self.reason);
  }
};

// What happened while a model followed its world: src/serve/followed.h.
struct FollowedRecord {
  static constexpr std::string_view kKind = "serve.adapt", kOldKind = "";
  std::string model, event;  // "domain", "adapted", "rejected" ...
  int64_t domain = 0;        // 0: like the source
  std::string reason, net;   // what answers afterwards; empty: the model as it came
  std::optional<double> estimate;
  double seconds = 0;  // that it took

  static void fields(auto& self, auto& field) {
    field("model", self.model);
    field("event", self.event);
    field("domain", self.domain);
    field("reason", self.reason);
    field("net", self.net);
    field("estimate", self.estimate);
    field("seconds", self.seconds);
  }
};

// A model may learn from now on, or no more, or is to learn later: src/serve/followed.h.
struct TurnRecord {
  static constexpr std::string_view kKind = "serve.turn", kOldKind = "";
  std::string model;
  bool learns = false;
  std::string why;
  std::optional<double> estimate;  // of its accuracy now
  std::optional<double> after;     // that is expected when it has learnt
  double cores = 0;                // that it may learn with
  std::optional<double> start_s, end_s;

  static void fields(auto& self, auto& field) {
    field("model", self.model);
    field("learns", self.learns);
    field("why", self.why);
    field("estimate", self.estimate);
    field("after", self.after);
    field("cores", self.cores);
    field("start_s", self.start_s);
    field("end_s", self.end_s);
  }
};

// What a server did, when it ends.
struct ServedRecord {
  static constexpr std::string_view kKind = "serve.end", kOldKind = "";
  std::string model, version;
  int64_t requests = 0, answered = 0, refused = 0, late = 0, rescued = 0, switches = 0;
  double seconds = 0;  // that it was served

  static void fields(auto& self, auto& field) {
    field("model", self.model);
    field("version", self.version);
    field("requests", self.requests);
    field("answered", self.answered);
    field("refused", self.refused);
    field("late", self.late);
    field("rescued", self.rescued);
    field("switches", self.switches);
    field("seconds", self.seconds);
  }
};

}  // namespace limber
