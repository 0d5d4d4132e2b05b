// What a server writes down about a model that it serves.
#pragma once

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
