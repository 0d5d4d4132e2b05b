// What the folder of a master says about its gates.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record/fields.h"
#include "record/notes.h"

namespace limber {

// A network that keeps a share of the units of every channel group, those that matter most for the images
// that the master was trained on, with statistics of normalisation of its own and without any training.
struct MasterLevel {
  double share = 1;       // of the units
  double operations = 1;  // of the original's
  double accuracy = 0;    // 0..1
  double by_size = 0;     // the same of the original without gates, with units chosen by the size of weights

  static void fields(auto& self, auto& field) {
    field("share", self.share);
    field("operations", self.operations);
    field("accuracy", self.accuracy);
    field("by_size", self.by_size);
  }
  std::string problem() const;
};

// In the manifest of the master's folder.
struct MasterNote {
  static constexpr std::string_view kName = "master";
  static constexpr int64_t kVersion = 1;

  int64_t version = kVersion;       // of this note: programs refuse those of a later one
  double spent_s = 0;               // of everything that is over
  double trained_s = 0;             // of training alone
  std::vector<MasterLevel> levels;  // all units first; empty until they were judged
  std::string images;               // in words: "1000 images of the test part of photos"
  int64_t count = 0;                // of these images

  static void fields(auto& self, auto& field) {
    field("version", self.version);
    field("spent_s", self.spent_s);
    field("trained_s", self.trained_s);
    field("levels", self.levels);
    field("images", self.images);
    field("count", self.count);
  }
  std::string problem() const;
};

}  // namespace limber
