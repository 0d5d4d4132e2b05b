// Which backend, implementation and layouts each node gets. Internal to compile().
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "runtime/backend.h"

namespace limber {

// Values that depend only on constants and on parameters that the graph does not update are static:
// computed once, not per run.
std::vector<bool> static_values(const Graph& graph);
bool is_static_node(const Graph& graph, const std::vector<bool>& statics, NodeId node);

// One compile: what all its stages read. Belongs to the thread that compiles.
struct CompileContext {
  Graph graph;  // bound and transformed
  std::vector<bool> statics;
  std::vector<std::shared_ptr<Backend>> backends;        // in the order they are asked
  std::vector<std::unique_ptr<NodeCompiler>> compilers;  // one per backend

  Backend& layouts() const { return *backends.front(); }  // the only one that may have any of its own
};

struct NodeChoice {
  NodeCompiler* compiler = nullptr;
  Candidate candidate;
};

struct Assignment {
  std::vector<NodeChoice> nodes;  // by node index; static nodes run in plain layout
  std::vector<Layout> stored;     // by value: how a parameter that the graph updates lies between two runs
  double seconds = 0;             // predicted: kernels and reorders
  int id = 0;                     // how it was found; the same for the same graph and timings
};

// Each minimises the predicted sum of kernel times and of the reorders they cause: coordinate descent (a
// node at a time, given its neighbours) from several starting points, with candidates of higher tiers or
// without. Different ones only; the default (tier 0, least predicted time) first. Fails naming every
// unsupported node.
Result<std::vector<Assignment>> find_assignments(const CompileContext& context);
// Only the one that is found in the way `id` says: what was best for a graph much like this one.
Result<Assignment> find_assignment(const CompileContext& context, int id);

// Lets the node compilers complete what was chosen.
Status prepare(const Graph& graph, Assignment& assignment);

// Chooses the layouts in which parameters that the graph updates are stored, and with them those of the
// element-wise nodes between gradient and update: the ones that cost the least reorders, given the rest.
// Once prepare() made the layouts of weights known.
void store_packed(const CompileContext& context, Assignment& assignment);

}  // namespace limber
