#include "supernet/exits/exit_tuning.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "ops/op_def.h"
#include "passes/graph_copy.h"
#include "passes/splice.h"
#include "supernet/exits/exit_graph.h"
#include "supernet/exits/exit_layer.h"
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

// By their places, as numbers of the model's exits.
std::vector<size_t> exits_by_place(const ElasticModel& model) {
  std::vector<size_t> order(model.exits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return model.exits[a].after < model.exits[b].after; });
  return order;
}

// So many blocks run before an ending.
int blocks_before(const ElasticModel& model, std::span<const size_t> exits, size_t ending) {
  return ending < exits.size() ? model.exits[exits[ending]].after : static_cast<int>(model.blocks.size());
}

// The graphs of the variant and of exits in one, for a batch of a fixed size: the logits of the exits, by
// place, and of the model, one below the other. Of a stage only what it needs.
class JointGraph {
 public:
  JointGraph(const ElasticModel& model, const Variant& variant, const ExitTrainerOptions& options,
             std::optional<TuningStage> stage)
      : model_(model), variant_(variant), options_(options), stage_(stage) {}

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
      const Graph& graph = parts_[p].graph;
      copies[p].stand_for(graph.inputs()[0], x);
      if (graph.inputs().size() > 1) {
        const std::string name = fmt::format("{}{}", kDropoutInput, p);
        copies[p].stand_for(graph.inputs()[1], joint.add_input(name, graph.type(graph.inputs()[1])));
        dropouts_.push_back(name);
      }
      for (const Node& node : graph.nodes()) copies[p].node(node);
      const ValueId output = copies[p].value(graph.outputs()[0].value);
      if (parts_[p].ends) logits.push_back(output);
      if (!parts_[p].exit) x = output;
    }
    LIMBER_ASSIGN(const ValueId all, emit(joint, OpKind::kConcat, logits, {{"axis", int64_t{0}}}, "all"));
    joint.add_output(all, "logits");
    return joint;
  }
  // Of build(): the inputs of dropout.
  const std::vector<std::string>& dropouts() const { return dropouts_; }

 private:
  struct Part {
    Graph graph;
    bool exit = false;  // nothing reads it
    bool ends = false;  // its output are logits that learn
  };

  Status add(const Graph& graph, bool exit, bool ends) {
    std::map<std::string, int64_t> dims;
    for (const std::string& name : symbols(graph)) dims[name] = options_.batch;
    LIMBER_ASSIGN(Graph fixed, limber::bind(graph, dims));
    parts_.push_back({std::move(fixed), exit, ends});
    return {};
  }

  Status add_exit(const Exit& exit) {
    const Graph logits = logits_of(exit.graph);
    if (options_.dropout <= 0) return add(logits, true, true);
    LIMBER_ASSIGN(const Graph dropped, with_dropout(logits));
    return add(dropped, true, true);
  }

  bool learns(size_t ending) const {
    return !stage_ || ending == stage_->ending || (stage_->with_earlier && ending < stage_->ending);
  }

  // In the order they run.
  Status find_parts() {
    const std::vector<size_t> exits = exits_by_place(model_);
    const int blocks = static_cast<int>(model_.blocks.size());
    const size_t last = stage_ ? stage_->ending : exits.size();
    size_t ending = 0;
    for (int b = 0;;) {
      for (; ending < exits.size() && blocks_before(model_, exits, ending) == b; ++ending) {
        if (learns(ending)) LIMBER_TRY(add_exit(model_.exits[exits[ending]]));
        if (ending == last) return {};
      }
      if (b == blocks) return {};
      const auto choice = static_cast<size_t>(variant_.choices[static_cast<size_t>(b)]);
      const Alternative& chosen = model_.blocks[static_cast<size_t>(b)].alternatives[choice];
      b += chosen.span;
      LIMBER_TRY(add(b == blocks ? logits_of(chosen.graph) : chosen.graph, false, b == blocks));
    }
  }

  const ElasticModel& model_;
  const Variant& variant_;
  const ExitTrainerOptions& options_;
  const std::optional<TuningStage> stage_;
  std::vector<Part> parts_;
  std::vector<std::string> dropouts_;
};

class TuningTeacher : public ExitTeacher {
 public:
  TuningTeacher(std::shared_ptr<ExitTargets> targets, const ExitTrainerOptions& options)
      : targets_(std::move(targets)), dropout_(options.dropout), random_(options.seed) {}

  // `frozen`: parameters that stay as they are, beside the model's own. False when all do.
  Result<bool> prepare(ElasticModel& model, const Variant& tuned,
                       const std::vector<std::shared_ptr<Backend>>& backends,
                       const ExitTrainerOptions& options, std::optional<TuningStage> stage,
                       const std::set<std::string>& frozen) {
    JointGraph parts(model, tuned, options, stage);
    LIMBER_ASSIGN(const Graph joint, parts.build());
    dropouts_ = parts.dropouts();
    TrainingOptions how{.threads = options.threads};
    how.step = {.batch = options.batch,
                .loss = {.kind = LossKind::kCrossEntropy},
                .soft_targets = true,
                .optimizer = options.optimizer,
                .batch_norm = BatchNormMode::kFrozen};
    const auto learns = [&](const std::string& name) {
      return !model.base.find(name) && !frozen.contains(name);
    };
    LIMBER_ASSIGN(const Graph prepared, prepare_model(joint, how.step));
    std::vector<std::string> own = trainable_parameters(prepared);
    std::erase_if(own, [&](const std::string& name) { return !learns(name); });
    if (own.empty()) return false;
    how.choose = [&](const Graph&, const std::vector<std::string>&) { return Result(own); };
    LIMBER_ASSIGN(training_, TrainingSession::create(joint, model.params, backends, how));
    return true;
  }

  Result<double> step(const Batch& batch, double rate) override {
    LIMBER_ASSIGN(const auto targets, targets_->of(batch));
    Tensor images = training_->images(), wanted = training_->targets();
    LIMBER_ASSERT(images.bytes() == batch.images.bytes());
    std::memcpy(images.raw(), batch.images.raw(), images.bytes());
    const auto all = wanted.data<float>();
    for (size_t at = 0; at < all.size(); at += targets.size())
      std::copy(targets.begin(), targets.end(), all.begin() + static_cast<std::ptrdiff_t>(at));
    for (const std::string& name : dropouts_)
      draw_dropout(random_, dropout_, training_->named_input(name).data<float>());
    training_->set_rate(rate);
    LIMBER_ASSIGN(const float loss, training_->step());
    return static_cast<double>(loss);
  }

 private:
  std::shared_ptr<ExitTargets> targets_;
  std::unique_ptr<TrainingSession> training_;
  std::vector<std::string> dropouts_;  // inputs
  const double dropout_;
  Random random_;
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

Result<StageParameters> stage_parameters(const ElasticModel& model, const Variant& tuned, size_t ending) {
  const std::vector<size_t> exits = exits_by_place(model);
  if (ending > exits.size())
    return invalid("stage {}, there are {} exits and the end of the model", ending, exits.size());
  const int from = ending == 0 ? 0 : blocks_before(model, exits, ending - 1);
  const int to = blocks_before(model, exits, ending);
  std::set<std::string> own, earlier;
  const auto add = [&](const Graph& graph, bool is_own) {
    for (std::string& name : parameters_of(graph)) {
      if (!model.base.find(name)) (is_own ? own : earlier).insert(std::move(name));
    }
  };
  for (int b = 0; b < to; ++b) {
    const int choice = tuned.choices[static_cast<size_t>(b)];
    if (choice == Variant::kCovered) continue;
    add(model.blocks[static_cast<size_t>(b)].alternatives[static_cast<size_t>(choice)].graph, b >= from);
  }
  for (size_t e = 0; e < exits.size() && e <= ending; ++e) add(model.exits[exits[e]].graph, e == ending);
  return StageParameters{{own.begin(), own.end()}, {earlier.begin(), earlier.end()}};
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
                                                     const ExitTrainerOptions& options,
                                                     std::optional<TuningStage> stage) {
  LIMBER_TRY(check_variant(model, tuned));
  std::set<std::string> frozen;
  if (stage) {
    LIMBER_ASSIGN(const StageParameters parameters, stage_parameters(model, tuned, stage->ending));
    if (!stage->with_earlier) frozen.insert(parameters.earlier.begin(), parameters.earlier.end());
  }
  auto made = std::make_unique<TuningTeacher>(std::move(targets), options);
  LIMBER_ASSIGN(const bool learns, made->prepare(model, tuned, backends, options, stage, frozen));
  return learns ? std::unique_ptr<ExitTeacher>(std::move(made)) : nullptr;
}

}  // namespace limber
