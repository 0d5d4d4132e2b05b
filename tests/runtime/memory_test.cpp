// Where a plan puts what it computes: whatever a step reads is what its producer left there. Plans of random
// networks are followed byte by byte, without asking the planner why.
#include <map>

#include "tests/runtime/net.h"

namespace limber::test {
namespace {

using Ints = std::vector<int64_t>;

// A network of convolutions and what stands between them, with values that live for long.
class RandomNet {
 public:
  explicit RandomNet(uint64_t seed) : random_(seed) {
    net_.graph.name = "random";
    const int64_t channels = 3 + below(20), side = 4 + below(5);
    values_.push_back(net_.graph.add_input("x", {DType::kF32, {1 + below(2), channels, side, side}}));
    for (int64_t n = 4 + below(16); n > 0; --n) grow();
    for (int i = 0; i < 3; ++i) net_.graph.add_output(any(), "y" + std::to_string(i));
  }
  const Net& net() const { return net_; }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_.below(static_cast<uint64_t>(n))); }
  ValueId any() { return values_[static_cast<size_t>(below(std::ssize(values_)))]; }
  ValueId recent() {
    return values_[static_cast<size_t>(std::ssize(values_) - 1 -
                                       below(std::min<int64_t>(3, std::ssize(values_))))];
  }
  const Shape& shape(ValueId v) const { return net_.graph.type(v).shape; }

  void add(OpKind op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    auto made = emit(net_.graph, op, std::move(inputs), std::move(attrs), "n");
    ASSERT_TRUE(made.ok()) << made.status().message();
    values_.push_back(*made);
  }

  ValueId like(const Shape& wanted) {
    std::vector<ValueId> same;
    for (ValueId v : values_)
      if (shape(v) == wanted) same.push_back(v);
    return same[static_cast<size_t>(below(std::ssize(same)))];
  }

  ValueId parameter(const Shape& of) {
    const std::string name = "w" + std::to_string(parameters_++);
    const ValueId v = net_.graph.add_parameter(name, {DType::kF32, of});
    Tensor tensor = *Tensor::allocate({DType::kF32, of});
    for (float& x : tensor.data<float>()) x = static_cast<float>(random_.uniform(-0.3, 0.3));
    net_.params->set(name, tensor);
    return v;
  }

  void grow() {
    const ValueId x = recent();
    const int64_t c = shape(x).dim(1);
    switch (below(9)) {
      case 0:
      case 1: {
        const int64_t k = 1 + 2 * below(2);
        return add(OpKind::kConv, {x, parameter({3 + below(30), c, k, k})},
                   {{"strides", Ints{1, 1}},
                    {"pads", Ints(4, k / 2)},
                    {"dilations", Ints{1, 1}},
                    {"groups", int64_t{1}}});
      }
      case 2:
        return add(below(2) == 0 ? OpKind::kRelu : OpKind::kSigmoid, {x});
      case 3:
        return add(below(2) == 0 ? OpKind::kAdd : OpKind::kMul, {x, like(shape(x))});
      case 4:
        return add(OpKind::kConcat, {x, like(shape(x))}, {{"axis", int64_t{1}}});
      case 5:
        return add(
            OpKind::kSlice, {x},
            {{"axes", Ints{1}}, {"starts", Ints{0}}, {"ends", Ints{1 + below(c)}}, {"steps", Ints{1}}});
      case 6:
        add(OpKind::kGlobalAveragePool, {x});
        return add(OpKind::kMul, {x, values_.back()});
      case 7: {
        const Shape whole = shape(x);
        add(OpKind::kReshape, {x}, {{"shape", Shape{whole.dim(0), c, whole.dim(2) * whole.dim(3)}}});
        add(OpKind::kSoftmax, {values_.back()}, {{"axis", int64_t{2}}});
        const ValueId flat = values_.back();
        values_.resize(values_.size() - 2);
        return add(OpKind::kReshape, {flat}, {{"shape", whole}});
      }
      default:
        return add(OpKind::kTranspose, {x}, {{"perm", Ints{0, 1, 3, 2}}});
    }
  }

  Random random_;
  Net net_;
  std::vector<ValueId> values_;
  int parameters_ = 0;
};

// Who wrote each byte of the arena last, step after step.
class Follower {
 public:
  explicit Follower(const Plan& plan) : plan_(plan), writer_(plan.arena_bytes, kNobody) {
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      for (int slot : plan.steps[s].outputs)
        if (slot >= 0) made_by_[slot] = static_cast<int>(s);
    }
  }

  void follow() {
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      mark(step.scratch, kScratch);  // it may write there before it reads anything
      for (int slot : step.inputs) expect_there(slot, s);
      for (int out : step.outputs) {
        expect_apart(out, step.scratch, s);
        for (int in : step.inputs)
          if (in >= 0 && out >= 0 && root(in) != root(out)) expect_apart(out, in, s);
        for (int other : step.outputs)
          if (other != out) expect_apart(out, other, s);
      }
      for (int slot : step.outputs) mark(slot, static_cast<int>(s));
    }
  }

 private:
  static constexpr int kNobody = -1, kScratch = -2;

  const Slot& slot_of(int slot) const { return plan_.slots[static_cast<size_t>(slot)]; }
  int root(int slot) const { return slot_of(slot).root; }
  bool in_arena(int slot) const { return slot >= 0 && slot_of(root(slot)).storage == Storage::kArena; }
  size_t begin(int slot) const { return slot_of(root(slot)).offset; }
  size_t end(int slot) const { return begin(slot) + slot_of(slot).bytes; }

  void mark(int slot, int who) {
    if (!in_arena(slot)) return;
    ASSERT_LE(end(slot), writer_.size());
    std::fill(writer_.begin() + static_cast<ptrdiff_t>(begin(slot)),
              writer_.begin() + static_cast<ptrdiff_t>(end(slot)), who);
  }

  // The step behind a slot; a view has that of what it views.
  int maker(int slot) const {
    if (const auto it = made_by_.find(slot); it != made_by_.end()) return it->second;
    const NodeId node = plan_.graph.value(slot_of(slot).value).producer;
    const ValueId viewed = plan_.graph.node(node).inputs[0];
    for (int other = 0; other < static_cast<int>(plan_.slots.size()); ++other) {
      if (other != slot && slot_of(other).value == viewed && root(other) == root(slot)) return maker(other);
    }
    ADD_FAILURE() << "nobody makes slot " << slot;
    return kNobody;
  }

  void expect_there(int slot, size_t step) const {
    if (!in_arena(slot)) return;
    const int who = maker(slot);
    for (size_t b = begin(slot); b < end(slot); ++b) {
      ASSERT_EQ(writer_[b], who) << "step " << step << " reads byte " << b - begin(slot) << " of slot "
                                 << slot << ", which another step wrote over\n"
                                 << plan_.text();
    }
  }

  void expect_apart(int a, int b, size_t step) const {
    if (!in_arena(a) || !in_arena(b)) return;
    EXPECT_TRUE(end(a) <= begin(b) || end(b) <= begin(a))
        << "step " << step << ", slots " << a << " and " << b;
  }

  const Plan& plan_;
  std::map<int, int> made_by_;  // slot -> step
  std::vector<int> writer_;     // by byte
};

TEST(Memory, NobodyWritesOverWhatIsStillRead) {
  size_t shared = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomNet random(seed);
    const auto backends = cpu_backends();
    for (bool optimize : {false, true}) {
      const auto plan = compile(random.net().graph, random.net().params, backends, {.optimize = optimize});
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      Follower(**plan).follow();
      EXPECT_LE((*plan)->live_bytes, (*plan)->arena_bytes);
      size_t sum = 0;
      for (size_t i = 0; i < (*plan)->slots.size(); ++i) {
        const Slot& slot = (*plan)->slots[i];
        if (slot.storage == Storage::kArena && slot.root == static_cast<int>(i)) sum += slot.bytes;
      }
      shared += sum > (*plan)->arena_bytes;
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(shared, 30u);  // else there was nothing to get wrong
}

TEST(Memory, RandomNetworksGiveWhatTheReferenceGives) {
  for (uint64_t seed = 100; seed < 130; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_same_as_ref(RandomNet(seed).net(), {.threads = 1 + static_cast<int>(seed % 2)}, false, 1e-4);
  }
}

TEST(Memory, LessThanNeededIsRefusedAndJustEnoughIsNot) {
  const Net net = make_net(kResidualNet);
  const auto backends = cpu_backends();
  const auto plan = *compile(net.graph, net.params, backends, {});
  size_t largest = 0;
  for (const Value& value : plan->graph.values()) largest = std::max(largest, value.type.bytes());
  ASSERT_GT(plan->arena_bytes, largest);
  EXPECT_TRUE(compile(net.graph, net.params, backends, {.max_bytes = plan->arena_bytes}).ok());
  const auto arena = compile(net.graph, net.params, backends, {.max_bytes = plan->arena_bytes - 1});
  ASSERT_FALSE(arena.ok());
  EXPECT_EQ(arena.status().code(), Code::kResourceExhausted);
  EXPECT_NE(arena.status().message().find(std::to_string(plan->arena_bytes)), std::string::npos);
  const auto tensor = compile(net.graph, net.params, backends, {.max_bytes = 1000});
  ASSERT_FALSE(tensor.ok());
  EXPECT_EQ(tensor.status().code(), Code::kResourceExhausted);
  EXPECT_NE(tensor.status().message().find("1000 bytes"), std::string::npos) << tensor.status().message();
}

TEST(Memory, NoLimitIsNoLimitForAnyType) {
  for (const char* type : {"u8", "bool", "f32", "i64"}) {
    const Net net = make_net(fmt::format(R"(graph "g" {{
      input %x: {0}[2,3]
      %y: {0}[3,2] = Transpose(%x) {{perm=[1,0]}}
      output %y as "y"
    }})",
                                         type));
    const auto plan = compile(net.graph, net.params, cpu_backends(), {.max_bytes = SIZE_MAX});
    EXPECT_TRUE(plan.ok()) << type << ": " << plan.status().message();
  }
}

// Far more than any machine has: the system refuses, and so does the session, with the size.
TEST(Memory, AnArenaThatTheSystemDoesNotHaveIsAnError) {
  const Net net = make_net(R"(graph "huge" {
    input %x: f32[1]
    %a: f32[549755813888] = Expand(%x) {shape=<549755813888>}
    %b: f32[549755813888] = Neg(%a)
    %y: f32[1] = ReduceSum(%b) {axes=[0], keepdims=1}
    output %y as "y"
  })");
  if (Buffer::allocate(size_t{1} << 41).ok()) GTEST_SKIP() << "this system promises everything";
  const auto plan =
      compile(net.graph, net.params, ref_backends(), {.optimize = false, .max_bytes = SIZE_MAX});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_GE((*plan)->arena_bytes, size_t{1} << 41);
  const auto session = Session::create(*plan);
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.status().code(), Code::kResourceExhausted);
}

TEST(Memory, APlanKnowsWhatASessionHolds) {
  const Net net = make_net(kResidualNet);
  const auto small = *compile(net.graph, net.params, cpu_backends(), {.batch = 1});
  const auto large = *compile(net.graph, net.params, cpu_backends(), {.batch = 16});
  EXPECT_GT(small->memory_bytes(), small->arena_bytes + net.params->bytes() / 2);
  EXPECT_GE(large->memory_bytes() - small->memory_bytes(), large->arena_bytes - small->arena_bytes);
}

}  // namespace
}  // namespace limber::test
