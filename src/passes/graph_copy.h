// Copies parts of one graph into another.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace limber {

// Parameters are one by their names, which nothing else in the target may have taken: give them to
// share_parameter() before the first node. Names of activations and constants become unique by a suffix.
class GraphCopy {
 public:
  // Both must outlive the copy.
  GraphCopy(const Graph& source, Graph& target)
      : source_(source), target_(target), copies_(source.num_values(), kNoValue) {}

  // From now on `copy` stands for `v`.
  void stand_for(ValueId v, ValueId copy) { copies_[v.index] = copy; }
  bool has(ValueId v) const { return copies_[v.index] != kNoValue; }
  // All that the node reads has been copied, or can be at once.
  bool ready(const Node& node) const;
  // The copy of `v`; a constant is copied the first time. kNoValue for itself.
  // REQUIRES: an input that something stands for, a shared parameter, or an output of a copied node
  ValueId value(ValueId v);

  // The parameter or state of the target with this name, which is added unless it is there.
  // kInvalidArgument when the name is something else there, or has another type.
  Status share_parameter(ValueId v);
  Status share_parameters();  // all of them
  // REQUIRES: ready(node)
  void node(const Node& node);

 private:
  const Graph& source_;
  Graph& target_;
  std::vector<ValueId> copies_;  // by value of the source
};

// What ShapeOf(x) gives is known: it is a constant in all but name.
bool is_known_shape(const Graph& graph, const Node& node);

}  // namespace limber
