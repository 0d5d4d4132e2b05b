// Which indices along which axes of a graph's values stand or fall together.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace limber {

// An atom is one index along one axis of one value. Tied atoms are kept or dropped together; pinned ones are
// always kept. Axes of symbolic size, and very long ones, have no atoms: they are as good as pinned.
class ChannelAtoms {
 public:
  using Atom = uint32_t;

  explicit ChannelAtoms(const Graph& graph);

  bool tracked(ValueId v, int axis) const { return axes_[v.index][static_cast<size_t>(axis)].size >= 0; }
  int64_t size(ValueId v, int axis) const;  // REQUIRES: tracked
  Atom atom(ValueId v, int axis, int64_t index) const;
  // The first of `count` atoms that belong to no value: axes that exist only between two shapes.
  Atom add(int64_t count);

  void tie(Atom a, Atom b);
  void pin(Atom a) { tie(a, kPin); }
  bool pinned(Atom a) { return root(a) == root(kPin); }
  Atom root(Atom a);

  // Index by index. An axis of size 1 that meets a longer one is repeated along it, which ties nothing.
  void tie_axes(ValueId a, int axis_a, ValueId b, int axis_b);
  // a[begin_a + i] with b[begin_b + i]. REQUIRES: both tracked and long enough
  void tie_ranges(ValueId a, int axis_a, int64_t begin_a, ValueId b, int axis_b, int64_t begin_b,
                  int64_t count);
  // Every axis of `v` with the one it meets in `y` under numpy broadcasting.
  void tie_broadcast(ValueId v, ValueId y);
  void pin_axis(ValueId v, int axis);
  void pin_all(ValueId v);
  bool all_pinned(Atom first, int64_t count);

 private:
  static constexpr Atom kPin = 0;
  struct Axis {
    Atom first = 0;
    int64_t size = -1;  // -1: not tracked
  };

  std::vector<std::vector<Axis>> axes_;  // by value, then axis
  std::vector<Atom> parents_;
};

}  // namespace limber
