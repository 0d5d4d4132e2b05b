#include "supernet/exits/exit_tuning.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <set>

#include "ops/op_def.h"
#include "passes/graph_copy.h"
#include "passes/splice.h"
#include "supernet/exits/exit_graph.h"
#include "supernet/expand/own_copy.h"
#include "train/evaluate.h"

namespace limber {
namespace {

// Where tuned alternatives start and, last, end.
Result<std::vector<int>> segment_ends(const ElasticModel& model, int blocks) {
  std::set<int> ends = {0, blocks};
  for (const Exit& exit : model.exits) {
    if (exit.after > blocks)
      return invalid("exit '{}' comes after {} blocks, only {} are tuned", exit.name, exit.after, blocks);
    ends.insert(exit.after);
  }
  return std::vector<int>(ends.begin(), ends.end());
}

// All graphs of the variant and all exits in one, for a batch of a fixed size: the logits of the exits, by
// place, and of the model, one below the other.
class JointGraph {
 public:
  JointGraph(const ElasticModel& model, const Variant& variant, int64_t batch)
      : model_(model), variant_(variant), batch_(batch) {}

  Result<Graph> build() {
    LIMBER_TRY(find_parts());
    Graph joint;
    const Graph& first = parts_.front().graph;
    ValueId x =
        joint.add_input(model_.base.value(model_.base.inputs()[0]).name, first.type(first.inputs()[0]));
    std::vector<GraphCopy> copies;
    copies.reserve(parts_.size());
    for (const Part& part : parts_) LIMBER_TRY(copies.emplace_back(part.graph, joint).share_parameters());
    std::vector<ValueId> logits;
    for (size_t p = 0; p < parts_.size(); ++p) {
      copies[p].stand_for(parts_[p].graph.inputs()[0], x);
      for (const Node& node : parts_[p].graph.nodes()) copies[p].node(node);
      const ValueId output = copies[p].value(parts_[p].graph.outputs()[0].value);
      (parts_[p].exit ? logits.emplace_back() : x) = output;
    }
    logits.push_back(x);
    LIMBER_ASSIGN(const ValueId all, emit(joint, OpKind::kConcat, logits, {{"axis", int64_t{0}}}, "all"));
    joint.add_output(all, "logits");
    return joint;
  }

 private:
  struct Part {
    Graph graph;
    bool exit = false;
  };

  Status add(const Graph& graph, bool exit) {
    std::map<std::string, int64_t> dims;
    for (const std::string& name : symbols(graph)) dims[name] = batch_;
    LIMBER_ASSIGN(Graph fixed, limber::bind(graph, dims));
    parts_.push_back({std::move(fixed), exit});
    return {};
  }

  // In the order they run.
  Status find_parts() {
    const int blocks = static_cast<int>(model_.blocks.size());
    for (int b = 0; b < blocks;) {
      for (const Exit& exit : model_.exits) {
        if (exit.after == b) LIMBER_TRY(add(logits_of(exit.graph), true));
      }
      const auto choice = static_cast<size_t>(variant_.choices[static_cast<size_t>(b)]);
      const Alternative& chosen = model_.blocks[static_cast<size_t>(b)].alternatives[choice];
      b += chosen.span;
      LIMBER_TRY(add(b == blocks ? logits_of(chosen.graph) : chosen.graph, false));
    }
    return {};
  }

  const ElasticModel& model_;
  const Variant& variant_;
  const int64_t batch_;
  std::vector<Part> parts_;
};

class TuningTeacher : public ExitTeacher {
 public:
  static Result<std::unique_ptr<ExitTeacher>> make(ElasticModel& model, const Variant& tuned,
                                                   std::shared_ptr<ExitTargets> targets,
                                                   const std::vector<std::shared_ptr<Backend>>& backends,
                                                   const ExitTrainerOptions& options) {
    auto made = std::make_unique<TuningTeacher>();
    made->targets_ = std::move(targets);
    LIMBER_ASSIGN(const Graph joint, JointGraph(model, tuned, options.batch).build());
    TrainingOptions how{.threads = options.threads};
    how.step = {.batch = options.batch,
                .loss = {.kind = LossKind::kCrossEntropy},
                .soft_targets = true,
                .optimizer = options.optimizer,
                .batch_norm = BatchNormMode::kFrozen};
    how.choose = [&](const Graph&, const std::vector<std::string>& trainable) {
      std::vector<std::string> own;
      const auto is_own = [&](const std::string& name) { return !model.base.find(name); };
      std::copy_if(trainable.begin(), trainable.end(), std::back_inserter(own), is_own);
      return Result(own);
    };
    LIMBER_ASSIGN(made->training_, TrainingSession::create(joint, model.params, backends, how));
    return std::unique_ptr<ExitTeacher>(std::move(made));
  }

  Result<double> step(const Batch& batch, double rate) override {
    LIMBER_ASSIGN(const auto targets, targets_->of(batch));
    Tensor images = training_->images(), wanted = training_->targets();
    LIMBER_ASSERT(images.bytes() == batch.images.bytes());
    std::memcpy(images.raw(), batch.images.raw(), images.bytes());
    const auto all = wanted.data<float>();
    for (size_t at = 0; at < all.size(); at += targets.size())
      std::copy(targets.begin(), targets.end(), all.begin() + static_cast<std::ptrdiff_t>(at));
    training_->set_rate(rate);
    LIMBER_ASSIGN(const float loss, training_->step());
    return static_cast<double>(loss);
  }

 private:
  std::shared_ptr<ExitTargets> targets_;
  std::unique_ptr<TrainingSession> training_;
};

}  // namespace

Result<Variant> add_tuned_blocks(ElasticModel& model, int blocks) {
  LIMBER_ASSERT(blocks >= 0 && static_cast<size_t>(blocks) < model.blocks.size());
  LIMBER_ASSIGN(const std::vector<int> ends, segment_ends(model, blocks));
  Variant variant = original_variant(model);
  for (size_t s = 0; s + 1 < ends.size(); ++s) {
    std::vector<Graph> copies;
    for (int b = ends[s]; b < ends[s + 1]; ++b) {
      LIMBER_ASSIGN(Graph copy,
                    own_copy(model.blocks[static_cast<size_t>(b)], kTunedAlternative, *model.params));
      copies.push_back(std::move(copy));
      variant.choices[static_cast<size_t>(b)] = Variant::kCovered;
    }
    std::vector<const Graph*> graphs;
    for (const Graph& copy : copies) graphs.push_back(&copy);
    Block& first = model.blocks[static_cast<size_t>(ends[s])];
    Alternative tuned{
        .name = std::string(kTunedAlternative), .span = ends[s + 1] - ends[s], .error = kCopyError};
    LIMBER_ASSIGN(tuned.graph, chain(graphs));
    variant.choices[static_cast<size_t>(ends[s])] = static_cast<int>(first.alternatives.size());
    first.alternatives.push_back(std::move(tuned));
  }
  return variant;
}

void remove_tuned_blocks(ElasticModel& model, bool keep) {
  for (Block& block : model.blocks) {
    std::erase_if(block.alternatives, [](const Alternative& a) { return a.name == kTunedAlternative; });
    if (keep) continue;
    for (const std::string& name : parameters_of(block.alternatives[0].graph)) {
      const std::string own = copy_prefix(block, kTunedAlternative) + name;
      for (const std::string& state : optimizer_state(own)) model.params->erase(state);
      model.params->erase(own);
    }
  }
}

Result<double> tuned_storage(const ElasticModel& model) {
  std::set<std::string> names;
  const auto add = [&](const Graph& graph) {
    for (std::string& name : parameters_of(graph)) {
      if (name.starts_with("alt/")) names.insert(std::move(name));
    }
  };
  for (const Exit& exit : model.exits) add(exit.graph);
  for (const Block& block : model.blocks) {
    for (const Alternative& alternative : block.alternatives) {
      if (alternative.name == kTunedAlternative) add(alternative.graph);
    }
  }
  return storage_of(model, names);
}

Result<std::unique_ptr<ExitTeacher>> make_exit_tuner(ElasticModel& model, const Variant& tuned,
                                                     std::shared_ptr<ExitTargets> targets,
                                                     const std::vector<std::shared_ptr<Backend>>& backends,
                                                     const ExitTrainerOptions& options) {
  LIMBER_TRY(check_variant(model, tuned));
  return TuningTeacher::make(model, tuned, std::move(targets), backends, options);
}

}  // namespace limber
