// What is written down about a run: one type per kind of line, see docs/formats.md.
//
// `kKind` is "ROOM.WHAT", the room being the one that writes it, so that two rooms never mean different
// things by one word. `kOldKind` is what files of version 0.1 call it. A field may be added at any time if it
// is optional; one that changes its meaning gets another name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/fields.h"

namespace limber {

inline constexpr int64_t kRecordVersion = 1;

// For problem(): what is wrong with a field that should hold seconds, or nothing.
std::string not_seconds(std::string_view name, double value);

using RunTexts = std::map<std::string, std::string>;  // name -> value

// --- of every run ------------------------------------------------------------------------------------------

struct RunHeader {
  int64_t version = kRecordVersion;
  std::string job = "train";      // which job the lines that follow belong to
  int64_t step = 0;               // from which it goes on
  RunTexts options, environment;  // what was asked for; model, data, threads, version of the program

  static void fields(auto& self, auto& field) {
    field("version", self.version, Need::kOptional);
    field("job", self.job, Need::kOptional);
    field("step", self.step, Need::kOptional);
    field("options", self.options, Need::kOptional);
    field("environment", self.environment, Need::kOptional);
  }
  std::string problem() const;
};

// Earlier lines of the same job that have a step are void.
struct StartRecord : RunHeader {
  static constexpr std::string_view kKind = "run.start", kOldKind = "start";
};

// Earlier lines of the same job with a later step are void: these steps are done again.
struct ResumeRecord : RunHeader {
  static constexpr std::string_view kKind = "run.resume", kOldKind = "resume";
};

// Something that happened to a run, in words.
struct EventRecord {
  static constexpr std::string_view kKind = "run.event", kOldKind = "";
  std::optional<int64_t> step;
  std::string level = "info";  // or "warning" or "error"
  std::string text;

  static void fields(auto& self, auto& field) {
    field("step", self.step);
    field("level", self.level);
    field("text", self.text);
  }
};

// --- training ----------------------------------------------------------------------------------------------

struct EpochRecord {
  static constexpr std::string_view kKind = "train.epoch", kOldKind = "epoch";
  int64_t epoch = 0;                     // from 1
  int64_t step = 0;                      // updates done
  std::optional<double> loss, accuracy;  // on the training images as they were shown
  std::optional<int64_t> images;         // that were shown
  std::optional<double> val_loss, val_accuracy, val_top5, val_seconds;
  std::optional<int64_t> val_images;
  std::optional<bool> best;  // of the evaluations up to here
  std::optional<double> rate;
  double seconds = 0;  // without evaluation
  std::optional<double> images_per_s;
  int64_t skipped = 0;  // images that could not be read

  static void fields(auto& self, auto& field) {
    field("epoch", self.epoch);
    field("step", self.step, Need::kOptional);
    field("loss", self.loss);
    field("accuracy", self.accuracy);
    field("images", self.images);
    field("val_loss", self.val_loss);
    field("val_accuracy", self.val_accuracy);
    field("val_top5", self.val_top5);
    field("val_images", self.val_images);
    field("val_seconds", self.val_seconds);
    field("best", self.best);
    field("rate", self.rate);
    field("seconds", self.seconds);
    field("images_per_s", self.images_per_s);
    field("skipped", self.skipped, Need::kOptional);
  }
  std::string problem() const;
};

// --- elastic training --------------------------------------------------------------------------------------

// What may be trained, from input to loss; lines that follow speak of them by number.
struct TensorsRecord {
  static constexpr std::string_view kKind = "elastic.tensors", kOldKind = "tensors";
  int64_t step = 0;
  std::vector<std::string> names;

  static void fields(auto& self, auto& field) {
    field("step", self.step, Need::kOptional);
    field("names", self.names);
  }
  std::string problem() const { return names.empty() ? "'names' is empty" : ""; }
};

// A survey came to its end.
struct SurveyRecord {
  static constexpr std::string_view kKind = "elastic.survey", kOldKind = "";
  int64_t step = 0;
  double seconds = 0;                // that its steps took
  double full_s = 0, forward_s = 0;  // of a step that trains everything, and of its forward pass

  static void fields(auto& self, auto& field) {
    field("step", self.step);
    field("seconds", self.seconds);
    field("full_s", self.full_s);
    field("forward_s", self.forward_s);
  }
};

// One choice of what to train. Seconds are those of the machine as it was in the survey.
struct SelectionRecord {
  static constexpr std::string_view kKind = "elastic.selection", kOldKind = "selection";
  int64_t step = 0;
  std::optional<double> rho;
  std::vector<uint64_t> chosen;    // tensors, ascending
  std::vector<double> importance;  // of every tensor; 0 where it was not measured
  std::optional<double> predicted_s, budget_s;
  std::optional<double> share;  // time of a step, predicted, over that of one that trains everything
  std::optional<double> full_s, forward_s;
  std::optional<bool> within;  // false: even the cheapest choice exceeds the budget
  std::optional<int64_t> arena_bytes;
  std::optional<std::string> reason;  // why this choice, for people
  int64_t left = 0, returned = 0;     // up to here

  static void fields(auto& self, auto& field) {
    field("step", self.step, Need::kOptional);
    field("rho", self.rho);
    field("chosen", self.chosen);
    field("importance", self.importance);
    field("predicted_s", self.predicted_s);
    field("budget_s", self.budget_s);
    field("share", self.share);
    field("full_s", self.full_s);
    field("forward_s", self.forward_s);
    field("within", self.within);
    field("arena_bytes", self.arena_bytes);
    field("reason", self.reason);
    field("left", self.left, Need::kOptional);
    field("returned", self.returned, Need::kOptional);
  }
  std::string problem() const;
};

// How long the steps of a choice took.
struct ChoiceRecord {
  static constexpr std::string_view kKind = "elastic.choice_end", kOldKind = "choice_end";
  int64_t step = 0;
  int64_t steps = 0;  // that were timed
  double predicted_s = 0, measured_s = 0;
  std::optional<double> full_s, overhead_s;

  static void fields(auto& self, auto& field) {
    field("step", self.step, Need::kOptional);
    field("steps", self.steps, Need::kOptional);
    field("predicted_s", self.predicted_s);
    field("measured_s", self.measured_s);
    field("full_s", self.full_s);
    field("overhead_s", self.overhead_s);
  }
  std::string problem() const;
};

}  // namespace limber
