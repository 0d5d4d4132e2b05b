#include "porting/supernet_executor.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "passes/answers.h"
#include "variant/latency_table.h"

namespace limber {
namespace {

constexpr int kMoves = 4;  // ways from the parent's variant that are tried before others
// Variants that are compiled for their memory: those that search proposes have little enough in parameters.
constexpr int kCompiled = 64;

// Of shrinking, in natural logarithms, that is worth all evaluations; and the share of them that any is
// worth.
constexpr double kWholeSearch = 0.3, kLeastSearch = 0.25;

size_t index_of(Constraint constraint) { return static_cast<size_t>(constraint); }
double or_none(double limit) { return std::isfinite(limit) ? limit : 0; }  // as SearchOptions has it

class SupernetExecutor : public Executor {
 public:
  SupernetExecutor(const ElasticModel& model, const Workshop& shop, SupernetOptions options)
      : model_(model), shop_(shop), options_(std::move(options)), random_(options_.seed) {}

  Status begin() {
    LIMBER_TRY(count_work());
    const Variant original = original_variant(model_);
    LIMBER_ASSIGN(const auto accuracies, options_.evaluate(std::span(&original, 1)));
    known_.push_back({original, 0, accuracies[0]});
    LIMBER_ASSIGN(root_.model, network(original));
    LIMBER_ASSIGN(root_.cost, cost(original));
    root_.variant = print(model_, original);
    root_.accuracy = accuracies[0];
    LIMBER_ASSIGN(least_memory_, smallest_memory());
    return {};
  }

  const Ported& root() const override { return root_; }

  Result<PortCost> least(const DeviceProfile& device) override {
    LIMBER_ASSIGN(PortCost least, cost(cheapest(space_for(device, Constraint::kLatency))));
    LIMBER_ASSIGN(const PortCost small, cost(cheapest(space_for(device, Constraint::kParameters))));
    least.parameters = small.parameters;
    least.memory = least_memory_;
    return least;
  }

  Status init(const Goal& goal, const Ported& parent) override {
    goal_ = &goal;
    parent_ = &parent;
    LIMBER_ASSIGN(variant_, parse_variant(model_, parent.variant));
    return {};
  }

  Result<PortCost> measure() override { return cost(variant_); }

  Status adjust(const Figures& limits, const Figures& weights) override {
    const bool size_first =
        weights[index_of(Constraint::kLatency)] <
        std::max(weights[index_of(Constraint::kMemory)], weights[index_of(Constraint::kParameters)]);
    const Constraint first = size_first ? Constraint::kParameters : Constraint::kLatency;
    SearchSpace space = space_for(goal_->device, first);
    SearchOptions how = search_options(limits, first);
    scale(space, how);
    how.known = known_by(space);
    const Band band{.low = how.nearby * how.latency,
                    .high = how.latency,
                    .max_flops = how.max_flops,
                    .max_parameter_bytes = how.max_parameter_bytes};
    const auto near = std::count_if(how.known.begin(), how.known.end(), [&](const Scored& one) {
      return band.allows(space.cost(one.variant)) && one.seconds >= band.low;
    });
    how.max_evaluations = std::max(1, evaluations(limits) - static_cast<int>(near));
    for (int i = 0; i < kMoves; ++i) how.seeds.push_back(move_near(space, band, variant_, random_));
    LIMBER_ASSIGN(const SearchResult found, search_variants(space, evaluator(), how));
    if (found.stopped) return error(Code::kResourceExhausted, "stopped");
    return take_best(limits);
  }

  Result<Model> model() override { return network(variant_); }

  Result<Ported> finish() override {
    Ported done{.variant = print(model_, variant_)};
    if (done.variant == parent_->variant) return *parent_;
    LIMBER_ASSIGN(done.model, network(variant_));
    LIMBER_ASSIGN(done.cost, cost(variant_));
    const auto known = std::find_if(known_.begin(), known_.end(),
                                    [this](const Scored& one) { return one.variant == variant_; });
    if (known != known_.end()) done.accuracy = known->accuracy;
    if (options_.epochs < 1) return done;
    LIMBER_TRY(inherit(done.model));
    LIMBER_TRY(train(shop_, done.model, {.epochs = options_.epochs, .seed = options_.seed}));
    LIMBER_ASSIGN(done.accuracy, accuracy_of(shop_, done.model));
    return done;
  }

 private:
  Result<Model> network(const Variant& variant) const {
    Model made;
    LIMBER_ASSIGN(const Graph graph, materialize(model_, variant));
    made.graph = split_outputs(graph);
    made.params = model_.params;
    return own_copy_of(made);
  }

  Result<PortCost> cost(const Variant& variant) {
    const std::string name = print(model_, variant);
    if (const auto found = costs_.find(name); found != costs_.end()) return found->second;
    LIMBER_ASSIGN(const Model made, network(variant));
    LIMBER_ASSIGN(const PortCost cost, limber::cost_of(shop_, made));
    return costs_[name] = cost;
  }

  // As many as the way from the parent is long: near it there is less that is new. All as long as little is
  // known at all.
  int evaluations(const Figures& limits) const {
    if (known_.size() < static_cast<size_t>(options_.evaluations)) return options_.evaluations;
    const Figures before = figures_of(parent_->cost, goal_->device);
    double way = 0;
    for (size_t i = 0; i < kConstraints; ++i) way = std::max(way, std::log(before[i] / limits[i]));
    return static_cast<int>(
        std::ceil(std::clamp(way / kWholeSearch, kLeastSearch, 1.0) * options_.evaluations));
  }

  // What the parent learnt of the same parameters.
  Status inherit(Model& model) const {
    for (const std::string& name : model.params->names()) {
      if (!parent_->model.params->contains(name)) continue;
      LIMBER_ASSIGN(const Tensor tensor, parent_->model.params->get(name));
      LIMBER_ASSIGN(const TensorType type, model.params->type(name));
      if (tensor.type() == type) model.params->set(name, tensor);
    }
    return {};
  }

  // What every alternative takes, on whatever device.
  Status count_work() {
    LatencyTable table;
    for (const Block& block : model_.blocks) {
      std::vector<PortCost>& costs = work_.emplace_back();
      for (const Alternative& one : block.alternatives) {
        LIMBER_ASSIGN(const GraphCost cost, limber::cost_of(one.graph));
        costs.push_back({.operations = cost.flops, .moved_bytes = cost.moved_bytes});
      }
      table.blocks.emplace_back(costs.size());
    }
    for (const Exit& exit : model_.exits) table.exits.push_back({.after = exit.after});
    LIMBER_ASSIGN(space_, make_search_space(model_, table));
    return {};
  }

  // A search keeps near one limit and merely below two others. `first` stands where the library has seconds;
  // the device's latency stands for operations.
  SearchSpace space_for(const DeviceProfile& device, Constraint first) const {
    SearchSpace space = space_;
    for (size_t b = 0; b < work_.size(); ++b) {
      for (size_t c = 0; c < work_[b].size(); ++c) {
        ChoiceCost& one = space.blocks[b][c];
        one.flops = device.latency(work_[b][c]);
        one.seconds = first == Constraint::kLatency ? one.flops : one.parameter_bytes;
      }
    }
    return space;
  }

  // Bytes where seconds are expected: brought to their size, in which the library's thresholds are at home.
  void scale(SearchSpace& space, SearchOptions& how) const {
    const double whole = space.cost(space.original()).seconds;
    for (auto& block : space.blocks)
      for (ChoiceCost& one : block) one.seconds /= whole;
    how.latency /= whole;
  }

  SearchOptions search_options(const Figures& limits, Constraint first) {
    SearchOptions how;
    const double latency = limits[index_of(Constraint::kLatency)];
    const double bytes = std::min(kParameterBytes * limits[index_of(Constraint::kParameters)],
                                  limits[index_of(Constraint::kMemory)]);
    how.latency = first == Constraint::kLatency ? latency : bytes;
    how.max_flops = first == Constraint::kLatency ? 0 : or_none(latency);
    how.max_parameter_bytes = first == Constraint::kLatency ? or_none(bytes) : 0;
    how.seed = options_.seed;
    how.seeds = options_.seeds;
    how.stop = shop_.stop;
    how.progress = [this](const SearchProgress& p) {
      if (options_.progress) options_.progress(p.evaluations, p.max_evaluations);
    };
    return how;
  }

  EvaluateVariants evaluator() {
    return [this](std::span<const Variant> variants) -> Result<std::vector<double>> {
      LIMBER_ASSIGN(auto accuracies, options_.evaluate(variants));
      for (size_t i = 0; i < variants.size(); ++i) known_.push_back({variants[i], 0, accuracies[i]});
      return accuracies;
    };
  }

  std::vector<Scored> known_by(const SearchSpace& space) const {
    std::vector<Scored> known = known_;
    for (Scored& one : known) one.seconds = space.cost(one.variant).seconds;
    return known;
  }

  // Of all that were evaluated, for whatever goal, the most accurate within the limits; of equal ones the
  // fastest.
  Status take_best(const Figures& limits) {
    std::vector<std::pair<Figures, const Scored*>> within;
    Figures sums = limits;
    sums[index_of(Constraint::kMemory)] = std::numeric_limits<double>::infinity();
    for (const Scored& one : known_) {
      LIMBER_ASSIGN(const GraphCost graph, limber::cost_of(model_, one.variant));
      const PortCost cost{graph.flops, graph.moved_bytes, 0,
                          static_cast<double>(graph.parameter_bytes) / kParameterBytes};
      const Figures figures = figures_of(cost, goal_->device);
      if (keeps(figures, sums)) within.emplace_back(figures, &one);
    }
    std::stable_sort(within.begin(), within.end(), [](const auto& a, const auto& b) {
      return std::pair(-a.second->accuracy, a.first) < std::pair(-b.second->accuracy, b.first);
    });
    int compiled = 0;
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [figures, one] : within) {
      if (compiled++ == kCompiled) break;
      LIMBER_ASSIGN(const PortCost whole, cost(one->variant));
      least = std::min(least, whole.memory);
      if (!keeps(figures_of(whole, goal_->device), limits)) continue;
      variant_ = one->variant;
      return {};
    }
    return invalid("of {} variants within the other limits none needs less than {:.0f} bytes", within.size(),
                   least);
  }

  Variant cheapest(const SearchSpace& space) const {
    // By block the least seconds from there to the end.
    std::vector<double> rest(space.size() + 1, 0);
    std::vector<int> choice(space.size(), 0);
    for (size_t b = space.size(); b-- > 0;) {
      rest[b] = std::numeric_limits<double>::infinity();
      for (size_t c = 0; c < space.blocks[b].size(); ++c) {
        const ChoiceCost& one = space.blocks[b][c];
        const size_t end = b + static_cast<size_t>(one.span);
        if (one.tied || end > space.size() || one.seconds + rest[end] >= rest[b]) continue;
        rest[b] = one.seconds + rest[end];
        choice[b] = static_cast<int>(c);
      }
    }
    Variant variant = space.original();
    for (size_t b = 0; b < space.size();) {
      const int span = space.at(b, choice[b]).span;
      variant.choices[b] = choice[b];
      for (int i = 1; i < span; ++i) variant.choices[b + static_cast<size_t>(i)] = Variant::kCovered;
      b += static_cast<size_t>(span);
    }
    return variant;
  }

  Result<double> smallest_memory() {
    const DeviceProfile any{.operations_per_s = 1, .bytes_per_s = 1};
    LIMBER_ASSIGN(const PortCost small, cost(cheapest(space_for(any, Constraint::kParameters))));
    LIMBER_ASSIGN(const PortCost fast, cost(cheapest(space_for(any, Constraint::kLatency))));
    return std::min(small.memory, fast.memory);
  }

  const ElasticModel& model_;
  const Workshop& shop_;
  const SupernetOptions options_;
  Random random_;
  Ported root_;
  double least_memory_ = 0;
  SearchSpace space_;                        // without seconds
  std::vector<std::vector<PortCost>> work_;  // by block and alternative
  std::vector<Scored> known_;                // on any device: seconds are not looked at
  std::map<std::string, PortCost> costs_;    // by variant
  const Goal* goal_ = nullptr;
  const Ported* parent_ = nullptr;
  Variant variant_;
};

}  // namespace

Result<std::unique_ptr<Executor>> make_supernet_executor(const ElasticModel& model, const Workshop& shop,
                                                         SupernetOptions options) {
  auto made = std::make_unique<SupernetExecutor>(model, shop, std::move(options));
  LIMBER_TRY(made->begin());
  return std::unique_ptr<Executor>(std::move(made));
}

}  // namespace limber
