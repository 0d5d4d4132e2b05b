// How layouts are chosen, with a backend whose costs are known: what is chosen must be the least of all that
// could have been.
#include "runtime/choice.h"

#include <cstring>
#include <limits>
#include <map>

#include "tests/runtime/net.h"

namespace limber::test {
namespace {

constexpr Layout kOther{1};

// Runs unary nodes in two layouts; a node's cost in each is given. A reorder costs one second.
class TwoLayouts : public Backend {
 public:
  struct Cost {
    double plain, other;
  };
  explicit TwoLayouts(std::vector<Cost> costs) : costs_(std::move(costs)) {}

  std::string_view name() const override { return "two"; }
  size_t bytes(const TensorType& type, Layout) const override { return type.bytes(); }
  std::string layout_name(Layout layout) const override { return layout == kPlain ? "plain" : "other"; }
  double reorder_seconds(const TensorType&, Layout, Layout) override { return 1; }
  Result<std::unique_ptr<Kernel>> reorder(const TensorType& type, Layout, Layout) override {
    return make_kernel(
        [n = type.bytes()](const KernelIo& io) { std::memcpy(io.outputs[0], io.inputs[0], n); });
  }
  std::unique_ptr<NodeCompiler> begin(const Graph& graph, const std::vector<bool>&) override {
    return std::make_unique<Compiler>(*this, graph);
  }

 private:
  class Compiler : public NodeCompiler {
   public:
    Compiler(const TwoLayouts& backend, const Graph& graph) : backend_(backend), graph_(graph) {}
    bool supports(NodeId) override { return true; }
    Result<std::vector<Candidate>> candidates(NodeId n, std::span<const Layout>) override {
      const Node& node = graph_.node(n);
      const Cost cost = n.index < backend_.costs_.size() ? backend_.costs_[n.index] : Cost{0, 0};
      std::vector<Candidate> out;
      for (const auto& [layout, seconds] : {std::pair{kPlain, cost.plain}, std::pair{kOther, cost.other}}) {
        Candidate c;
        c.impl = backend_.layout_name(layout);
        c.inputs.assign(node.inputs.size(), layout);
        c.outputs.assign(node.outputs.size(), layout);
        c.seconds = seconds;
        c.token = layout.id + 1;
        out.push_back(std::move(c));
      }
      return out;
    }
    Status prepare(NodeId n, Candidate&) override {
      return graph_.node(n).name == "bad" ? unsupported("cannot be built") : Status();
    }
    Result<std::unique_ptr<Kernel>> compile(NodeId n, const Candidate&) override {
      const Node& node = graph_.node(n);
      const auto count = static_cast<size_t>(graph_.type(node.outputs[0]).shape.elements());
      return make_kernel(
          [count, inputs = node.inputs.size()](const KernelIo& io) {  // the sum of its inputs, and 1
            for (size_t i = 0; i < count; ++i) {
              float sum = 1;
              for (size_t k = 0; k < inputs; ++k) sum += io.in<float>(static_cast<int>(k))[i];
              io.out<float>(0)[i] = sum;
            }
          });
    }

   private:
    const TwoLayouts& backend_;
    const Graph& graph_;
  };
  std::vector<Cost> costs_;
};

// x -> n nodes one after the other -> y.
Graph chain(size_t n) {
  Graph graph;
  ValueId v = graph.add_input("x", {DType::kF32, {4}});
  for (size_t i = 0; i < n; ++i) v = *emit(graph, OpKind::kRelu, {v}, {}, "n" + std::to_string(i));
  graph.add_output(v, "y");
  return graph;
}

CompileContext context_of(const Graph& graph, std::shared_ptr<Backend> backend) {
  CompileContext context{graph, static_values(graph), {std::move(backend)}, {}};
  return context;
}

struct Chosen {
  std::vector<bool> other;  // by node: not plain
  double seconds;
};

Chosen choose(const Graph& graph, const std::vector<TwoLayouts::Cost>& costs) {
  CompileContext context = context_of(graph, std::make_shared<TwoLayouts>(costs));
  context.compilers.push_back(context.backends[0]->begin(context.graph, context.statics));
  const auto found = find_assignments(context);
  EXPECT_TRUE(found.ok()) << found.status().message();
  Chosen chosen{{}, found->front().seconds};
  for (const NodeChoice& node : found->front().nodes)
    chosen.other.push_back(node.candidate.outputs[0] == kOther);
  return chosen;
}

// Of a chain: its nodes in these layouts, reorders at every change, and plain at both ends.
double cost_of(const std::vector<TwoLayouts::Cost>& costs, const std::vector<bool>& other) {
  double sum = 0;
  bool before = false;
  for (size_t i = 0; i < costs.size(); ++i) {
    sum += (other[i] ? costs[i].other : costs[i].plain) + (other[i] != before ? 1 : 0);
    before = other[i];
  }
  return sum + (before ? 1 : 0);
}

TEST(Choice, AReorderMustPay) {
  EXPECT_EQ(choose(chain(1), {{3, 0.5}}).other, std::vector<bool>{true});   // 0.5 and two reorders
  EXPECT_EQ(choose(chain(1), {{2, 0.5}}).other, std::vector<bool>{false});  // would be slower
  // Alone none of them pays; together they share the two reorders.
  EXPECT_EQ(choose(chain(4), std::vector<TwoLayouts::Cost>(4, {1, 0.1})).other, std::vector<bool>(4, true));
}

TEST(Choice, ThePredictedTimeIsThatOfWhatWasChosen) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    std::vector<TwoLayouts::Cost> costs;
    for (uint64_t n = 1 + random.below(7); n > 0; --n)
      costs.push_back({random.uniform(0, 3), random.uniform(0, 3)});
    const Chosen chosen = choose(chain(costs.size()), costs);
    EXPECT_NEAR(chosen.seconds, cost_of(costs, chosen.other), 1e-9) << "seed " << seed;
  }
}

// All 2^n ways of a chain tried: what is chosen is the best of them, or close where descent node by node ends
// before.
TEST(Choice, ComesNearTheBestOfAllWays) {
  int best = 0;
  constexpr int kCases = 100;
  for (uint64_t seed = 0; seed < kCases; ++seed) {
    Random random(seed);
    std::vector<TwoLayouts::Cost> costs;
    for (uint64_t n = 2 + random.below(6); n > 0; --n)
      costs.push_back({random.uniform(0, 3), random.uniform(0, 3)});
    double least = std::numeric_limits<double>::infinity(), uniform = least;
    for (uint32_t way = 0; way < (1u << costs.size()); ++way) {
      std::vector<bool> other;
      for (size_t i = 0; i < costs.size(); ++i) other.push_back((way >> i & 1) != 0);
      const double seconds = cost_of(costs, other);
      least = std::min(least, seconds);
      if (way == 0 || way + 1 == (1u << costs.size())) uniform = std::min(uniform, seconds);
    }
    const double found = choose(chain(costs.size()), costs).seconds;
    EXPECT_GE(found, least - 1e-9);
    EXPECT_LE(found, uniform + 1e-9) << "seed " << seed << ": one layout for all is better";
    best += found <= least + 1e-9;
  }
  EXPECT_GE(best, kCases * 3 / 4);
}

TEST(Choice, ANodeThatCannotBeBuiltIsNamed) {
  Graph graph;
  const ValueId x = graph.add_input("x", {DType::kF32, {4}});
  graph.add_output(*emit(graph, OpKind::kRelu, {x}, {}, "bad"), "y");
  const auto plan =
      compile(graph, std::make_shared<Parameters>(),
              {std::make_shared<TwoLayouts>(std::vector<TwoLayouts::Cost>{})}, {.optimize = false});
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.status().message().find("'bad'"), std::string::npos) << plan.status().message();
}

TEST(Choice, APlanReordersWhereTheChoiceSaysSoAndSaysWhy) {
  const auto backend = std::make_shared<TwoLayouts>(std::vector<TwoLayouts::Cost>{{9, 0}, {9, 0}, {0, 9}});
  const auto plan = *compile(chain(3), std::make_shared<Parameters>(), {backend}, {.optimize = false});
  ASSERT_EQ(plan->steps.size(), 5u) << plan->text();
  EXPECT_EQ(plan->num_reorders(), 2u);
  EXPECT_EQ(plan->steps[0].node, kNoNode);
  EXPECT_EQ(plan->steps[1].impl, "other");
  EXPECT_EQ(plan->steps[3].node, kNoNode);
  EXPECT_EQ(plan->steps[4].impl, "plain");
  for (const Step& step : plan->steps) EXPECT_EQ(step.reason.empty(), step.node != kNoNode) << step.name;
  EXPECT_NEAR(plan->predicted_seconds, 2, 1e-9);
  const auto session = *Session::create(plan);
  ASSERT_TRUE(session->run().ok());
  for (float y : session->output(0).data<float>()) EXPECT_EQ(y, 3);  // each node adds one
}

TEST(Choice, ValuesThatDependOnlyOnWeightsAreStatic) {
  const Graph graph = *parse(R"(graph "g" {
    input %x: f32[4]
    param %w: f32[4]
    param %t: f32[4]
    const %c: f32[4] = {1, 2, 3, 4}
    %a: f32[4] = Mul(%w, %c)
    %b: f32[4] = Neg(%a)
    %d: f32[4] = Add(%x, %b)
    %e: f32[4] = Add(%t, %c)
    output %d as "y"
    output %e as "t" into %t
  })");
  const std::vector<bool> statics = static_values(graph);
  std::map<std::string, bool> by_name;
  for (uint32_t v = 0; v < graph.num_values(); ++v) by_name[graph.values()[v].name] = statics[v];
  for (const char* name : {"w", "c", "a", "b"}) EXPECT_TRUE(by_name[name]) << name;
  for (const char* name : {"x", "t", "d", "e"}) EXPECT_FALSE(by_name[name]) << name << " (t is updated)";
  EXPECT_TRUE(is_static_node(graph, statics, NodeId{0}));
  EXPECT_FALSE(is_static_node(graph, statics, NodeId{2}));
}

}  // namespace
}  // namespace limber::test
