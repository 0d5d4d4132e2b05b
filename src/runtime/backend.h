// The seam between the compiler and what computes. The compiler asks, per node of a bound graph: can
// you run this, how (candidates: implementation, layouts, cost), and give me the kernel.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "runtime/kernel.h"

namespace limber {

// How a tensor lies in memory. 0 is plain: row-major, contiguous, what the outside sees. Other ids
// mean something only to the backend that gave them, and for as long as a kernel lives that uses them.
struct Layout {
  uint32_t id = 0;
  auto operator<=>(const Layout&) const = default;
};
inline constexpr Layout kPlain{};

// One way to run a node.
struct Candidate {
  std::string impl;             // for people: "jit_1x1:avx512_core"
  std::vector<Layout> inputs;   // one per node input (kPlain for absent ones)
  std::vector<Layout> outputs;  // one per node output
  double seconds = 0;           // measured when tuning is on, estimated otherwise
  bool view = false;            // output 0 is input 0 under another type: no kernel, no memory
  int may_alias = -1;           // output 0 may be written over this input when nobody reads it later
  int must_alias = -1;          // output 0 is this input, changed in place (copied first when needed)
  int tier = 0;        // 0: the usual choice; above: faster alone, but the more it leans on caches the
                       // less this says about a whole network, so the compiler tries without, too
  uint64_t token = 0;  // the node compiler's own
};

// Compiles the nodes of one graph: all that one compile() makes a backend remember, gone with it. Used by
// one thread at a time.
class NodeCompiler {
 public:
  virtual ~NodeCompiler() = default;
  virtual bool supports(NodeId node) = 0;
  // At least one when supports(). `nearby` are layouts its neighbours have or would like; operators
  // that do not care about layout offer candidates in these.
  virtual Result<std::vector<Candidate>> candidates(NodeId node, std::span<const Layout> nearby) = 0;
  // The node in `layout`: what has the type of input 0 lies in it, the rest is plain. Only for nodes that
  // treat all elements of that type alike and keep zeros where the layout pads; nullopt for others.
  virtual std::optional<Candidate> element_wise(NodeId node, Layout layout);
  // Completes the candidate that was chosen (layouts of packed weights, which are only known once code
  // is generated). Called once before compile().
  virtual Status prepare(NodeId node, Candidate& candidate);
  // The kernel outlives the node compiler.
  virtual Result<std::unique_ptr<Kernel>> compile(NodeId node, const Candidate& candidate) = 0;
};

// Thread-safe: several threads may compile with one backend.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // For `graph`, in which every shape is constant. `statics`, by value, are those computed once and not per
  // run. Both outlive what is returned, and so does the backend.
  virtual std::unique_ptr<NodeCompiler> begin(const Graph& graph, const std::vector<bool>& statics) = 0;

  // Does this backend want times to be measured? Then compile() also compares whole plans, and keeps
  // which one won under a key of its own.
  virtual bool measures() const { return false; }
  virtual std::optional<int64_t> recall(const std::string& key) const;
  virtual void remember(const std::string& key, int64_t choice);

  // Layouts. The defaults are for backends that know only kPlain.
  virtual size_t bytes(const TensorType& type, Layout layout) const;
  virtual std::string layout_name(Layout layout) const;
  // Too much to be ever chosen where there is no such reorder.
  virtual double reorder_seconds(const TensorType& type, Layout from, Layout to);
  virtual Result<std::unique_ptr<Kernel>> reorder(const TensorType& type, Layout from, Layout to);
};

// The only candidate of an operator that runs in plain layout.
Candidate plain_candidate(const Node& node, std::string impl, double seconds);

}  // namespace limber
