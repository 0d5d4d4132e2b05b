#include "supernet/operators/operators.h"

#include <set>

#include "supernet/operators/work.h"
#include "tests/supernet/gradients.h"
#include "tests/supernet/models.h"

namespace limber {
namespace {

constexpr std::string_view kBasicBlock = R"(graph "basic" {
  input %x: f32[N,16,9,9]
  param %w1: f32[32,16,3,3]
  param %s1: f32[32]
  param %b1: f32[32]
  param %m1: f32[32]
  param %var1: f32[32]
  param %w2: f32[16,32,3,3]
  param %b2: f32[16]
  %a: f32[N,32,9,9] = Conv(%x, %w1) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1]}
  %n: f32[N,32,9,9] = BatchNorm(%a, %s1, %b1, %m1, %var1) {epsilon=1e-05}
  %r: f32[N,32,9,9] = Relu(%n)
  %c: f32[N,16,9,9] = Conv(%r, %w2, %b2) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1]}
  %s: f32[N,16,9,9] = Add(%c, %x)
  %y: f32[N,16,9,9] = Relu(%s)
  output %y as "y"
}
)";

constexpr std::string_view kStridedBlock = R"(graph "strided" {
  input %x: f32[N,8,10,7]
  param %w1: f32[16,8,3,3]
  param %w2: f32[24,16,5,5]
  %a: f32[N,16,5,4] = Conv(%x, %w1) {strides=[2,2], pads=[1,1,1,1], dilations=[1,1]}
  %r: f32[N,16,5,4] = Relu(%a)
  %y: f32[N,24,5,4] = Conv(%r, %w2) {strides=[1,1], pads=[2,2,2,2], dilations=[1,1]}
  output %y as "y"
}
)";

constexpr std::string_view kMlpBlock = R"(graph "mlp" {
  input %x: f32[N,5,24]
  param %w1: f32[24,96]
  param %b1: f32[96]
  param %w2: f32[24,96]
  param %b2: f32[24]
  %a: f32[N,5,96] = MatMul(%x, %w1)
  %b: f32[N,5,96] = Add(%a, %b1)
  %r: f32[N,5,96] = Relu(%b)
  %t: f32[96,24] = Transpose(%w2) {perm=[1,0]}
  %c: f32[N,5,24] = MatMul(%r, %t)
  %d: f32[N,5,24] = Add(%b2, %c)
  %y: f32[N,5,24] = Add(%d, %x)
  output %y as "y"
}
)";

constexpr std::string_view kGemmBlock = R"(graph "gemm" {
  input %x: f32[N,40]
  param %w: f32[30,40]
  param %b: f32[30]
  %y: f32[N,30] = Gemm(%x, %w, %b) {alpha=0.5, trans_b=1}
  output %y as "y"
}
)";

using Make = Result<ReplacementPtr> (*)(const BlockView&, double);

// What the operator makes of the block, under the prefix "alt/"; nullptr when nothing.
ReplacementPtr make(Make operation, const test::Net& net, double amount) {
  FactorCache factors;
  const Graph* blocks[] = {&net.graph};
  auto made = operation({blocks, *net.params, factors}, amount);
  EXPECT_TRUE(made.ok()) << made.status().message();
  if (!made.ok() || !*made) return nullptr;
  const Status detached = detach(**made, *net.params, "alt/");
  EXPECT_TRUE(detached.ok()) << detached.message();
  const Status verified = verify((*made)->graph);
  EXPECT_TRUE(verified.ok()) << verified.message();
  for (const Value& value : (*made)->graph.values()) {
    EXPECT_TRUE(value.role != Role::kParameter || value.name.starts_with("alt/")) << value.name;
  }
  return *std::move(made);
}

Tensor run_replacement(const Replacement& made) {
  const auto params = std::make_shared<Parameters>();
  for (const std::string& name : made.tensors.names()) params->set(name, *made.tensors.get(name));
  return test::run_graph(made.graph, params, 2);
}

double flops_of(const Graph& graph) { return *graph_flops(graph); }

double squared_share(const Tensor& found, const Tensor& expected) {
  double error = 0, size = 0;
  for (int64_t i = 0; i < found.elements(); ++i) {
    const double e = element_as_double(expected, i), d = element_as_double(found, i) - e;
    error += d * d;
    size += e * e;
  }
  return error / size;
}

TEST(Shrink, KeepingAllIsTheBlock) {
  for (const auto text : {kBasicBlock, kStridedBlock, kMlpBlock}) {
    const test::Net net = test::make_net(text);
    const auto made = make(make_shrunk, net, 1);
    ASSERT_TRUE(made);
    test::expect_close(run_replacement(*made), test::run_graph(net.graph, net.params, 2), 1e-6,
                       net.graph.name);
  }
}

TEST(Shrink, HalfTheInnerChannelsHalveTheWork) {
  for (const auto text : {kBasicBlock, kMlpBlock}) {
    const test::Net net = test::make_net(text);
    const auto made = make(make_shrunk, net, 0.5);
    ASSERT_TRUE(made);
    EXPECT_NEAR(flops_of(made->graph) / flops_of(net.graph), 0.5, 0.03);
    EXPECT_TRUE(run_replacement(*made).valid());
  }
}

TEST(Shrink, NothingInsideGivesNothing) { EXPECT_FALSE(make(make_shrunk, test::make_net(kGemmBlock), 0.5)); }

TEST(Skip, OnlyWhereTheInputIsAddedTo) {
  const test::Net net = test::make_net(kBasicBlock);
  const auto made = make(make_skip, net, 0);
  ASSERT_TRUE(made);
  EXPECT_EQ(parameter_elements(made->graph), 0);
  const auto types = [](const Graph& g) {
    return std::pair(g.type(g.inputs()[0]), g.type(g.outputs()[0].value));
  };
  EXPECT_EQ(types(made->graph), types(net.graph));
  EXPECT_FALSE(make(make_skip, test::make_net(kStridedBlock), 0));
  EXPECT_FALSE(make(make_skip, test::make_net(kGemmBlock), 0));
}

TEST(Merge, TheBlockThatChangesTheTypeStands) {
  const test::Net same = test::make_net(kBasicBlock);
  test::Net changing = test::make_net(R"(graph "changing" {
  input %x: f32[N,16,9,9]
  param %v: f32[4,16,1,1]
  %y: f32[N,4,9,9] = Conv(%x, %v) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1]}
  output %y as "y"
}
)");
  FactorCache factors;
  Parameters params;
  const Graph* blocks[] = {&same.graph, &changing.graph};
  const auto merged = make_merged({blocks, params, factors}, 0);
  ASSERT_TRUE(merged.ok());
  ASSERT_TRUE(*merged);
  EXPECT_EQ(hash((*merged)->graph), hash(changing.graph));
  const Graph* twice[] = {&changing.graph, &changing.graph};
  const auto none = make_merged({twice, params, factors}, 0);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(*none);
  const Graph* equal[] = {&same.graph, &same.graph};
  const auto largest = make_merged({equal, params, factors}, 0);
  ASSERT_TRUE(largest.ok());
  EXPECT_EQ(hash((*largest)->graph), hash(same.graph));
}

TEST(LowRank, FullRankIsTheBlock) {
  for (const auto text : {kBasicBlock, kStridedBlock, kMlpBlock, kGemmBlock}) {
    const test::Net net = test::make_net(text);
    const auto made = make(make_low_rank, net, 1);
    ASSERT_TRUE(made);
    EXPECT_NE(hash(made->graph), hash(net.graph));
    test::expect_close(run_replacement(*made), test::run_graph(net.graph, net.params, 2), 1e-4,
                       net.graph.name);
  }
}

TEST(LowRank, FlopsFallToTheShareAndTheErrorGrows) {
  for (const auto text : {kBasicBlock, kStridedBlock, kMlpBlock, kGemmBlock}) {
    const test::Net net = test::make_net(text);
    const Tensor expected = test::run_graph(net.graph, net.params, 2);
    double before = 0;
    for (const double share : {0.5, 0.25}) {
      const auto made = make(make_low_rank, net, share);
      ASSERT_TRUE(made);
      EXPECT_NEAR(flops_of(made->graph) / flops_of(net.graph), share, 0.15) << net.graph.name;
      const double error = squared_share(run_replacement(*made), expected);
      EXPECT_GT(error, before);
      before = error;
    }
  }
}

TEST(DepthwiseSeparable, SeparableWeightsAreReproduced) {
  const test::Net net = test::make_net(kStridedBlock);
  Random random(9);
  for (const char* name : {"w1", "w2"}) {
    Tensor w = *net.params->writable(name);
    const auto dims = w.shape().dims();
    const int64_t window = dims[2] * dims[3];
    std::vector<double> windows, mixing;
    for (int64_t i = 0; i < dims[1] * window; ++i) windows.push_back(random.normal());
    for (int64_t i = 0; i < dims[0] * dims[1]; ++i) mixing.push_back(random.normal());
    for (int64_t i = 0; i < w.elements(); ++i) {
      const int64_t pair = i / window, c = pair % dims[1];
      w.data<float>()[static_cast<size_t>(i)] = static_cast<float>(
          mixing[static_cast<size_t>(pair)] * windows[static_cast<size_t>(c * window + i % window)]);
    }
  }
  const auto made = make(make_depthwise_separable, net, 0);
  ASSERT_TRUE(made);
  EXPECT_LT(flops_of(made->graph), 0.3 * flops_of(net.graph));
  test::expect_close(run_replacement(*made), test::run_graph(net.graph, net.params, 2), 1e-4, "separable");
}

TEST(DepthwiseSeparable, NoNearbyWeightsAreCloser) {
  const test::Net net = test::make_net(kStridedBlock);
  const auto made = make(make_depthwise_separable, net, 0);
  ASSERT_TRUE(made);
  const Tensor w = *net.params->get("w1");
  const auto distance = [&](const Tensor& windows, const Tensor& mixing) {
    double sum = 0;
    for (int64_t i = 0; i < w.elements(); ++i) {
      const int64_t pair = i / 9, c = pair % 8;
      const double d = element_as_double(w, i) -
                       element_as_double(mixing, pair) * element_as_double(windows, c * 9 + i % 9);
      sum += d * d;
    }
    return sum;
  };
  const Tensor windows = *made->tensors.get("alt/w1.depthwise"),
               mixing = *made->tensors.get("alt/w1.pointwise");
  const double least = distance(windows, mixing);
  Random random(10);
  for (int i = 0; i < 50; ++i) {
    Tensor a = *windows.copy(), b = *mixing.copy();
    for (float& x : a.data<float>()) x += static_cast<float>(0.01 * random.normal());
    for (float& x : b.data<float>()) x += static_cast<float>(0.01 * random.normal());
    EXPECT_GT(distance(a, b), least);
  }
}

// With weights that stay within groups nothing is lost, whatever the shuffle does in between.
TEST(GroupedShuffle, WeightsWithinGroupsAreReproduced) {
  for (const int64_t groups : {2, 4}) {
    const test::Net net = test::make_net(kBasicBlock);
    const auto keep_groups = [&](const std::string& name, bool shuffled) {
      Tensor w = *net.params->writable(name);
      const auto dims = w.shape().dims();
      const int64_t width = dims[1] / groups;
      for (int64_t i = 0; i < w.elements(); ++i) {
        const int64_t o = i / 9 / dims[1], c = i / 9 % dims[1];
        const int64_t place = shuffled ? c % width * groups + c / width : c;
        if (o / (dims[0] / groups) != place / width) w.data<float>()[static_cast<size_t>(i)] = 0;
      }
    };
    keep_groups("w1", false);
    keep_groups("w2", true);
    const auto made = make(make_grouped_shuffle, net, 1.0 / static_cast<double>(groups));
    ASSERT_TRUE(made);
    EXPECT_NEAR(flops_of(made->graph) / flops_of(net.graph), 1.0 / static_cast<double>(groups), 0.03);
    test::expect_close(run_replacement(*made), test::run_graph(net.graph, net.params, 2), 1e-5, "grouped");
  }
}

TEST(Fire, ReproducesWhatFitsIt) {
  const test::Net net = test::make_net(kStridedBlock);
  for (const char* name : {"w1", "w2"}) {  // few input directions, and only the middle for one half
    Tensor w = *net.params->writable(name);
    const auto dims = w.shape().dims();
    const int64_t window = dims[2] * dims[3];
    for (int64_t i = 0; i < w.elements(); ++i) {
      const int64_t o = i / window / dims[1], c = i / window % dims[1], k = i % window;
      float& x = w.data<float>()[static_cast<size_t>(i)];
      if (o < dims[0] / 2 && k != window / 2) x = 0;
      if (c > 0) x = static_cast<float>(c) * w.data<float>()[static_cast<size_t>((o * dims[1]) * window + k)];
    }
  }
  const auto made = make(make_fire, net, 0.35);
  ASSERT_TRUE(made);
  EXPECT_NEAR(flops_of(made->graph) / flops_of(net.graph), 0.35, 0.12);
  test::expect_close(run_replacement(*made), test::run_graph(net.graph, net.params, 2), 1e-4, "fire");
}

// Weights of few directions on both sides.
void keep_directions(const test::Net& net, const std::string& name, int64_t inputs, int64_t outputs) {
  Tensor w = *net.params->writable(name);
  const auto dims = w.shape().dims();
  const int64_t window = w.elements() / dims[0] / dims[1];
  Random random(11);
  Matrix restore(dims[0], outputs), core(outputs, inputs * window), reduce(inputs, dims[1]);
  for (Matrix* m : {&restore, &core, &reduce}) {
    for (double& x : m->data) x = random.uniform(-1, 1);
  }
  const Matrix rows = product(restore, core);  // [outputs, inputs kept * window]
  for (int64_t i = 0; i < w.elements(); ++i) {
    const int64_t o = i / window / dims[1], c = i / window % dims[1], k = i % window;
    double sum = 0;
    for (int64_t r = 0; r < inputs; ++r) sum += rows.at(o, r * window + k) * reduce.at(r, c);
    w.data<float>()[static_cast<size_t>(i)] = static_cast<float>(sum);
  }
}

TEST(Bottleneck, ReproducesWhatFitsIt) {
  for (const auto text : {kBasicBlock, kStridedBlock}) {
    const test::Net net = test::make_net(text);
    for (const char* name : {"w1", "w2"}) keep_directions(net, name, 2, 3);
    const auto made = make(make_bottleneck, net, 0.35);
    ASSERT_TRUE(made);
    EXPECT_NEAR(flops_of(made->graph) / flops_of(net.graph), 0.35, 0.12) << net.graph.name;
    test::expect_close(run_replacement(*made), test::run_graph(net.graph, net.params, 2), 1e-4,
                       net.graph.name);
  }
}

TEST(Bottleneck, AllOfTheWorkIsTheBlockAndLessHasLargerErrors) {
  const test::Net net = test::make_net(kBasicBlock);
  const Tensor expected = test::run_graph(net.graph, net.params, 2);
  double before = 0;
  for (const double share : {4.0, 0.6, 0.3, 0.15}) {  // 4: more than the channels there are
    const auto made = make(make_bottleneck, net, share);
    ASSERT_TRUE(made);
    const double error = squared_share(run_replacement(*made), expected);
    EXPECT_GE(error, before) << share;
    if (share > 1) {
      EXPECT_LT(error, 1e-8);
    }
    before = error;
  }
  EXPECT_LT(before, 1);
}

TEST(Bottleneck, OnlyWindowsHaveOne) { EXPECT_FALSE(make(make_bottleneck, test::make_net(kMlpBlock), 0.35)); }

// The middle of the window may be anything, all else has few directions.
TEST(DenseConnection, ReproducesWhatFitsIt) {
  for (const auto text : {kBasicBlock, kStridedBlock}) {
    const test::Net net = test::make_net(text);
    Random random(12);
    for (const char* name : {"w1", "w2"}) {
      keep_directions(net, name, net.params->get(name)->shape().dim(1), 2);
      Tensor w = *net.params->writable(name);
      const auto dims = w.shape().dims();
      const int64_t window = dims[2] * dims[3];
      for (int64_t i = window / 2; i < w.elements(); i += window)
        w.data<float>()[static_cast<size_t>(i)] = static_cast<float>(random.uniform(-1, 1));
    }
    const auto made = make(make_dense_connection, net, 0.35);
    ASSERT_TRUE(made);
    EXPECT_NEAR(flops_of(made->graph) / flops_of(net.graph), 0.35, 0.12) << net.graph.name;
    test::expect_close(run_replacement(*made), test::run_graph(net.graph, net.params, 2), 1e-4,
                       net.graph.name);
  }
}

TEST(DenseConnection, NoNearbyWeightsAreCloser) {
  const test::Net net = test::make_net(kStridedBlock);
  const auto made = make(make_dense_connection, net, 0.35);
  ASSERT_TRUE(made);
  const Tensor w = *net.params->get("w1"), grow = *made->tensors.get("alt/w1.grow"),
               join = *made->tensors.get("alt/w1.join");
  const int64_t fresh = grow.shape().dim(0);
  const auto distance = [&](const Tensor& grown, const Tensor& joined) {
    double sum = 0;
    for (int64_t i = 0; i < w.elements(); ++i) {
      const int64_t o = i / 9 / 8, c = i / 9 % 8, k = i % 9;
      double got = k == 4 ? element_as_double(joined, o * (8 + fresh) + c) : 0;
      for (int64_t g = 0; g < fresh; ++g) {
        got += element_as_double(joined, o * (8 + fresh) + 8 + g) *
               element_as_double(grown, (g * 8 + c) * 9 + k);
      }
      sum += (element_as_double(w, i) - got) * (element_as_double(w, i) - got);
    }
    return sum;
  };
  const double least = distance(grow, join);
  Random random(10);
  for (int i = 0; i < 50; ++i) {
    Tensor a = *grow.copy(), b = *join.copy();
    for (float& x : a.data<float>()) x += static_cast<float>(0.01 * random.normal());
    for (float& x : b.data<float>()) x += static_cast<float>(0.01 * random.normal());
    EXPECT_GT(distance(a, b), least);
  }
}

// What every operator makes can be taught: its gradients are difference quotients.
TEST(Catalogue, GradientsAreDifferenceQuotients) {
  constexpr float kStep = 2e-3F;
  const test::Net net = test::make_net(kStridedBlock);
  for (const OperatorDef& def : all_operators()) {
    if (def.span > 1) continue;  // a block as it is
    const auto made = make(def.make, net, def.amount);
    if (!made || made->tensors.names().empty()) continue;
    const std::vector<std::string> names = made->tensors.names();
    const auto params = std::make_shared<Parameters>();
    for (const std::string& name : names) params->set(name, *made->tensors.get(name));
    const auto session =
        test::make_session({test::with_gradients(made->graph, names, 2), params}, test::ref_backends());
    ASSERT_TRUE(session) << def.name;
    test::fill_inputs(*session, 7);
    const auto loss = [&] {
      EXPECT_TRUE(session->run().ok());
      return static_cast<double>(session->output(0).data<float>()[0]);
    };
    loss();
    std::vector<Tensor> gradients;
    for (size_t i = 0; i < names.size(); ++i) gradients.push_back(*session->output(i + 1).copy());
    Random random(14);
    for (size_t i = 0; i < names.size(); ++i) {
      double largest = 0;
      for (const float g : gradients[i].data<float>()) largest = std::max<double>(largest, std::abs(g));
      for (int draw = 0; draw < 4; ++draw) {
        const size_t at = random.below(static_cast<uint64_t>(gradients[i].elements()));
        const float was = params->get(names[i])->data<float>()[at];
        const auto with = [&](float x) {
          params->writable(names[i])->data<float>()[at] = x;
          params->mark_changed(std::span(&names[i], 1));
          return loss();
        };
        const double above = with(was + kStep), below = with(was - kStep);
        with(was);
        EXPECT_NEAR(gradients[i].data<float>()[at], (above - below) / (2 * static_cast<double>(kStep)),
                    0.02 * largest + 0.02)
            << def.name << " " << names[i] << " " << at;
      }
    }
  }
}

TEST(Catalogue, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const OperatorDef& def : all_operators()) EXPECT_TRUE(names.insert(def.name).second) << def.name;
}

TEST(Catalogue, LayersThatAreTooSmallStay) {
  const test::Net net = test::make_net(R"(graph "gate" {
  input %x: f32[N,16,12,12]
  param %w: f32[16,16,3,3]
  param %d: f32[4,16,1,1]
  param %u: f32[16,4,1,1]
  %a: f32[N,16,12,12] = Conv(%x, %w) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1]}
  %p: f32[N,16,1,1] = GlobalAveragePool(%a)
  %q: f32[N,4,1,1] = Conv(%p, %d) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1]}
  %r: f32[N,16,1,1] = Conv(%q, %u) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1]}
  %y: f32[N,16,12,12] = Mul(%a, %r)
  output %y as "y"
}
)");
  const auto made = make(make_low_rank, net, 0.5);
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->tensors.contains("alt/d"));
  EXPECT_TRUE(made->tensors.contains("alt/w.reduce"));
  EXPECT_FALSE(made->tensors.contains("alt/w"));
}

}  // namespace
}  // namespace limber
