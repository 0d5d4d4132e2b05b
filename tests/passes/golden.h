// Golden tests of passes: what a graph looks like before and after, in the text form.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "ops/op_def.h"
#include "passes/passes.h"

namespace limber {

using PassFunction = Status (*)(Graph&);

// A graph from its statements; fails the test when it is not a valid one.
inline Graph graph_of(std::string_view statements) {
  auto graph = parse(fmt::format("graph \"g\" {{\n{}\n}}", statements));
  EXPECT_TRUE(graph.ok()) << graph.status().message() << "\n" << statements;
  if (!graph.ok()) return {};
  const Status status = verify(*graph);
  EXPECT_TRUE(status.ok()) << status.message() << "\n" << statements;
  return *std::move(graph);
}

inline Graph rewritten(PassFunction pass, std::string_view statements) {
  Graph graph = graph_of(statements);
  const Status status = pass(graph);
  EXPECT_TRUE(status.ok()) << status.message();
  const Status valid = verify(graph);
  EXPECT_TRUE(valid.ok()) << valid.message() << "\n" << print(graph);
  return graph;
}

inline void expect_rewrite(PassFunction pass, std::string_view before, std::string_view after) {
  EXPECT_EQ(print(rewritten(pass, before)), print(graph_of(after)));
}

inline void expect_unchanged(PassFunction pass, std::string_view statements) {
  expect_rewrite(pass, statements, statements);
}

inline int count_ops(const Graph& graph, OpKind op) {
  int count = 0;
  for (const Node& node : graph.nodes()) count += node.op == op;
  return count;
}

}  // namespace limber
