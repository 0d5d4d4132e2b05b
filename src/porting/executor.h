// One way of making a model smaller until it keeps a goal. docs/porting.md shows how to add another.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ir/model.h"
#include "porting/goals.h"

namespace limber {

// What a goal was reached with: what others are adapted from.
struct Ported {
  Model model;          // as it is exported, normalisation as in training
  std::string variant;  // of an elastic model, as print() has it; else empty
  PortCost cost;
  std::optional<double> accuracy;  // nothing: nobody has judged it yet
};

// Use from one thread. Calls come as: init, then measure and adjust in turns, then finish; and again for the
// next goal.
class Executor {
 public:
  virtual ~Executor() = default;

  // The model itself, which all goals begin with in the end.
  virtual const Ported& root() const = 0;
  // The least that can be reached of each constraint alone.
  virtual Result<PortCost> least(const DeviceProfile& device) = 0;

  // A goal begins, with what was made for another or the root. REQUIRES: `parent` outlives the goal
  virtual Status init(const Goal& goal, const Ported& parent) = 0;
  // Of what there is now.
  virtual Result<PortCost> measure() = 0;
  // A step towards the limits; constraints matter by their weights, and one of weight 0 is kept already.
  // kInvalidArgument when there is nothing nearer; kResourceExhausted when it was stopped.
  virtual Status adjust(const Figures& limits, const Figures& weights) = 0;
  // The network as it would be exported now, for whoever times it.
  virtual Result<Model> model() = 0;
  // The limits are kept: whatever is left to be done for the accuracy, and how good it is.
  virtual Result<Ported> finish() = 0;
};

}  // namespace limber
