// How a model follows its world: from unlabelled images to other weights.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/parameters.h"
#include "runtime/backend.h"
#include "tensor/tensor.h"

namespace limber::adapt {

// What a strategy works on. The graph is the model as it was loaded: its batch is open, its normalisations
// are nodes of their own. The weights are the strategy's alone: whoever answers requests meanwhile runs over
// snapshots of them, taken between two calls of adapt().
struct AdaptedModel {
  Graph graph;
  std::shared_ptr<Parameters> weights;
  std::vector<std::shared_ptr<Backend>> backends;
  int threads = 1;
  uint64_t seed = 0;  // of everything random
  // Asked between steps of training; may wait, so that others come first. False: the training ends with
  // kResourceExhausted. Null: it goes on.
  std::function<bool()> go_on = nullptr;
};

// Use from one thread.
class Strategy {
 public:
  virtual ~Strategy() = default;
  Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  virtual std::string_view name() const = 0;
  // How many images it wants at a time; it takes any number above 0. 0: it never wants any.
  virtual int64_t batch() const = 0;

  // Learns from images f32[n,C,H,W], prepared as the model wants them, of which nobody knows the classes.
  // Returns whether a weight or a statistic changed: only then there is something to publish. On failure the
  // weights may be anything; the caller goes back to its last snapshot and calls reset().
  virtual Result<bool> adapt(const Tensor& images) = 0;

  // The images that come next are of this domain, by the numbers of DriftDetector::domain(): 0 is the source,
  // and a number that came before is a domain that was met before. By default nothing changes.
  virtual Status enter(int64_t /*domain*/) { return {}; }

  // Null: what answers requests is the model that the strategy was made for. Else this one, a smaller network
  // that was cut from it; graph and weights change with enter(), adapt() and reset() alone.
  virtual const AdaptedModel* remodelled() const { return nullptr; }

  // What the model that answers costs, as a share of the operations of the one that the strategy was made
  // for.
  virtual double operations() const { return 1; }

  // What was learnt last is good, or nobody judges it: a strategy that keeps things beside its weights may
  // build on it from here on. enter() and adapt() say so, too, of what was learnt before them; what reset()
  // comes for first is gone.
  virtual Status keep() { return {}; }

  // What was kept of this domain turned out to be worse than what the strategy was made for: it is met as one
  // that is new the next time.
  virtual Status forget(int64_t /*domain*/) { return {}; }

  // The caller has set the weights to other values (those of the source, or a snapshot that was better): what
  // the strategy keeps beside them (optimiser state, running means, counters) starts again.
  virtual Status reset() = 0;
};

// kInvalidArgument unless the images are f32[n,C,H,W] with n above 0 and the other dimensions those of the
// model's only input.
Status check_images(const Graph& model, const Tensor& images);

// Leaves the model as it is: what every other strategy is measured against.
class Frozen : public Strategy {
 public:
  std::string_view name() const override { return "none"; }
  int64_t batch() const override { return 0; }
  Result<bool> adapt(const Tensor&) override { return false; }
  Status reset() override { return {}; }
};

}  // namespace limber::adapt
