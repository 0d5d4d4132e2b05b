#include "runtime/choice.h"

#include <algorithm>
#include <limits>
#include <set>

namespace limber {

std::vector<bool> static_values(const Graph& graph) {
  std::vector<bool> fixed(graph.num_values(), false);
  const std::vector<bool> updated = graph.updated();
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    const Role role = graph.values()[v].role;
    const bool stored = role == Role::kParameter || role == Role::kState;
    fixed[v] = role == Role::kConstant || (stored && !updated[v]);
  }
  for (const Node& node : graph.nodes()) {
    bool all = true;
    for (ValueId v : node.inputs) all = all && (v == kNoValue || fixed[v.index]);
    for (ValueId v : node.outputs) {
      if (v != kNoValue) fixed[v.index] = all;
    }
  }
  return fixed;
}

bool is_static_node(const Graph& graph, const std::vector<bool>& statics, NodeId node) {
  for (ValueId v : graph.node(node).outputs) {
    if (v != kNoValue) return statics[v.index];
  }
  return false;
}

namespace {

class Chooser {
 public:
  explicit Chooser(const CompileContext& context)
      : context_(context),
        graph_(context.graph),
        statics_(context.statics),
        readers_(context.graph.readers()) {
    is_output_.assign(graph_.num_values(), false);
    for (const Output& o : graph_.outputs()) {
      is_output_[o.value.index] = true;
      if (o.rows != kNoValue) is_output_[o.rows.index] = true;
    }
  }

  Result<std::vector<Assignment>> find() {
    LIMBER_TRY(assign_compilers());
    LIMBER_TRY(start());
    std::set<Layout> layouts;
    int tiers = 0;
    for (const auto& [key, list] : cache_) {
      for (const Candidate& c : list) {
        layouts.insert(c.outputs.begin(), c.outputs.end());
        tiers = std::max(tiers, c.tier);
      }
    }
    std::vector<Assignment> found;
    for (max_tier_ = 0; max_tier_ <= tiers; ++max_tier_) {
      std::vector<Assignment> tier;
      LIMBER_TRY(start());
      LIMBER_TRY(descend());
      add(tier, max_tier_ * kIdsPerTier);
      for (Layout preferred : layouts) {
        LIMBER_TRY(start(preferred));
        LIMBER_TRY(descend());
        add(tier, max_tier_ * kIdsPerTier + 1 + static_cast<int>(preferred.id));
      }
      std::stable_sort(tier.begin(), tier.end(),
                       [](const Assignment& a, const Assignment& b) { return a.seconds < b.seconds; });
      for (Assignment& a : tier) {
        // A trial runs the whole network for a while: only for those that are predicted to come near the
        // best.
        if (a.seconds > 1.3 * tier.front().seconds) break;
        if (!contains(found, a)) found.push_back(std::move(a));
      }
    }
    return found;
  }

  Result<Assignment> find(int id) {
    LIMBER_TRY(assign_compilers());
    max_tier_ = id / kIdsPerTier;
    const int preferred = id % kIdsPerTier - 1;
    LIMBER_TRY(preferred < 0 ? start() : start(Layout{static_cast<uint32_t>(preferred)}));
    LIMBER_TRY(descend());
    return Assignment{choices_, {}, total(), id};
  }

 private:
  // An id says the highest tier allowed and the layout preferred at the start (0: none).
  static constexpr int kIdsPerTier = 64;  // more than backends have layouts of activations

  Status assign_compilers() {
    choices_.resize(graph_.num_nodes());
    std::string missing;
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      for (const auto& compiler : context_.compilers) {
        if (compiler->supports(NodeId{n})) {
          choices_[n].compiler = compiler.get();
          break;
        }
      }
      if (choices_[n].compiler != nullptr) continue;
      const Node& node = graph_.nodes()[n];
      missing += fmt::format("\n  node '{}': {}(", node.name, op_name(node.op));
      for (ValueId v : node.inputs) missing += v == kNoValue ? "_ " : graph_.type(v).to_string() + " ";
      missing += ")";
    }
    if (missing.empty()) return {};
    return unsupported("no backend has a kernel for these operators with these types:{}", missing);
  }

  // Candidates given the layouts around; the list is kept, because making it may mean timing kernels.
  Result<const std::vector<Candidate>*> candidates(uint32_t n, const std::set<Layout>& nearby) {
    const auto key = std::make_pair(n, nearby);
    if (const auto it = cache_.find(key); it != cache_.end()) return &it->second;
    const std::vector<Layout> list(nearby.begin(), nearby.end());
    LIMBER_ASSIGN(auto made, choices_[n].compiler->candidates(NodeId{n}, list));
    LIMBER_ASSERT(!made.empty());
    return &cache_.emplace(key, std::move(made)).first->second;
  }

  void add(std::vector<Assignment>& list, int id) const {
    Assignment assignment{choices_, {}, total(), id};
    if (!contains(list, assignment)) list.push_back(std::move(assignment));
  }

  static bool contains(const std::vector<Assignment>& list, const Assignment& other) {
    return std::any_of(list.begin(), list.end(), [&](const Assignment& a) {
      return std::equal(
          a.nodes.begin(), a.nodes.end(), other.nodes.begin(), [](const NodeChoice& x, const NodeChoice& y) {
            return x.candidate.token == y.candidate.token && x.candidate.inputs == y.candidate.inputs &&
                   x.candidate.outputs == y.candidate.outputs;
          });
    });
  }

  bool skipped(uint32_t n) const { return is_static_node(graph_, statics_, NodeId{n}); }

  // In topological order: what suits the producers best, preferring `preferred` where it is offered.
  Status start(std::optional<Layout> preferred = std::nullopt) {
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      std::set<Layout> nearby = {kPlain};
      if (preferred) nearby.insert(*preferred);
      if (!skipped(n)) {
        for (ValueId v : graph_.nodes()[n].inputs) nearby.insert(produced(v));
      }
      LIMBER_ASSIGN(const auto* list, candidates(n, nearby));
      const Candidate* best = nullptr;
      double best_cost = std::numeric_limits<double>::infinity();
      for (const Candidate& c : *list) {
        if (c.tier > max_tier_ || (skipped(n) && !all_plain(c))) continue;
        double cost = c.seconds + input_cost(n, c);
        const bool favoured =
            preferred && std::find(c.outputs.begin(), c.outputs.end(), *preferred) != c.outputs.end();
        if (favoured) cost *= 1e-3;  // wins over any other, and among favoured ones the order stays
        if (cost < best_cost) best = &c, best_cost = cost;
      }
      LIMBER_ASSERT(best != nullptr);
      choices_[n].candidate = *best;
    }
    return {};
  }

  static bool all_plain(const Candidate& c) {
    const auto plain = [](Layout l) { return l == kPlain; };
    return std::all_of(c.inputs.begin(), c.inputs.end(), plain) &&
           std::all_of(c.outputs.begin(), c.outputs.end(), plain);
  }

  Status descend() {
    constexpr int kMostSweeps = 8;  // ends when nothing changes; a bound for networks where it never would
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      bool changed = false;
      for (uint32_t i = 0; i < graph_.num_nodes(); ++i) {
        const uint32_t n = sweep % 2 == 0 ? static_cast<uint32_t>(graph_.num_nodes()) - 1 - i : i;
        if (skipped(n)) continue;
        LIMBER_ASSIGN(const bool moved, improve(n));
        changed = changed || moved;
      }
      if (!changed) break;
    }
    return {};
  }

  Result<bool> improve(uint32_t n) {
    std::set<Layout> nearby = {kPlain};
    const Node& node = graph_.nodes()[n];
    for (ValueId v : node.inputs) nearby.insert(produced(v));
    for (ValueId v : node.outputs) {
      for (Layout wanted : wanted_layouts(v)) nearby.insert(wanted);
    }
    LIMBER_ASSIGN(const auto* list, candidates(n, nearby));
    const double before = choices_[n].candidate.seconds + input_cost(n, choices_[n].candidate) +
                          output_cost(n, choices_[n].candidate);
    const Candidate* best = nullptr;
    double best_cost = before - 1e-9;  // seconds; ties stay as they are, or sweeps would not end
    for (const Candidate& c : *list) {
      if (c.tier > max_tier_) continue;
      const double cost = c.seconds + input_cost(n, c) + output_cost(n, c);
      if (cost < best_cost) best = &c, best_cost = cost;
    }
    if (best == nullptr) return false;
    choices_[n].candidate = *best;
    return true;
  }

  // The layout a value is produced in. Static values are packed ahead in whatever layout is wanted.
  Layout produced(ValueId v) const {
    if (v == kNoValue || statics_[v.index]) return kPlain;
    const NodeId producer = graph_.value(v).producer;
    if (producer == kNoNode) return kPlain;
    const Node& node = graph_.node(producer);
    const size_t k =
        static_cast<size_t>(std::find(node.outputs.begin(), node.outputs.end(), v) - node.outputs.begin());
    return choices_[producer.index].candidate.outputs[k];
  }

  double reorder_cost(ValueId v, Layout from, Layout to) const {
    if (from == to) return 0;
    return context_.layouts().reorder_seconds(graph_.type(v), from, to);
  }

  // Cost of bringing the inputs into c's layouts; free where another reader asks for the same.
  double input_cost(uint32_t n, const Candidate& c) const {
    double cost = 0;
    const Node& node = graph_.nodes()[n];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == kNoValue || statics_[v.index]) continue;
      const Layout from = produced(v);
      if (c.inputs[i] != from && !shared_with_other(n, v, c.inputs[i]))
        cost += reorder_cost(v, from, c.inputs[i]);
    }
    return cost;
  }

  bool shared_with_other(uint32_t n, ValueId v, Layout layout) const {
    for (NodeId reader : readers_[v.index]) {
      if (reader.index == n || choices_[reader.index].candidate.inputs.empty()) continue;
      const Node& node = graph_.node(reader);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == v && choices_[reader.index].candidate.inputs[i] == layout) return true;
      }
    }
    return false;
  }

  std::set<Layout> wanted_layouts(ValueId v) const {
    std::set<Layout> wanted;
    if (v == kNoValue) return wanted;
    for (NodeId reader : readers_[v.index]) {
      const Candidate& c = choices_[reader.index].candidate;
      if (c.inputs.empty()) continue;
      const Node& node = graph_.node(reader);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == v) wanted.insert(c.inputs[i]);
      }
    }
    if (is_output_[v.index]) wanted.insert(kPlain);
    return wanted;
  }

  double output_cost(uint32_t n, const Candidate& c) const {
    double cost = 0;
    const Node& node = graph_.nodes()[n];
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      for (Layout wanted : wanted_layouts(node.outputs[k]))
        cost += reorder_cost(node.outputs[k], c.outputs[k], wanted);
    }
    return cost;
  }

  double total() const {
    double sum = 0;
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      if (!skipped(n)) sum += choices_[n].candidate.seconds + output_cost(n, choices_[n].candidate);
    }
    for (ValueId v : graph_.inputs()) {
      for (Layout wanted : wanted_layouts(v)) sum += reorder_cost(v, kPlain, wanted);
    }
    return sum;
  }

  const CompileContext& context_;
  const Graph& graph_;
  const std::vector<bool>& statics_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> is_output_;
  std::vector<NodeChoice> choices_;
  int max_tier_ = 0;
  std::map<std::pair<uint32_t, std::set<Layout>>, std::vector<Candidate>> cache_;
};

}  // namespace

Result<std::vector<Assignment>> find_assignments(const CompileContext& context) {
  return Chooser(context).find();
}

Result<Assignment> find_assignment(const CompileContext& context, int id) {
  return Chooser(context).find(id);
}

Status prepare(const Graph& graph, Assignment& assignment) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    NodeChoice& choice = assignment.nodes[n];
    Status status = choice.compiler->prepare(NodeId{n}, choice.candidate);
    if (!status.ok()) return status.in(fmt::format("node '{}'", graph.nodes()[n].name));
  }
  return {};
}

}  // namespace limber
