// Which images an accuracy is of, so that none is taken for one of others.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "jobs/job.h"
#include "record/fields.h"
#include "train/manifest.h"
#include "variant/elastic_manifest.h"

namespace limber {

struct JudgedImages {
  enum class Part : uint8_t {
    kTest,     // the data's own test part
    kTrain,    // its training part
    kGiven,    // what was given to judge by
    kHeldOut,  // of data without parts those that nothing learnt from
    kWhole,    // any of data without parts: also such as something learnt from
  };
  std::string data;
  Part part = Part::kTest;
  int64_t count = 0;

  bool learnt_from() const { return part == Part::kTrain || part == Part::kWhole; }
  // "500 images of the test part of photos"
  std::string text() const;
};

// Images of a data set that are kept from whatever learns: `count` of `size`, drawn with `seed`.
struct HeldOut {
  size_t size = 0, count = 0;
  uint64_t seed = 0;

  bool operator==(const HeldOut&) const = default;
  static void fields(auto& self, auto& field) {
    field("size", self.size);
    field("count", self.count);
    field("seed", self.seed);
  }
  std::string problem() const { return count == 0 || count >= size ? "'count' should be 1 to 'size'" : ""; }
};

// A tenth, at most so many. REQUIRES: a data set of two images or more
HeldOut hold_tenth(const Dataset& data, size_t most, uint64_t seed);

// A folder's note of this name. What cannot be read counts as not there.
void write_held(ElasticInfo& info, std::string_view note, const HeldOut& held);
std::optional<HeldOut> read_held(const ElasticInfo& info, std::string_view note);
inline constexpr std::string_view kHeldNote = "held out";  // by the job that made the model elastic

struct JudgedData {
  std::shared_ptr<const Dataset> data;
  JudgedImages images;  // count: all that `data` has
};

// The test part of `spec`; of data without parts what the folder's note says was held out, where it fits, or
// else all of it, which `control` is told. `expected`: see OpenOptions.
Result<JudgedData> open_unseen(const std::string& spec, const ElasticInfo& info, const ClassNames& expected,
                               const JobControl& control);
// How a job that makes a model elastic keeps images from what it learns.
struct KeptFromLearning {
  std::string data, output;  // as the user spelled them
  bool begun = false;        // the output is there already
  size_t most = 1000;        // images that are held out
  int64_t batch = 1;         // fewer images than this are refused
  uint64_t seed = 0;
};
// open_unseen(), after images of data without parts were held out and noted in `info`: `learnt`, all of them
// until now, is the others then. kInvalidArgument when they are not the data that the note speaks of.
Result<JudgedData> keep_from_learning(const KeptFromLearning& how, ElasticInfo& info,
                                      std::shared_ptr<const Dataset>& learnt, const JobControl& control);

// The training part, or all of data without parts.
Result<JudgedData> open_seen(const std::string& spec, const ClassNames& expected);

// How a training held images of data without parts out: a share of each class, drawn with its seed.
struct TrainingSplit {
  double share = 0;
  uint64_t seed = 0;
  uint64_t data = 0;  // digest_names() of all images

  bool operator==(const TrainingSplit&) const = default;
  static constexpr const char* kShareText = "val-share";  // among a checkpoint's options
  static constexpr const char* kDataText = "val-of";
};
// Nothing when the training held nothing out, or does not say of what.
std::optional<TrainingSplit> read_split(const CheckpointInfo& info);

// The part of `spec` that is asked for. Of data without parts the images that a training of `trained` held
// out, or those it learnt from, where it was made with these data; else all of them.
Result<JudgedData> open_judged(const std::string& spec, Split split,
                               const std::optional<TrainingSplit>& trained, const ClassNames& expected);

}  // namespace limber
