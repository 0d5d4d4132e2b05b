// A small network for each domain: cut from a master for what the domain needs, trained where it matters, and
// what it learnt written back.
#pragma once

#include <memory>
#include <optional>

#include "adapt/methods/batch_norm.h"
#include "adapt/surrogate/choose_units.h"
#include "adapt/surrogate/cut.h"
#include "adapt/surrogate/knowledge.h"
#include "adapt/surrogate/master_state.h"
#include "adapt/surrogate/surrogate_training.h"
#include "adapt/surrogate/unit_probe.h"

namespace limber::adapt {

// By what units are judged on the window that a surrogate is cut for.
enum class RelevanceKind : uint8_t {
  kHardestGates,         // gates of the image of highest entropy
  kMeanGates,            // gates, as the mean over the window
  kSensitivity,          // see sensitivity_relevance()
  kGatesAndSensitivity,  // the product of the two before
  kMagnitude,            // the size of weights, whatever the images
};
std::string_view relevance_name(RelevanceKind kind);

struct SurrogateOptions {
  int64_t batch = 100;
  RelevanceKind relevance = RelevanceKind::kMeanGates;  // without gates always kSensitivity, or kMagnitude
  UnitBudget budget;
  int64_t probe_images = 32;  // that sensitivity is asked of: its backward pass is the master's
  // Statistics of the master count for so many images beside those of the first window of a domain; those of
  // the windows before for as many as `window_prior` beside a later one.
  double prior = 0, window_prior = 100;
  SurrogateTraining training;
  double write_back = 1;  // the share of what was learnt that the master takes; 0: none
  KnowledgeOptions knowledge;
  size_t remembered = 64;  // domains; of more those that were not met for longest are forgotten
  // Where what was kept is saved, and found again by the next one for the same master; empty: nowhere. The
  // master is the one whose weights create() is given.
  std::string folder;
};

class Surrogate : public Strategy {
 public:
  // The graph has gates, or none. With a folder where something was kept, the weights become what the master
  // had learnt.
  static Result<std::unique_ptr<Surrogate>> create(const AdaptedModel& master,
                                                   const SurrogateOptions& options);
  std::string_view name() const override { return "surrogate"; }
  int64_t batch() const override { return options_.batch; }
  // A new domain gets a surrogate with the next adapt(), and until then that of the domain before answers. A
  // domain that was met before begins with what was learnt there.
  Status enter(int64_t domain) override;
  Result<bool> adapt(const Tensor& images) override;
  // The master itself until the first window, and after a reset() in a domain that nothing is known of.
  const AdaptedModel* remodelled() const override { return current_ ? &current_->network.model : &master_; }
  // The master takes what was learnt last, the domain remembers it, and both are saved.
  Status keep() override;
  // The domain's next window gets a new surrogate; the master keeps what it took.
  Status forget(int64_t domain) override;
  // What was learnt since the last keep() is forgotten; the domain goes on from what it remembers. The master
  // has the weights that the caller gave it.
  Status reset() override;

  double operations() const override { return operations_; }
  const PlainMaster& master() const { return plain_; }

 private:
  struct Current {
    CutNetwork network;
    DomainMemory cut;  // its weights: those that the master knows of
    std::unique_ptr<StatisticsPass> statistics;
    std::unique_ptr<SurrogateTrainer> training;  // null: without steps
    bool learnt = false;                         // something that keep() has not seen
    double prior = 0;                            // of its statistics beside the next window's, images
  };
  Surrogate(const AdaptedModel& master, const SurrogateOptions& options)
      : master_(master), options_(options) {}

  Result<UnitRelevance> relevance_on(const Tensor& images, const FilterValues& gates) const;
  FilterValues gates_of(const GateReading& reading) const;
  Status cut_for(const Tensor& images, const GateReading& reading);
  Status recall();
  Result<std::unique_ptr<Current>> build(std::vector<std::vector<int64_t>> kept, FilterValues gates);
  Status train(const Tensor& images, const GateReading& reading);
  void remember(DomainMemory memory);
  Status write_back(const std::map<std::string, Tensor>& now);
  Status open_state();
  Status restore(const MasterState& state);
  Status check_memory(const DomainMemory& memory) const;
  Status save();

  AdaptedModel master_;
  SurrogateOptions options_;
  PlainMaster plain_;
  std::optional<OperationCount> count_;
  std::optional<Knowledge> knowledge_;
  std::map<int64_t, DomainMemory> domains_;
  std::map<int64_t, uint64_t> kept_at_;  // of domains that this process met: when, in calls of keep()
  uint64_t keeps_ = 0;
  std::optional<StateFolder> folder_;
  std::map<std::string, Tensor> origin_;  // the master's weights as they came
  int64_t domain_ = 0;
  bool cut_due_ = true;
  std::unique_ptr<Current> current_;
  double operations_ = 1;
};

}  // namespace limber::adapt
