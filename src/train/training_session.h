// Training steps over one set of parameters: which of them are trained may change between two steps.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/compile.h"
#include "runtime/session.h"
#include "train/training_graph.h"

namespace limber {

struct TrainingOptions {
  StepOptions step;
  int threads = 1;
  // Bytes that training may add to the process, as Plan::memory_bytes() counts them; 0: no limit. Where it is
  // too little to keep all activations, more of them are computed twice.
  size_t memory_limit = 0;
  // What is trained at first, out of trainable(); everything when empty.
  std::function<Result<std::vector<std::string>>(const Graph& prepared,
                                                 const std::vector<std::string>& trainable)>
      choose;
  TrainedChannels channels;  // of what is trained at first; see TrainingSession::set_trained
  // A parameter that is not trained any more loses its optimiser state, which costs memory and tells less the
  // older it is; when it is trained again, it starts as in its first step.
  bool forget_state = false;
  // What is trained will change: kernels and layouts are chosen as for training everything, whatever comes
  // first. Where they are measured, the first set decides.
  bool many_sets = false;
  // Where steps run, shared with others that run in turn; null: memory of its own.
  std::shared_ptr<WorkArena> memory;
  size_t max_plans = 256;  // compiled sets that are kept; the one unused for longest goes first
  // Bytes for what the part below the first trained tensor makes of each of `samples` images, so that later
  // epochs need not compute it again; 0: none. Right only when an image is the same in every epoch.
  size_t feature_bytes = 0, samples = 0;
};

// Whether features are kept, and why not.
enum class FeatureState : uint8_t {
  kOff,       // not asked for
  kNone,      // nothing below what is trained is constant
  kTooLarge,  // than TrainingOptions::feature_bytes
  kFilling,   // not every image has been seen
  kReady,
};

// What a step saves.
enum class Thrift : uint8_t {
  kTime,    // keeps activations, as far as TrainingOptions::memory_limit allows
  kMemory,  // computes everything twice that can be: up to one more forward pass
  kOthers,  // the same, but keeps the activations of the layers that it trains and of those between them
};

// See UpdateEffect.
struct Effect {
  double gain = 0, gradient_squares = 0, weight_squares = 0;
};

// Parameters and optimiser state live in `params` (state under "optimizer/.."), the training's working set.
// Plans over it take turns with the steps; whoever runs beside them reads a snapshot(). Use from one thread.
class TrainingSession {
 public:
  // Starts with what options.choose says.
  static Result<std::unique_ptr<TrainingSession>> create(const Graph& model,
                                                         std::shared_ptr<Parameters> params,
                                                         std::vector<std::shared_ptr<Backend>> backends,
                                                         const TrainingOptions& options);

  const TrainingOptions& options() const { return options_; }
  const Graph& prepared() const { return prepared_; }
  const std::shared_ptr<Parameters>& params() const { return params_; }
  const std::shared_ptr<WorkArena>& memory() const { return memory_; }
  // Every parameter that can be trained, in the order the model reads them.
  const std::vector<std::string>& trainable() const { return trainable_; }
  const std::vector<std::string>& trained() const { return trained_; }
  const TrainedChannels& channels() const { return channels_; }
  Thrift thrift() const { return thrift_; }

  // Exactly these from the next step on, of what `channels` names only these channels. A set seen before
  // costs a lookup. On failure (an unknown name, the memory limit) the old set stays.
  Status set_trained(std::span<const std::string> names, Thrift thrift = Thrift::kTime,
                     const TrainedChannels& channels = {});

  // The memory the next step reads. Which of labels and targets there is depends on the loss.
  Tensor images() const { return input(0); }
  Tensor labels() const { return named_input("labels"); }
  Tensor targets() const { return named_input("targets"); }
  // What else the model or the loss reads, by name; not valid when there is no such input.
  Tensor named_input(std::string_view name) const;
  void set_rate(double rate);

  // One step on what the inputs hold; returns the loss before the update. `samples` says which images these
  // are, so that what is known of them need not be computed; empty: of no use again.
  Result<float> step(Phase phase = Phase::kUpdate, std::span<const uint32_t> samples = {});
  // Of the set that was trained last.
  FeatureState features() const;
  size_t feature_bytes() const;  // that all images need, or would
  Tensor logits() const;         // of the last step
  // Of the last step, which updated: what it did to each trained parameter, in the order of trained().
  // REQUIRES: options().step.optimizer.effects
  std::vector<Effect> effects() const;

  // From now on, steps that update are timed, node by node. What the last one took, with the plan it ran.
  void set_timed(bool timed) { timed_ = timed; }
  bool timed() const { return timed_; }
  const std::vector<double>& step_seconds() const { return seconds_; }
  double last_seconds() const { return last_seconds_; }  // of the last step, timed or not
  const Plan& timed_plan() const { return active_->plan(); }

  // The model's parameters and states as they are between two steps, without what belongs to the optimiser:
  // for whoever reads while the training goes on.
  Result<WeightSnapshot> snapshot() { return params_->snapshot(model_names_); }

  // What training these would need without a limit, as Plan::memory_bytes() counts it.
  Result<size_t> needed_bytes(std::span<const std::string> names);
  // What the current set runs; `phase` as in step().
  Result<const Plan*> plan(Phase phase = Phase::kUpdate);
  // Per-step times. Parameters are as before afterwards.
  Result<Profile> profile(int runs);
  size_t compiled_plans() const { return sessions_.size(); }

 private:
  struct Entry {
    std::string key;
    std::unique_ptr<Session> session;
  };

  // What the constant part of a step makes of each image, for one set of trained tensors.
  struct Features {
    FeatureState state = FeatureState::kNone;
    std::unique_ptr<Session> prefix, rest;
    std::vector<size_t> inputs;  // of `rest`, by output of `prefix`
    std::vector<Tensor> values;  // by output of `prefix`: [samples, ..]
    std::vector<bool> known;     // by sample
    size_t unknown = 0, bytes = 0;
  };

  TrainingSession(std::shared_ptr<Parameters> params, std::vector<std::shared_ptr<Backend>> backends,
                  const TrainingOptions& options)
      : params_(std::move(params)), backends_(std::move(backends)), options_(options) {}
  Status assign_for_all();
  Result<Session*> session(std::span<const std::string> names, Phase phase, Thrift thrift,
                           const TrainedChannels& channels);
  Result<std::unique_ptr<Session>> compile_set(std::span<const std::string> names, Phase phase, Thrift thrift,
                                               const TrainedChannels& channels);
  Result<std::shared_ptr<const Plan>> compile_step(const Graph& graph, size_t twice);
  Result<std::shared_ptr<const Plan>> compile_as_it_is(const Graph& graph);
  Result<std::shared_ptr<const Plan>> compile_within_limit(const Graph& graph,
                                                           const RecomputableActivations& twice,
                                                           size_t tensors);
  bool within_limit(const Plan& plan) const;
  Result<Session*> current(Phase phase);
  Status activate(Session* next);
  Status make_features();
  void drop_features();
  Status find_features(std::span<const uint32_t> samples);
  Result<Session*> session_with_features(std::span<const uint32_t> samples);
  void forget_others(std::span<const std::string> names, const TrainedChannels& channels);
  void drop_oldest();
  Tensor input(size_t index) const;

  std::shared_ptr<Parameters> params_;
  std::vector<std::shared_ptr<Backend>> backends_;
  TrainingOptions options_;
  Graph prepared_;
  std::vector<std::string> model_names_;  // parameters and states of the model
  std::vector<std::string> trainable_, trained_;
  TrainedChannels channels_;
  Thrift thrift_ = Thrift::kTime;
  std::shared_ptr<WorkArena> memory_;
  std::list<Entry> sessions_;  // the one used last first
  std::map<std::string, std::list<Entry>::iterator> by_key_;
  Session* active_ = nullptr;           // ran last; holds what derives from parameters
  size_t switches_ = 0;                 // from one set to another
  int assignment_ = -1;                 // how the first plan's kernels were chosen; the others follow it
  std::unique_ptr<Features> features_;  // of trained_
  float rate_ = 0;
  bool timed_ = false;
  double last_seconds_ = 0;
  std::vector<double> seconds_;
};

}  // namespace limber
