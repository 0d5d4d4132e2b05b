#include "runtime/work_arena.h"

#include <cstring>

#include "base/memory.h"
#include "tests/runtime/net.h"

namespace limber::test {
namespace {

#ifndef LIMBER_SANITIZED  // its own memory would be counted
TEST(WorkArena, TakesMemoryOnlyWhereItIsUsed) {
  constexpr size_t kReserved = size_t{4} << 30, kUsed = size_t{64} << 20;
  const auto arena = WorkArena::reserve(kReserved);
  ASSERT_TRUE(arena.ok());
  const size_t before = process_memory().resident;
  std::memset((*arena)->arena(), 1, kUsed);
  const size_t used = process_memory().resident;
  EXPECT_GE(used, before + kUsed / 2);
  EXPECT_LE(used, before + 2 * kUsed);
  (*arena)->trim(0);
  EXPECT_LE(process_memory().resident, before + kUsed / 2);
  EXPECT_EQ((*arena)->arena()[0], std::byte{0});  // a page that comes back is empty
}
#endif

TEST(WorkArena, TrimKeepsWhatIsBelow) {
  const auto arena = *WorkArena::reserve(size_t{64} << 20);
  constexpr size_t kKept = (size_t{2} << 20) + 1;  // ends inside a page, which stays as a whole
  std::memset(arena->arena(), 7, size_t{8} << 20);
  arena->trim(kKept);
  EXPECT_EQ(arena->arena()[0], std::byte{7});
  EXPECT_EQ(arena->arena()[kKept - 1], std::byte{7});
  arena->trim(size_t{1} << 40);  // more than there is: nothing goes
  EXPECT_EQ(arena->arena()[0], std::byte{7});
}

TEST(WorkArena, InputsOfOneNameAreOneBuffer) {
  const auto arena = *WorkArena::reserve(1 << 20);
  const auto one = *arena->input("x", 100), again = *arena->input("x", 50), other = *arena->input("y", 100);
  EXPECT_EQ(one, again);
  EXPECT_NE(one, other);
  EXPECT_EQ(one->data()[99], std::byte{0});
  EXPECT_GE((*arena->input("x", 500))->size(), 500u);
  EXPECT_EQ(one->size(), 100u);  // whoever holds the smaller one keeps it
}

TEST(WorkArena, AbsurdSizesAreRefused) {
  const auto arena = WorkArena::reserve(SIZE_MAX / 2);
  ASSERT_FALSE(arena.ok());
  EXPECT_EQ(arena.status().code(), Code::kResourceExhausted);
}

TEST(WorkArena, SessionsInTurnsGiveWhatTheyGiveAlone) {
  const auto arena = *WorkArena::reserve(size_t{256} << 20);
  const Net net = make_net(kResidualNet);
  std::vector<std::unique_ptr<Session>> together;
  std::vector<std::vector<float>> alone;
  const auto values = [](const Session& session) {
    const Tensor y = session.output(0);
    return std::vector<float>(y.data<float>().begin(), y.data<float>().end());
  };
  for (int64_t batch : {1, 3, 2}) {
    const auto plan = *compile(net.graph, net.params, cpu_backends(), {.batch = batch});
    const auto session = *Session::create(plan);
    fill_inputs(*session);
    ASSERT_TRUE(session->run().ok());
    alone.push_back(values(*session));
    together.push_back(*Session::create(plan, arena));
  }
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < together.size(); ++i) {
      fill_inputs(*together[i]);
      ASSERT_TRUE(together[i]->run().ok());
      EXPECT_EQ(values(*together[i]), alone[i]);
    }
  }
}

TEST(WorkArena, APlanThatDoesNotFitIsRefused) {
  const auto arena = *WorkArena::reserve(4096);
  const Net net = make_net(kResidualNet);
  const auto plan = *compile(net.graph, net.params, cpu_backends(), {});
  const auto session = Session::create(plan, arena);
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.status().code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace limber::test
