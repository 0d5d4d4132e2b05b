#include "supernet/expand/expand.h"

#include <algorithm>
#include <optional>

#include "ops/op_def.h"
#include "passes/cut_points.h"
#include "passes/splice.h"
#include "supernet/operators/operators.h"
#include "supernet/operators/work.h"

namespace limber {
namespace {

// What an operator made for one place, with what speaks for it.
struct Offer {
  const OperatorDef* def = nullptr;
  size_t block = 0;
  std::unique_ptr<Replacement> made;
  int64_t parameters = 0;
  double saved_flops = 0;
  double cost = 0;              // seconds where they are measured, flops otherwise
  std::optional<double> error;  // where somebody judges it

  double worth() const { return saved_flops / static_cast<double>(parameters + 1); }
  // Stands for the same blocks, and is better in one way and worse in none.
  bool dominates(const Offer& other) const {
    if (block != other.block || def->span != other.def->span || !error || !other.error) return false;
    return cost <= other.cost && *error <= *other.error && (cost < other.cost || *error < *other.error);
  }
};

// Parameters of its own alone, for whoever runs it.
Result<std::shared_ptr<Parameters>> own_parameters(const Replacement& made) {
  auto own = std::make_shared<Parameters>();
  for (const std::string& name : made.tensors.names()) {
    LIMBER_ASSIGN(Tensor tensor, made.tensors.get(name));
    own->set(name, std::move(tensor));
  }
  return own;
}

Result<std::vector<const OperatorDef*>> choose_operators(const std::vector<std::string>& names) {
  const auto all = all_operators();
  std::vector<const OperatorDef*> chosen;
  for (const OperatorDef& def : all) {
    if (names.empty() || std::find(names.begin(), names.end(), def.name) != names.end())
      chosen.push_back(&def);
  }
  for (const std::string& name : names) {
    if (std::any_of(all.begin(), all.end(), [&](const OperatorDef& def) { return def.name == name; }))
      continue;
    std::string known;
    for (const OperatorDef& def : all) known += fmt::format("{}{}", known.empty() ? "" : ", ", def.name);
    return invalid("no operator '{}'; there are {}", name, known);
  }
  return chosen;
}

// Each with the original alone.
Result<std::vector<Block>> blocks_of(const Graph& model, const std::vector<BlockRange>& ranges) {
  std::vector<Block> blocks;
  for (const BlockRange& range : ranges) {
    Alternative original{.name = "original"};
    LIMBER_ASSIGN(original.graph, extract(model, range.from, range.to));
    Block block{.name = model.value(range.to).name};
    block.alternatives.push_back(std::move(original));
    blocks.push_back(std::move(block));
  }
  blocks.back().alternatives[0].graph.mutable_outputs()[0].name = model.outputs()[0].name;
  return blocks;
}

class Expander {
 public:
  Expander(const Graph& model, std::shared_ptr<Parameters> params, const ExpandOptions& options)
      : params_(std::move(params)), options_(options) {
    model_.base = model;
    model_.params = params_;
  }

  Result<ElasticModel> run() {
    LIMBER_ASSIGN(const auto operators, choose_operators(options_.operators));
    LIMBER_TRY(add_originals());
    const auto own = static_cast<double>(parameter_elements(model_.base));
    room_ = static_cast<int64_t>((options_.size_limit - 1) * own);
    for (size_t i = 0; i < operators.size(); ++i) {
      if (Status status = collect(*operators[i]); !status.ok())
        return status.in(fmt::format("operator '{}'", operators[i]->name));
      if (options_.progress)
        options_.progress(operators[i]->name, static_cast<int>(i + 1), static_cast<int>(operators.size()));
    }
    drop_dominated();
    // Half of what is left for each, so that the first do not crowd the others out; then whatever fits.
    for (const OperatorDef* def : operators) LIMBER_TRY(take_best(def, room_ / 2));
    LIMBER_TRY(take_best(nullptr, room_));
    for (Block& block : model_.blocks) {
      std::stable_sort(block.alternatives.begin(), block.alternatives.end(),
                       [&](const Alternative& a, const Alternative& b) { return place(a) < place(b); });
    }
    for (auto& [name, tensor] : added_) params_->set(name, std::move(tensor));
    return std::move(model_);
  }

 private:
  Status add_originals() {
    LIMBER_ASSIGN(ranges_, partition(model_.base, options_.partition));
    LIMBER_ASSIGN(model_.blocks, blocks_of(model_.base, ranges_));
    for (const Block& block : model_.blocks) {
      LIMBER_ASSIGN(const double flops, graph_flops(block.alternatives[0].graph));
      flops_.push_back(flops);
    }
    seconds_.resize(ranges_.size());
    return {};
  }

  Status collect(const OperatorDef& def) {
    const auto span = static_cast<size_t>(def.span);
    for (size_t i = 0; i + span <= ranges_.size(); ++i) {
      const auto fixed = [](const BlockRange& range) { return range.fixed; };
      const auto first = ranges_.begin() + static_cast<int64_t>(i);
      if (std::any_of(first, first + def.span, fixed)) continue;
      LIMBER_ASSIGN(Offer offer, offer_of(def, i));
      if (offer.made && !is_there(offer)) offers_.push_back(std::move(offer));
    }
    return {};
  }

  // Two degrees of one operator may round to the same.
  bool is_there(const Offer& offer) const {
    return std::any_of(offers_.begin(), offers_.end(), [&](const Offer& other) {
      return other.block == offer.block && other.def->make == offer.def->make &&
             other.def->span == offer.def->span && other.parameters == offer.parameters &&
             other.saved_flops == offer.saved_flops;
    });
  }

  // `made` is nullptr when nothing comes of it.
  Result<Offer> offer_of(const OperatorDef& def, size_t first) {
    std::vector<const Graph*> blocks;
    double flops = 0;
    for (size_t i = first; i < first + static_cast<size_t>(def.span); ++i) {
      blocks.push_back(&model_.blocks[i].alternatives[0].graph);
      flops += flops_[i];
    }
    Offer offer{.def = &def, .block = first};
    LIMBER_ASSIGN(auto made, def.make({blocks, *params_, factors_}, def.amount));
    if (!made) return offer;
    made->graph.name = fmt::format("{}/{}", model_.blocks[first].name, def.name);
    LIMBER_TRY(detach(*made, *params_, fmt::format("alt/{}/{}/", model_.blocks[first].name, def.name)));
    LIMBER_TRY(check(*made, *blocks.front(), *blocks.back()));
    LIMBER_ASSIGN(const double left, graph_flops(made->graph));
    if (left > (1 - options_.min_gain) * flops) return offer;
    offer.cost = left;
    LIMBER_ASSIGN(const bool faster, is_faster(*made, first, blocks, offer.cost));
    if (!faster) return offer;
    if (options_.judge) {
      LIMBER_ASSIGN(const auto own, own_parameters(*made));
      LIMBER_ASSIGN(const Graph replaced, chain(blocks));
      LIMBER_ASSIGN(offer.error, options_.judge(replaced, made->graph, own));
    }
    offer.parameters = parameter_elements(made->graph);
    offer.saved_flops = flops - left;
    offer.made = std::move(made);
    return offer;
  }

  static Status check(const Replacement& made, const Graph& first, const Graph& last) {
    LIMBER_TRY(verify(made.graph));
    LIMBER_ASSERT(made.graph.inputs().size() == 1 && made.graph.outputs().size() == 1);
    LIMBER_ASSERT(made.graph.type(made.graph.inputs()[0]) == first.type(first.inputs()[0]));
    LIMBER_ASSERT(made.graph.type(made.graph.outputs()[0].value) == last.type(last.outputs()[0].value));
    return {};
  }

  // By the measure; true without one. `cost` becomes the time.
  Result<bool> is_faster(const Replacement& made, size_t first, const std::vector<const Graph*>& blocks,
                         double& cost) {
    if (!options_.measure) return true;
    double before = 0;
    for (size_t i = 0; i < blocks.size(); ++i) {
      auto& seconds = seconds_[first + i];
      if (!seconds) {
        LIMBER_ASSIGN(seconds, options_.measure(*blocks[i], params_));
      }
      before += *seconds;
    }
    LIMBER_ASSIGN(const auto own, own_parameters(made));
    LIMBER_ASSIGN(cost, options_.measure(made.graph, own));
    return cost <= (1 - options_.min_gain) * before;
  }

  void drop_dominated() {
    std::vector<bool> dominated;
    for (const Offer& offer : offers_) {
      dominated.push_back(std::any_of(offers_.begin(), offers_.end(),
                                      [&](const Offer& other) { return other.dominates(offer); }));
    }
    size_t i = 0;
    std::erase_if(offers_, [&](const Offer&) { return dominated[i++]; });
  }

  // Of one operator's offers, or of all that are left, the best that `allowance` parameters are enough for.
  Status take_best(const OperatorDef* def, int64_t allowance) {
    std::vector<Offer*> sorted;
    for (Offer& offer : offers_) {
      if (offer.made && (def == nullptr || offer.def == def)) sorted.push_back(&offer);
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Offer* a, const Offer* b) { return a->worth() > b->worth(); });
    for (Offer* offer : sorted) {
      if (offer->parameters > allowance) continue;
      allowance -= offer->parameters;
      room_ -= offer->parameters;
      LIMBER_TRY(take(*offer));
    }
    return {};
  }

  Status take(Offer& offer) {
    for (const std::string& name : offer.made->tensors.names()) {
      LIMBER_ASSIGN(Tensor tensor, offer.made->tensors.get(name));
      if (params_->contains(name) || !added_.emplace(name, std::move(tensor)).second)
        return invalid("there is a parameter '{}' already; was the model expanded before?", name);
    }
    model_.blocks[offer.block].alternatives.push_back({.name = std::string(offer.def->name),
                                                       .span = offer.def->span,
                                                       .graph = std::move(offer.made->graph),
                                                       .error = offer.error.value_or(0)});
    offer.made.reset();
    return {};
  }

  // The original, then the order of the catalogue.
  static int64_t place(const Alternative& alternative) {
    const auto all = all_operators();
    const auto it = std::find_if(all.begin(), all.end(),
                                 [&](const OperatorDef& def) { return def.name == alternative.name; });
    return it == all.end() ? -1 : it - all.begin();
  }

  const std::shared_ptr<Parameters> params_;
  const ExpandOptions& options_;
  ElasticModel model_;
  std::vector<BlockRange> ranges_;
  std::vector<double> flops_;                   // by block, of the original
  std::vector<std::optional<double>> seconds_;  // the same, once measured
  std::map<std::string, Tensor> added_;
  FactorCache factors_;
  std::vector<Offer> offers_;
  int64_t room_ = 0;  // parameters that may still be added
};

}  // namespace

Result<ElasticModel> expand(const Graph& model, std::shared_ptr<Parameters> params,
                            const ExpandOptions& options) {
  if (!(options.size_limit >= 1))
    return invalid("a size limit of {}, expected 1 or more", options.size_limit);
  if (!(options.min_gain >= 0 && options.min_gain < 1))
    return invalid("a minimal gain of {}, expected 0 to 1", options.min_gain);
  return Expander(model, std::move(params), options).run();
}

Result<ElasticModel> without_alternatives(const Graph& model, std::shared_ptr<Parameters> params) {
  auto ranges = partition(model);
  if (ranges.status().code() == Code::kUnsupported && model.inputs().size() == 1 &&
      model.outputs().size() == 1)
    ranges = std::vector{BlockRange{.from = model.inputs()[0], .to = model.outputs()[0].value}};
  LIMBER_TRY(ranges.status());
  ElasticModel made{.base = model, .blocks = {}, .exits = {}, .params = std::move(params)};
  LIMBER_ASSIGN(made.blocks, blocks_of(model, *ranges));
  return made;
}

}  // namespace limber
