// What is written down about an elastic model: notes in its manifest, and records of what was searched for
// and found in its history. Variants are texts, by the names of blocks and alternatives: their model is none
// of this room's business.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/fields.h"
#include "record/notes.h"

namespace limber {

// --- notes ----------------------------------------------------------------------------------------------

// How far making the model elastic has come, so that it can go on.
struct TeachingNote {
  static constexpr std::string_view kName = "teaching";
  double spent_s = 0;              // of everything that is over
  double taught_s = 0;             // of teaching and tuning alone
  std::vector<std::string> tuned;  // variants that were tuned as a whole
  std::vector<double> shares;      // of the original's latency that these were predicted to take

  static void fields(auto& self, auto& field) {
    field("spent_s", self.spent_s);
    field("taught_s", self.taught_s);
    field("tuned", self.tuned);
    field("shares", self.shares, Need::kOptional);
  }
  std::string problem() const;
};

// How the model's answers are compared and taught, where it is no classifier: see Answers.
struct AnswersNote {
  static constexpr std::string_view kName = "answers";
  std::string answers = "classes";

  static void fields(auto& self, auto& field) { field("answers", self.answers); }
};

// What the model's exits were taught with.
struct ExitsNote {
  static constexpr std::string_view kName = "exits";
  std::string blocks;  // a variant

  static void fields(auto& self, auto& field) { field("blocks", self.blocks); }
};

// Notes as they were before they had fields become those above: "spent" and "taught" (seconds), "tuned"
// (variants between spaces), "exits blocks" (a variant). A new one that is there already counts.
void convert_notes(Notes& notes);

// --- records --------------------------------------------------------------------------------------------

// Which images accuracies are of, and on what times were taken.
struct Judgement {
  std::string images;  // in words: "500 images of the test part of photos"
  int64_t count = 0;
  std::string machine;

  static void fields(auto& self, auto& field) {
    field("images", self.images);
    field("count", self.count);
    field("machine", self.machine);
  }
};

// A search that came to its end.
struct SearchRecord {
  static constexpr std::string_view kKind = "search.result", kOldKind = "";
  struct Part {
    std::string what;
    double seconds = 0;
    static void fields(auto& self, auto& field) {
      field("what", self.what);
      field("seconds", self.seconds);
    }
  };

  // What was asked for.
  Judgement judged;
  double limit_s = 0;                   // of a run
  std::optional<double> latency_share;  // of the original's, where the limit was asked for so
  double margin = 0;
  int64_t evaluations = 0;
  std::optional<double> max_params, max_memory, max_flops;
  // What was found.
  std::string variant;
  bool within = false;  // the limit, when it was timed
  double predicted_s = 0, measured_s = 0, accuracy = 0;
  double original_s = 0, original_accuracy = 0;
  int64_t evaluated = 0, known = 0;  // variants, now and before
  // How long it took.
  double seconds = 0;
  std::vector<Part> parts;

  static void fields(auto& self, auto& field) {
    field("judged", self.judged);
    field("limit_s", self.limit_s);
    field("latency_share", self.latency_share);
    field("margin", self.margin);
    field("evaluations", self.evaluations);
    field("max_params", self.max_params);
    field("max_memory", self.max_memory);
    field("max_flops", self.max_flops);
    field("variant", self.variant);
    field("within", self.within);
    field("predicted_s", self.predicted_s);
    field("measured_s", self.measured_s);
    field("accuracy", self.accuracy);
    field("original_s", self.original_s);
    field("original_accuracy", self.original_accuracy);
    field("evaluated", self.evaluated);
    field("known", self.known);
    field("seconds", self.seconds);
    field("parts", self.parts);
  }
  std::string problem() const;
};

// Exits that were made, or found there, and the confidence at which they may be taken.
struct ExitsRecord {
  static constexpr std::string_view kKind = "exits.result", kOldKind = "";
  struct Exit {
    std::string name;
    double accuracy = 0;  // of all images, were they to leave here
    double share = 0;     // of images that leave here
    double forced_s = 0;  // of a run that always ends here
    static void fields(auto& self, auto& field) {
      field("name", self.name);
      field("accuracy", self.accuracy);
      field("share", self.share);
      field("forced_s", self.forced_s);
    }
  };

  // What was asked for.
  Judgement judged;  // of the images that the confidence was found on
  double max_drop = 0, storage = 0, budget_s = 0;
  // What was found.
  bool made = false;    // exits, now
  std::string variant;  // with its confidence
  double mean_s = 0;    // predicted, over these images
  double accuracy = 0, original_accuracy = 0;
  double measured_s = 0, original_s = 0;                        // mean of images that came one by one
  std::vector<Exit> exits;                                      // in their order
  std::optional<double> test_accuracy, test_original_accuracy;  // where the data have a test part
  // How long it took.
  double seconds = 0;

  static void fields(auto& self, auto& field) {
    field("judged", self.judged);
    field("max_drop", self.max_drop);
    field("storage", self.storage);
    field("budget_s", self.budget_s);
    field("made", self.made);
    field("variant", self.variant);
    field("mean_s", self.mean_s);
    field("accuracy", self.accuracy);
    field("original_accuracy", self.original_accuracy);
    field("measured_s", self.measured_s);
    field("original_s", self.original_s);
    field("exits", self.exits);
    field("test_accuracy", self.test_accuracy);
    field("test_original_accuracy", self.test_original_accuracy);
    field("seconds", self.seconds);
  }
  std::string problem() const;
};

}  // namespace limber
