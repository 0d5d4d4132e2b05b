// What the door to oneDNN remembers, and what it leaves as it was.
#include <gtest/gtest.h>

#include "backend/cpu/onednn_tables.h"
#include "backend/cpu/tuner.h"

namespace limber::onednn {
namespace {

class NoKernel : public Kernel {
 public:
  Result<std::unique_ptr<BoundKernel>> bind(KernelIo) const override {
    return unsupported("only to be counted");
  }
};

Compiled some_kernel() { return {.kernel = std::make_shared<NoKernel>(), .impl = "none"}; }

TEST(KernelCache, KeepsWhatIsUsedAndWhatWasMadeLast) {
  KernelCache cache;
  const Compiled used = some_kernel();
  cache.keep("used", used);
  cache.keep("first", some_kernel());
  EXPECT_TRUE(cache.find("first"));
  for (size_t i = 0; i < KernelCache::kRecent; ++i) cache.keep("other " + std::to_string(i), some_kernel());
  EXPECT_FALSE(cache.find("first"));
  ASSERT_TRUE(cache.find("used"));
  EXPECT_EQ(cache.find("used")->kernel, used.kernel);
  EXPECT_EQ(cache.find("used")->impl, "none");
  EXPECT_TRUE(cache.find("other 0"));
}

TEST(KernelCache, DoesNotGrow) {
  KernelCache cache;
  for (size_t i = 0; i < 20 * KernelCache::kRecent; ++i) cache.keep(std::to_string(i), some_kernel());
  EXPECT_LE(cache.size(), 3 * KernelCache::kRecent);
}

memory::desc matrix(int64_t rows, int64_t columns, Tag tag) { return {{rows, columns}, kF32, tag}; }

TEST(LayoutTable, EqualDescriptionsAreOneLayout) {
  LayoutTable table;
  const auto one = table.intern(matrix(32, 48, Tag::ba), matrix(32, 48, Tag::ab));
  const auto same = table.intern(matrix(32, 48, Tag::ba), matrix(32, 48, Tag::ab));
  const auto other = table.intern(matrix(48, 48, Tag::ba), matrix(48, 48, Tag::ab));
  EXPECT_EQ(one, same);
  EXPECT_NE(one->id, other->id);
  EXPECT_GE(one->id, kFirstPacked);
  EXPECT_EQ(table.find(other->id), other);
}

TEST(LayoutTable, HoldsOnlyWhatSomebodyUses) {
  LayoutTable table;
  const auto held = table.intern(matrix(3, 5, Tag::ba), matrix(3, 5, Tag::ab));
  uint32_t last = 0;
  for (int64_t i = 6; i < 500; ++i) last = table.intern(matrix(3, i, Tag::ba), matrix(3, i, Tag::ab))->id;
  EXPECT_LE(table.size(), 2u);
  EXPECT_EQ(table.find(held->id), held);
  // An id is never given twice: what somebody remembers of an old one cannot mean another layout.
  EXPECT_GT(table.intern(matrix(3, 6, Tag::ba), matrix(3, 6, Tag::ab))->id, last);
}

Convolution small_conv() {
  Convolution c;
  c.src = {1, 16, 8, 8};
  c.weights = {16, 16, 3, 3};
  c.dst = {1, 16, 8, 8};
  c.strides = c.dilations = c.pad_begin = c.pad_end = {1, 1};
  c.src_format = c.dst_format = Format::kChannelsLast;
  return c;
}

// A host program may use oneDNN too: its primitive cache keeps the size it was given.
TEST(Library, LeavesThePrimitiveCacheAsItWas) {
  int before = 0, after = 0;
  ASSERT_EQ(dnnl_set_primitive_cache_capacity(77), dnnl_success);
  ASSERT_EQ(dnnl_get_primitive_cache_capacity(&before), dnnl_success);
  Library library;
  const auto names = library.list(small_conv());
  ASSERT_FALSE(names.empty());
  for (int i = 0; i < static_cast<int>(names.size()); ++i) {
    const auto compiled = library.create(small_conv(), i);
    if (!compiled.ok()) continue;
    EXPECT_EQ(compiled->impl, names[static_cast<size_t>(i)]);
  }
  ASSERT_EQ(dnnl_get_primitive_cache_capacity(&after), dnnl_success);
  EXPECT_EQ(before, 77);
  EXPECT_EQ(after, 77);
}

TEST(Library, MakesAKernelOnce) {
  Library library;
  const auto one = library.create(small_conv(), 0), two = library.create(small_conv(), 0);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->kernel, two->kernel);
  EXPECT_EQ(one->weights_layout, two->weights_layout);
  EXPECT_FALSE(library.create(small_conv(), 1000).ok());
}

TEST(Library, ALayoutIsKnownWhileAKernelUsesIt) {
  Library library;
  const auto conv = library.create(small_conv(), 0);
  ASSERT_TRUE(conv.ok() && conv->weights_layout >= kFirstPacked);
  const Layout layout{conv->weights_layout};
  const TensorType type{DType::kF32, Shape{16, 16, 3, 3}};
  EXPECT_GE(library.bytes(type, layout), type.bytes());
  EXPECT_NE(library.layout_name(layout), "plain");
  EXPECT_TRUE(library.can_reorder(type, kPlain, layout));
  const auto pack = library.reorder(type, kPlain, layout);
  ASSERT_TRUE(pack.ok());
  EXPECT_EQ(pack->output_bytes[0], library.bytes(type, layout));
}

}  // namespace
}  // namespace limber::onednn
