// One model for many devices: each goal of a file gets a model of its own, made from that of a looser goal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "jobs/judged_images.h"
#include "jobs/port_folder.h"
#include "jobs/source.h"

namespace limber {

enum class PortBy : uint8_t {
  kAuto,      // kSupernet for the folder of an elastic model, else kFilters
  kSupernet,  // a variant of an elastic model, which is made first where there is none
  kFilters,   // fewer filters, trained further
};
std::string_view port_by_name(PortBy by);  // "auto", "supernet", "filters"

// `model` is a classifier, or the folder of an elastic model of one.
struct PortJobOptions : JobOptions {
  std::string goals;   // file; docs/porting.md says what is in it
  std::string data;    // labelled images: to learn from, and their test part to judge by
  std::string output;  // folder, see port_folder.h
  bool resume = false;
  bool plan_only = false;  // the tree alone: nothing is made or written
  PortBy by = PortBy::kAuto;
  ImageOptions image;
  AugmentOptions changes;         // random ones, in training
  int64_t images = 500;           // at most, to judge by
  std::optional<int64_t> epochs;  // of training each goal at its end; 0 by supernet, 3 by filters
  double rate = 0.01;             // of training
  int evaluations = 60;           // variants that a goal tries, by supernet
  double step_images = 0.5;       // share of the images that a step of shrinking trains on, by filters
  double budget = 600;            // seconds for making a model elastic
  OnBadImage on_bad_image = OnBadImage::kFail;
  int workers = kAutoWorkers;
};
Status check(const PortJobOptions& options);

struct PortOutcome {
  bool stopped = false;  // what is done is kept
  std::string folder, executor;
  JudgedImages images;  // that accuracies are of
  PortCost model;       // what the model itself takes
  double model_s = 0;   // on this machine
  std::optional<double> model_accuracy;
  struct Entry {
    GoalRecord record;    // of one that is not done, the name and the device alone
    std::string planned;  // parent in the tree; empty: the model
    double way = 0;       // the tree's, in natural logarithms
    int depth = 0;
    bool done = false;
  };
  std::vector<Entry> goals;                 // parents before children, branch by branch
  size_t kept = 0, refused = 0, known = 0;  // known: done before
  double tree_s = 0;                        // making the tree
  double tree_way = 0, alone_way = 0;       // all ways, and all from the model itself
  double prepare_s = 0;                     // from the call to the first goal
  double seconds = 0;
};

// Goals that cannot be kept are refused, with the nearest that can, and the rest goes on. Goals that are
// added to the file meanwhile are done, too. One stage, "porting", after those of making a model elastic.
Result<PortOutcome> run_port(const PortJobOptions& options, const JobControl& control = {});

}  // namespace limber
