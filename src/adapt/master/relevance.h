// How much each unit of a master matters for each of some images.
#pragma once

#include <memory>
#include <vector>

#include "adapt/by_size.h"
#include "adapt/master/master.h"
#include "runtime/session.h"

namespace limber::adapt {

// 0 or more, by group and unit of Master::groups: the mean of the gates of the unit's filters, over all
// convolutions of the group. Larger matters more; only to be compared within a group. Open gates are all 1.
using UnitRelevance = std::vector<std::vector<double>>;

struct MasterReading {
  std::vector<UnitRelevance> relevance;    // by image
  std::vector<std::vector<float>> logits;  // by image
};

// The mean over images. REQUIRES: not empty, all of one master
UnitRelevance mean_relevance(const std::vector<UnitRelevance>& images);

// Of each group the `share` of its units that matter most, rounded, at least one; of equal ones the first.
// Ascending: what slice_channels() takes. REQUIRES: 0 <= share <= 1
std::vector<std::vector<int64_t>> most_relevant(const UnitRelevance& relevance, double share);

// Runs the master over images by its running statistics, with all filters on. Takes turns with whatever
// changes the weights. Use from one thread.
class MasterReader {
 public:
  // `model` is the master's graph with its weights. kInvalidArgument when it is no master.
  static Result<std::unique_ptr<MasterReader>> create(const AdaptedModel& model);
  const Master& master() const { return master_; }
  // kInternal when a gate is not a number. REQUIRES: check_images()
  Result<MasterReading> read(const Tensor& images);

 private:
  MasterReader(const AdaptedModel& model, Master master) : model_(model), master_(std::move(master)) {}
  UnitRelevance relevance_of(const Session& session, int64_t image) const;

  AdaptedModel model_;  // its graph gives logits, then the gates
  Master master_;
  BySize<Session> sessions_;
};

}  // namespace limber::adapt
