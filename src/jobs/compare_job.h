// Two models side by side: how right, how often of one mind, how fast, how large.
#pragma once

#include <optional>
#include <string>

#include "base/interval.h"
#include "data/loader.h"
#include "jobs/judged_images.h"
#include "jobs/source.h"

namespace limber {

struct CompareJobOptions : EngineOptions {
  struct Side {
    std::string model;    // as ModelSource has it, or the folder of an elastic model
    std::string variant;  // of an elastic model; empty: its original
  };
  Side a, b;
  std::string data;            // images to judge by; empty: sizes and times alone
  Split split = Split::kTest;  // where the data have parts
  int64_t images = 0;          // at most; 0: all
  int64_t batch = 32;
  ImageOptions image;  // for models that have no record of their own
  double seconds = 1;  // that each is timed, about
  int workers = kAutoWorkers;
  uint64_t seed = 0;  // which images, where not all are meant
};
Status check(const CompareJobOptions& job);

struct ComparedModel {
  std::string name;
  int64_t classes = 0, parameters = 0;
  uint64_t parameter_bytes = 0;
  uint64_t memory_bytes = 0;  // that a session for one sample holds, as planned
  double flops = 0;           // of one sample
  double seconds = 0;         // of one sample: the quick time, in turns with the other
  std::optional<double> accuracy;
};

struct CompareOutcome {
  ComparedModel a, b;
  JudgedImages images;                       // count 0: nothing was judged
  int64_t same = 0;                          // images to which both give the same class
  bool labelled = false;                     // the data have the classes of both: the rest is meant then
  int64_t both = 0, only_a = 0, only_b = 0;  // images that are right

  // Accuracy of b less that of a, and its 95 % interval: the same images are judged by both.
  double gain() const;
  Interval gain_95() const;
};

Result<CompareOutcome> run_compare(const CompareJobOptions& job, const JobControl& control = {});

}  // namespace limber
