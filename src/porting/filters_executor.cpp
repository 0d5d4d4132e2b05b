#include "porting/filters_executor.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "passes/channel_rank.h"
#include "passes/slice_channels.h"
#include "porting/scale_shrinker.h"
#include "variant/elastic_model.h"

namespace limber {
namespace {

// Of a group's units so many go in a step at most: scores tell how units compare within a group, and a step's
// training can repair so much.
constexpr double kMostOfGroup = 0.5;

// Of shrinking, in natural logarithms, after which all epochs of training are due: half of something is gone.
constexpr double kWholeWay = 0.69;

using KeptUnits = std::vector<std::vector<int64_t>>;

// A unit that may go, and how little is lost with it for what is gained.
struct Candidate {
  size_t group = 0;
  int64_t unit = 0;
  double worth = 0;
};

Result<Model> sliced(const Model& model, const ChannelGroups& groups, const KeptUnits& kept) {
  LIMBER_ASSIGN(SlicedGraph graph, slice_channels(model.graph, groups, kept));
  Model made;
  made.params = std::make_shared<Parameters>();
  LIMBER_TRY(slice_parameters(graph, *model.params, *made.params));
  made.graph = std::move(graph.graph);
  return made;
}

class FiltersExecutor : public Executor {
 public:
  FiltersExecutor(const Workshop& shop, FiltersOptions options) : shop_(shop), options_(std::move(options)) {}

  Status begin(const Model& model) {
    LIMBER_ASSIGN(root_.model, own_copy_of(model));
    const ChannelGroups groups = channel_groups(model.graph);
    if (groups.groups.empty()) return invalid("the model has no filters that could be taken out");
    LIMBER_ASSIGN(root_.cost, cost_of(shop_, root_.model));
    LIMBER_ASSIGN(root_.accuracy, accuracy_of(shop_, root_.model));
    LIMBER_ASSIGN(const Model small, sliced(root_.model, groups, KeptUnits(groups.groups.size(), {0})));
    LIMBER_ASSIGN(least_, cost_of(shop_, small));
    return {};
  }

  const Ported& root() const override { return root_; }
  Result<PortCost> least(const DeviceProfile& /*device*/) override { return least_; }

  Status init(const Goal& goal, const Ported& parent) override {
    goal_ = &goal;
    parent_ = &parent;
    steps_ = 0;
    LIMBER_ASSIGN(model_, own_copy_of(parent.model));
    return {};
  }

  Result<PortCost> measure() override { return cost_of(shop_, model_); }

  Status adjust(const Figures& limits, const Figures& weights) override {
    const ChannelGroups groups = channel_groups(model_.graph);
    LIMBER_ASSIGN(const auto penalties, penalties_of(groups, weights));
    if (options_.step_images > 0) LIMBER_TRY(make_sparse(groups, penalties));
    LIMBER_ASSIGN(const PortCost cost, measure());
    Figures aim = figures_of(cost, goal_->device);
    for (size_t i = 0; i < kConstraints; ++i)
      aim[i] = weights[i] > 0 ? std::max(limits[i], options_.shrink * aim[i]) : limits[i];
    ++steps_;
    return cut(groups, penalties, aim);
  }

  Result<Model> model() override { return model_; }

  Result<Ported> finish() override {
    if (steps_ == 0) return *parent_;
    tell("training");
    LIMBER_TRY(repair());
    Ported done{.model = model_};
    LIMBER_ASSIGN(done.cost, measure());
    LIMBER_ASSIGN(done.accuracy, accuracy_of(shop_, model_));
    return done;
  }

 private:
  void tell(std::string_view what) const {
    if (options_.progress) options_.progress(what);
  }

  // Training as long as the way from the parent was: what was made for that one has learnt already.
  Status repair() {
    LIMBER_ASSIGN(const PortCost cost, measure());
    const Figures before = figures_of(parent_->cost, goal_->device), after = figures_of(cost, goal_->device);
    double way = 0;
    for (size_t i = 0; i < kConstraints; ++i) way = std::max(way, std::log(before[i] / after[i]));
    const double epochs = static_cast<double>(options_.epochs) * std::min(1.0, way / kWholeWay);
    TrainingRun run{.epochs = static_cast<int64_t>(std::ceil(epochs)), .seed = options_.seed};
    if (run.epochs < 1) return {};
    const double images = epochs / static_cast<double>(run.epochs) * static_cast<double>(shop_.data->size());
    run.images = std::max<size_t>(1, static_cast<size_t>(std::ceil(images)));
    return train(shop_, model_, run);
  }

  // What a graph takes on the goal's device, as far as that can be told without compiling it.
  Result<Figures> quick_figures(const Graph& graph) const {
    LIMBER_ASSIGN(const GraphCost cost, limber::cost_of(graph));
    const auto bytes = static_cast<double>(cost.parameter_bytes);
    return figures_of({cost.flops, cost.moved_bytes, bytes, bytes / kParameterBytes}, goal_->device);
  }

  // By group, 0..1: the share of each constraint that goes with a unit, by the constraint's weight, as
  // compared with that of the group where it is most.
  Result<std::vector<double>> penalties_of(const ChannelGroups& groups, const Figures& weights) const {
    LIMBER_ASSIGN(const Figures all, quick_figures(model_.graph));
    std::vector<double> penalties;
    KeptUnits kept = all_units(groups);
    for (size_t g = 0; g < groups.groups.size(); ++g) {
      double& penalty = penalties.emplace_back(0);
      if (kept[g].size() < 2) continue;
      kept[g].pop_back();
      LIMBER_ASSIGN(const SlicedGraph without, slice_channels(model_.graph, groups, kept));
      LIMBER_ASSIGN(const Figures figures, quick_figures(without.graph));
      for (size_t i = 0; i < kConstraints; ++i) penalty += weights[i] * (all[i] - figures[i]) / all[i];
      kept[g].push_back(groups.groups[g].units - 1);
    }
    const double most = *std::max_element(penalties.begin(), penalties.end());
    if (!(most > 0)) return invalid("one filter of each layer is left");
    for (double& penalty : penalties) penalty /= most;
    return penalties;
  }

  Status make_sparse(const ChannelGroups& groups, const std::vector<double>& penalties) {
    tell("shrinking");
    LIMBER_ASSIGN(ScaleShrinker shrinker,
                  ScaleShrinker::make(model_.graph, groups, penalties, options_.sparsity, model_.params));
    const double images = std::ceil(options_.step_images * static_cast<double>(shop_.data->size()));
    return train(shop_, model_,
                 {.images = static_cast<size_t>(images),
                  .seed = options_.seed + static_cast<uint64_t>(steps_),
                  .hooks = {&shrinker}});
  }

  // Those that are worth least for what they take first; of each group at most kMostOfGroup.
  Result<std::vector<Candidate>> candidates(const ChannelGroups& groups,
                                            const std::vector<double>& penalties) const {
    std::vector<Candidate> all;
    for (size_t g = 0; g < groups.groups.size(); ++g) {
      const ChannelGroup& group = groups.groups[g];
      if (group.units < 2 || penalties[g] <= 0) continue;
      LIMBER_ASSIGN(const auto scores, unit_scores(model_.graph, group, *model_.params));
      std::vector<int64_t> order(scores.size());
      std::iota(order.begin(), order.end(), int64_t{0});
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return scores[static_cast<size_t>(a)] < scores[static_cast<size_t>(b)];
      });
      order.resize(
          std::max<size_t>(1, static_cast<size_t>(kMostOfGroup * static_cast<double>(order.size()))));
      for (const int64_t unit : order)
        all.push_back({g, unit, scores[static_cast<size_t>(unit)] / penalties[g]});
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.worth < b.worth; });
    return all;
  }

  static KeptUnits without(const ChannelGroups& groups, std::span<const Candidate> gone) {
    KeptUnits kept = all_units(groups);
    for (const Candidate& one : gone) std::erase(kept[one.group], one.unit);
    return kept;
  }

  // The fewest that must go for `aim`, else all that may.
  Status cut(const ChannelGroups& groups, const std::vector<double>& penalties, const Figures& aim) {
    LIMBER_ASSIGN(const auto all, candidates(groups, penalties));
    size_t low = 1, high = all.size();
    if (high == 0) return invalid("one filter of each layer is left");
    while (low < high) {
      const size_t middle = (low + high) / 2;
      LIMBER_ASSIGN(const bool enough, reaches(groups, std::span(all).first(middle), aim));
      (enough ? high : low) = enough ? middle : middle + 1;
    }
    LIMBER_ASSIGN(model_, sliced(model_, groups, without(groups, std::span(all).first(low))));
    return {};
  }

  Result<bool> reaches(const ChannelGroups& groups, std::span<const Candidate> gone,
                       const Figures& aim) const {
    const KeptUnits kept = without(groups, gone);
    LIMBER_ASSIGN(const SlicedGraph graph, slice_channels(model_.graph, groups, kept));
    LIMBER_ASSIGN(const Figures figures, quick_figures(graph.graph));
    if (!keeps(figures, aim)) return false;
    constexpr auto kMemory = static_cast<size_t>(Constraint::kMemory);
    if (!std::isfinite(aim[kMemory])) return true;
    LIMBER_ASSIGN(const Model smaller, sliced(model_, groups, kept));
    LIMBER_ASSIGN(const double memory, memory_of(shop_, smaller));
    return memory <= aim[kMemory];
  }

  const Workshop& shop_;
  const FiltersOptions options_;
  Ported root_;
  PortCost least_;
  const Goal* goal_ = nullptr;
  const Ported* parent_ = nullptr;
  Model model_;
  int steps_ = 0;
};

}  // namespace

Result<std::unique_ptr<Executor>> make_filters_executor(const Model& model, const Workshop& shop,
                                                        FiltersOptions options) {
  auto made = std::make_unique<FiltersExecutor>(shop, std::move(options));
  LIMBER_TRY(made->begin(model));
  return std::unique_ptr<Executor>(std::move(made));
}

}  // namespace limber
