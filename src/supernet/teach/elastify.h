// Teaching the alternatives of an elastic model, for as long as there is time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "data/loader.h"
#include "supernet/teach/chain.h"
#include "supernet/teach/distill.h"
#include "supernet/teach/tune.h"
#include "variant/latency_table.h"

namespace limber {

struct ElastifyProgress {
  std::string_view stage;
  double seconds = 0, of_seconds = 0;
  int64_t images = 0;                    // in this stage
  double error = 0;                      // lately: mean over the alternatives, or the loss of variants
  std::optional<double> range_accuracy;  // see ElastifyOptions::judge; once it was asked
};

struct ElastifyOptions {
  DistillOptions distill;
  TuneOptions tune;
  // What alternatives are taught on, before variants are tuned on the data; null: the data. Teaching needs no
  // labels: of a model that was trained in two steps these may be the images of the first.
  std::shared_ptr<const Dataset> teach_data;
  double seconds = 600;       // how long it takes, in all: teaching, tuning, judging, saving in between
  double seconds_before = 0;  // of these, how many are over: by a process before this one
  std::vector<TimedVariant> chosen;  // by that process, to be tuned
  double rate = 1e-3;                // of teaching; falls to 0 in the course of it
  double tune_rate = 1.5e-3;         // the same for tuning, of what is fastest
  // What variants take. Empty: nothing is chosen or tuned, all the time goes into teaching.
  std::function<Result<LatencyTable>()> measure;
  std::vector<double> shares = whole_range();  // of the latency: one variant is tuned for each
  // All parameters by those of the model: as long as there is room, the blocks that chosen variants have in
  // common with the model are copied, and the copies tuned with the rest.
  double size_limit = 1;
  int64_t judge_batches = 8;  // that errors are measured on
  double save_every = 60;     // seconds
  // Accuracies of variants, 0..1, on images that nothing here learns from. Empty: nobody asks.
  std::function<Result<std::vector<double>>(std::span<const Variant>)> judge;
  double judge_every = 60;  // seconds of tuning
  uint64_t seed = 0;
  Preprocess input;
  AugmentOptions augmentation;
  OnBadImage on_bad_image = OnBadImage::kFail;
  int workers = kAutoWorkers;
  std::function<void(const ElastifyProgress&)> progress;
  // Now and then, and at the end: what is there is worth keeping. A failure ends the work.
  std::function<Status(double seconds, std::span<const TimedVariant> chosen)> save;
  const std::atomic<bool>* stop = nullptr;
};

struct Elastified {
  double seconds = 0;                // that are over: as many as asked for, unless it was stopped
  std::vector<TimedVariant> chosen;  // that were tuned, the slowest first
};

// In three stages: (1) every alternative is taught to replace its blocks, and judged; (2) those that are part
// of a chain of variants, one for each share of the latency, are taught on; (3) the variants of the chain are
// tuned as wholes, with labels, and with copies, which they share, of the blocks that are the model's own.
// Alternative::error is how far an alternative was from its blocks before tuning.
Result<Elastified> teach_alternatives(ElasticModel& model, std::shared_ptr<const Dataset> data,
                                      const std::vector<std::shared_ptr<Backend>>& backends,
                                      const ElastifyOptions& options);

}  // namespace limber
