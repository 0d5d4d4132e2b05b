// How good networks are that a master gives without any training.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "adapt/strategy.h"
#include "data/loader.h"
#include "passes/channel_groups.h"
#include "record/master_note.h"

namespace limber::adapt {

// A graph with some units of all channel groups and weights of its own for it.
// REQUIRES: channel_groups() of the graph, or some of them
Result<AdaptedModel> cut(const AdaptedModel& model, const ChannelGroups& groups,
                         std::span<const std::vector<int64_t>> units);

struct MasterJudging {
  std::vector<double> shares = {1, 0.5, 0.3};  // of the units
  std::vector<Tensor> seen;  // batches of images that units are chosen and statistics measured by
  std::shared_ptr<const Dataset> unseen;  // that nothing learnt from
  bool labels = true;                     // false: what the original says of an image counts as its class
  int64_t batch = 100;
  Preprocess input;
  OnBadImage on_bad_image = OnBadImage::kFail;
  int workers = kAutoWorkers;
  const std::atomic<bool>* stop = nullptr;
};

// One level for each share. `original` is what the master was made from: units of it are chosen by the size
// of their weights, to compare with. kResourceExhausted when `stop` became true meanwhile.
Result<std::vector<MasterLevel>> judge_master(const AdaptedModel& model, const AdaptedModel& original,
                                              const MasterJudging& options);

}  // namespace limber::adapt
