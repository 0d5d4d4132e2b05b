#include <gtest/gtest.h>

#include "ir/graph.h"

namespace limber {
namespace {

constexpr const char* kBase = R"(graph "g" {
  input %x: f32[N,4]
  param %w: f32[4,4]
  const %c: f32[] = {2.0}
  %a: f32[N,4] = MatMul(%x, %w) {alpha=1.0, trans_b=1} "first"
  %b: f32[N,4] = Mul(%a, %c)
  output %b as "out"
})";

uint64_t hash_of(std::string_view text) {
  const auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph.ok() ? hash(*graph) : 0;
}

std::string changed(std::string_view from, std::string_view to) {
  std::string text = kBase;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  for (size_t i = at; i != std::string::npos; i = text.find(from, i + to.size()))
    text.replace(i, from.size(), to);
  return text;
}

// The number names files in caches: it may only change together with their format.
TEST(GraphHash, IsForEver) { EXPECT_EQ(hash_of(kBase), 8724118636893088933ULL); }

TEST(GraphHash, NamesOfActivationsConstantsAndNodesDoNotCount) {
  EXPECT_EQ(hash_of(changed("%a", "%another")), hash_of(kBase));
  EXPECT_EQ(hash_of(changed("%c", "%two")), hash_of(kBase));
  EXPECT_EQ(hash_of(changed("first", "second")), hash_of(kBase));
  EXPECT_EQ(hash_of(changed("\"g\"", "\"h\"")), hash_of(kBase));
}

TEST(GraphHash, UpdatesCount) {
  constexpr const char* kStep = R"(graph "g" {
  input %x: f32[4]
  param %a: f32[4]
  param %b: f32[4]
  output %x as "out"%s
})";
  const auto with = [&](std::string_view update) {
    std::string text = kStep;
    return hash_of(text.replace(text.find("%s"), 2, update));
  };
  EXPECT_NE(with(" into %a"), with(""));
  EXPECT_NE(with(" into %a"), with(" into %b"));
}

TEST(GraphHash, EverythingElseCounts) {
  const std::pair<const char*, const char*> changes[] = {{"%w", "%v"},
                                                         {"%x", "%z"},
                                                         {"\"out\"", "\"o\""},
                                                         {"{2.0}", "{2.5}"},
                                                         {"alpha=1.0", "alpha=2.0"},
                                                         {"trans_b", "trans_a"},
                                                         {"N,4", "M,4"},
                                                         {"= Mul", "= Add"},
                                                         {"%a, %c", "%c, %a"},
                                                         {"param", "state"},
                                                         {"alpha=1.0", "alpha=1"},
                                                         {"f32[4,4]", "f32[4,5]"},
                                                         {", trans_b=1", ""},
                                                         {"output %b", "output %a"},
                                                         {"Mul(%a, %c)", "Mul(%a, %c, _)"},
                                                         {"as \"out\"", "as \"out\" rows %c"}};
  for (const auto& [from, to] : changes)
    EXPECT_NE(hash_of(changed(from, to)), hash_of(kBase)) << from << " -> " << to;
}

TEST(GraphHash, NumberingDoesNotCount) {
  Graph a = *parse(kBase);
  Graph b = a;
  const ValueId dead = b.add_constant("dead", Tensor::scalar(1.0f));
  b.add(OpKind::kRelu, {dead}, {}, b.type(dead), "unused");
  EXPECT_NE(hash(a), hash(b)) << "a dead node is a node";
  b.compact();
  EXPECT_EQ(hash(a), hash(b));
}

}  // namespace
}  // namespace limber
