#include "passes/channel_atoms.h"

#include <algorithm>

namespace limber {
namespace {

// Far above any number of channels; keeps hostile shapes from costing memory.
constexpr int64_t kLongestAxis = int64_t{1} << 20;

}  // namespace

ChannelAtoms::ChannelAtoms(const Graph& graph) : axes_(graph.num_values()), parents_{kPin} {
  for (uint32_t v = 0; v < graph.num_values(); ++v) {
    for (const Dim& dim : graph.value(ValueId{v}).type.shape) {
      Axis axis;
      if (dim.is_constant() && dim.value() <= kLongestAxis) axis = {add(dim.value()), dim.value()};
      axes_[v].push_back(axis);
    }
  }
}

int64_t ChannelAtoms::size(ValueId v, int axis) const {
  LIMBER_ASSERT(tracked(v, axis));
  return axes_[v.index][static_cast<size_t>(axis)].size;
}

ChannelAtoms::Atom ChannelAtoms::atom(ValueId v, int axis, int64_t index) const {
  LIMBER_ASSERT(index >= 0 && index < size(v, axis));
  return axes_[v.index][static_cast<size_t>(axis)].first + static_cast<Atom>(index);
}

ChannelAtoms::Atom ChannelAtoms::add(int64_t count) {
  const auto first = static_cast<Atom>(parents_.size());
  LIMBER_ASSERT(parents_.size() + static_cast<size_t>(count) < UINT32_MAX);
  for (int64_t i = 0; i < count; ++i) parents_.push_back(first + static_cast<Atom>(i));
  return first;
}

ChannelAtoms::Atom ChannelAtoms::root(Atom a) {
  while (parents_[a] != a) a = parents_[a] = parents_[parents_[a]];
  return a;
}

// The smaller number becomes the root, so that it is the same whatever the order of ties.
void ChannelAtoms::tie(Atom a, Atom b) {
  a = root(a);
  b = root(b);
  parents_[std::max(a, b)] = std::min(a, b);
}

void ChannelAtoms::tie_axes(ValueId a, int axis_a, ValueId b, int axis_b) {
  const bool has_a = tracked(a, axis_a), has_b = tracked(b, axis_b);
  const int64_t size_a = has_a ? size(a, axis_a) : -1, size_b = has_b ? size(b, axis_b) : -1;
  if (size_a != size_b && (size_a == 1 || size_b == 1)) return;
  if (size_a != size_b) {
    pin_axis(a, axis_a);
    pin_axis(b, axis_b);
  } else if (has_a) {
    tie_ranges(a, axis_a, 0, b, axis_b, 0, size_a);
  }
}

void ChannelAtoms::tie_ranges(ValueId a, int axis_a, int64_t begin_a, ValueId b, int axis_b, int64_t begin_b,
                              int64_t count) {
  for (int64_t i = 0; i < count; ++i) tie(atom(a, axis_a, begin_a + i), atom(b, axis_b, begin_b + i));
}

void ChannelAtoms::tie_broadcast(ValueId v, ValueId y) {
  const auto rank = static_cast<int>(axes_[v.index].size());
  const int missing = static_cast<int>(axes_[y.index].size()) - rank;
  LIMBER_ASSERT(missing >= 0);
  for (int axis = 0; axis < rank; ++axis) tie_axes(v, axis, y, axis + missing);
}

void ChannelAtoms::pin_axis(ValueId v, int axis) {
  if (!tracked(v, axis)) return;
  for (int64_t i = 0; i < size(v, axis); ++i) pin(atom(v, axis, i));
}

void ChannelAtoms::pin_all(ValueId v) {
  for (int axis = 0; axis < static_cast<int>(axes_[v.index].size()); ++axis) pin_axis(v, axis);
}

bool ChannelAtoms::all_pinned(Atom first, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (!pinned(first + static_cast<Atom>(i))) return false;
  }
  return true;
}

}  // namespace limber
