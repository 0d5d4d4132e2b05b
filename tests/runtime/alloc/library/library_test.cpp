// The same claim about the shared library, linked as a user would link it.
#include <gtest/gtest.h>

#include "limber/limber.h"
#include "tests/runtime/alloc/heap_counter.h"

namespace {

TEST(Library, ARunAllocatesOnlySmallBlocksAndFreesThem) {
  const auto model = limber::Model::load("builtin:resnet8");
  ASSERT_TRUE(model.ok());
  auto session = model->compile({.threads = 2});
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(session->run().ok());
  const heap::Counts before = heap::counts();
  constexpr int kRuns = 10;
  for (int i = 0; i < kRuns; ++i) ASSERT_TRUE(session->run().ok());
  const heap::Counts used = heap::counts() - before;
  EXPECT_EQ(used.large, 0);
  EXPECT_EQ(used.calls, used.freed);
  EXPECT_LE(used.calls, kRuns * 12 * 10);  // twelve steps, ten blocks each
}

}  // namespace
