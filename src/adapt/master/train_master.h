// Training a master so that any share of its filters works.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "adapt/master/master.h"
#include "data/loader.h"

namespace limber::adapt {

struct MasterProgress {
  double seconds = 0, of_seconds = 0;
  int64_t images = 0;
  double whole = 0, part = 0;  // losses lately: with all filters, and with some
};

struct MasterTraining {
  int64_t batch = 64;
  double seconds = 600;       // in all
  double seconds_before = 0;  // of these, how many are over: by a process before this one
  int64_t batches = 0;        // above 0: so many end it instead, however long they take
  double rate = 1e-3;         // falls to 0 in the course of it
  // Targets of parts are this share of the label and for the rest what the original says; 0: labels are not
  // looked at. Those of the whole master are what the original says.
  double label_share = 0.5;
  double sparsity = 0.05;  // see PartOptions
  uint64_t seed = 0;
  Preprocess input;
  AugmentOptions augmentation;
  OnBadImage on_bad_image = OnBadImage::kFail;
  int workers = kAutoWorkers;
  double save_every = 60;  // seconds
  std::function<void(const MasterProgress&)> progress;
  // Now and then, and at the end: what is there is worth keeping. A failure ends the work.
  std::function<Status(double seconds)> save;
  const std::atomic<bool>* stop = nullptr;
};

struct MasterTrained {
  double seconds = 0;  // that are over: as many as asked for, unless it was stopped
  int64_t images = 0;  // seen by this process
  int64_t steps = 0;
};

// Trains gates and all weights of `model`, whose graph is the master's. `original` is what it was made from,
// with weights of its own, which stay as they are.
//
// A batch is answered by the original once. Then the whole master learns from it, and after it a network that
// keeps a share of every channel group, drawn anew for each batch: a unit is kept or dropped everywhere at
// once, as slice_channels() does it. Which units are kept a few images of the batch decide, by their
// relevance. The running statistics of the whole stay as they came.
//
// Gates that are all open are given an order first (spread_gates).
// kInvalidArgument when the model is no classifier, or the data have fewer images than a batch.
Result<MasterTrained> train_master(const AdaptedModel& model, const AdaptedModel& original,
                                   std::shared_ptr<const Dataset> data, const MasterTraining& options);

}  // namespace limber::adapt
