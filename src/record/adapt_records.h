// What following a stream writes down. `step` counts frames: a line belongs to the window that ends there.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "record/fields.h"

namespace limber {

struct AdaptWindowRecord {
  static constexpr std::string_view kKind = "adapt.window", kOldKind = "";
  int64_t step = 0;
  int64_t frames = 0;
  std::string domain;               // that the first frame is really of
  bool mixed = false;               // with frames of another
  bool labelled = true;             // or of pure noise; without a label accuracies mean nothing
  bool scored = true;               // false: of a visit's frames that were to be learnt from, not to count
  double accuracy = 0, frozen = 0;  // of what answered, and of the model as it came
  double estimate = 0;              // of `accuracy`, without labels
  double frozen_estimate = 0, atc = 0, doc = 0;  // of `frozen`
  int64_t found = 0;                             // domain, by the detector's number; 0: the source
  std::string net;                               // that answered

  static void fields(auto& self, auto& field) {
    field("step", self.step);
    field("frames", self.frames);
    field("domain", self.domain);
    field("mixed", self.mixed);
    field("labelled", self.labelled);
    field("scored", self.scored, Need::kOptional);
    field("accuracy", self.accuracy);
    field("frozen", self.frozen);
    field("estimate", self.estimate);
    field("frozen_estimate", self.frozen_estimate);
    field("atc", self.atc);
    field("doc", self.doc);
    field("found", self.found);
    field("net", self.net);
  }
  bool counts() const { return labelled && scored; }
  std::string problem() const {
    return frames > 0 && frames <= step ? "" : "'frames' should be 1 to what 'step' says";
  }
};

struct AdaptEventRecord {
  static constexpr std::string_view kKind = "adapt.event", kOldKind = "";
  int64_t step = 0;
  std::string what;  // alarm, domain, adapted, rejected, rolled back, returned, failed, reset
  int64_t frame = 0, since = 0;
  int64_t found = 0;   // domain, by the detector's number
  std::string domain;  // that the frame is really of
  std::string reason;
  double estimate = 0, seconds = 0;

  static void fields(auto& self, auto& field) {
    field("step", self.step);
    field("what", self.what);
    field("frame", self.frame);
    field("since", self.since);
    field("found", self.found);
    field("domain", self.domain);
    field("reason", self.reason);
    field("estimate", self.estimate);
    field("seconds", self.seconds);
  }
};

// The stream is over.
struct AdaptEndRecord {
  static constexpr std::string_view kKind = "adapt.end", kOldKind = "";
  int64_t step = 0;
  int64_t skipped = 0, not_a_number = 0, flat = 0, noise = 0;  // frames that were not learnt from
  // The most that was lost in any 5,000 frames, as a share; nothing: there were not so many.
  std::optional<double> worst_below_frozen;
  double answering_s = 0, detecting_s = 0, learning_s = 0, judging_s = 0;

  static void fields(auto& self, auto& field) {
    field("step", self.step);
    field("skipped", self.skipped);
    field("not_a_number", self.not_a_number);
    field("flat", self.flat);
    field("noise", self.noise);
    field("worst_below_frozen", self.worst_below_frozen);
    field("answering_s", self.answering_s);
    field("detecting_s", self.detecting_s);
    field("learning_s", self.learning_s);
    field("judging_s", self.judging_s);
  }
};

}  // namespace limber
