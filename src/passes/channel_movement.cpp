#include <algorithm>

#include "ops/slice.h"
#include "passes/channel_rules.h"

namespace limber::channels {

void transpose(const Rule& rule) {
  const auto& perm = rule.node.attrs.ints("perm");
  for (size_t i = 0; i < perm.size(); ++i)
    rule.atoms.tie_axes(rule.input(0), static_cast<int>(perm[i]), rule.output(), static_cast<int>(i));
}

// Copies along a new or longer axis are alike: any of them may go.
void expand(const Rule& rule) { rule.atoms.tie_broadcast(rule.input(0), rule.output()); }

void tile(const Rule& rule) {
  ChannelAtoms& atoms = rule.atoms;
  const ValueId x = rule.input(0), y = rule.output();
  for (int axis = 0; axis < rule.rank(x); ++axis) {
    if (!atoms.tracked(x, axis) || !atoms.tracked(y, axis)) {
      atoms.pin_axis(x, axis);
      atoms.pin_axis(y, axis);
      continue;
    }
    const int64_t size = atoms.size(x, axis);
    for (int64_t begin = 0; begin < atoms.size(y, axis); begin += size)
      atoms.tie_ranges(x, axis, 0, y, axis, begin, size);
  }
}

namespace {

// The parts of `whole` along `axis`, one after the other. Their other axes run together.
void parts(const Rule& rule, ValueId whole, std::span<const ValueId> parts, int axis) {
  ChannelAtoms& atoms = rule.atoms;
  bool tracked = atoms.tracked(whole, axis);
  for (ValueId part : parts) {
    if (part == kNoValue) continue;
    rule.tie_same(whole, part, 0, axis);
    rule.tie_same(whole, part, axis + 1, rule.rank(whole));
    tracked = tracked && atoms.tracked(part, axis);
  }
  // A part that is absent leaves the offsets of the others unknown here.
  if (!tracked || std::find(parts.begin(), parts.end(), kNoValue) != parts.end()) {
    atoms.pin_axis(whole, axis);
    for (ValueId part : parts) {
      if (part != kNoValue) atoms.pin_axis(part, axis);
    }
    return;
  }
  int64_t begin = 0;
  for (ValueId part : parts) {
    atoms.tie_ranges(part, axis, 0, whole, axis, begin, atoms.size(part, axis));
    begin += atoms.size(part, axis);
  }
}

void pin_pair(const Rule& rule, int x_axis, int y_axis) {
  rule.atoms.pin_axis(rule.input(0), x_axis);
  rule.atoms.pin_axis(rule.output(), y_axis);
}

}  // namespace

void concat(const Rule& rule) {
  parts(rule, rule.output(), rule.node.inputs, static_cast<int>(rule.node.attrs.i("axis")));
}

void split(const Rule& rule) {
  parts(rule, rule.input(0), rule.node.outputs, static_cast<int>(rule.node.attrs.i("axis")));
}

// Only steps of one stay a Slice whatever is taken out.
void slice(const Rule& rule) {
  ChannelAtoms& atoms = rule.atoms;
  const ValueId x = rule.input(0), y = rule.output();
  const Attrs& attrs = rule.node.attrs;
  const auto& axes = attrs.ints("axes");
  for (int axis = 0; axis < rule.rank(x); ++axis) {
    const auto found = std::find(axes.begin(), axes.end(), axis);
    if (found == axes.end()) {
      atoms.tie_axes(x, axis, y, axis);
      continue;
    }
    const auto k = static_cast<size_t>(found - axes.begin());
    if (!atoms.tracked(x, axis) || !atoms.tracked(y, axis) || attrs.ints("steps")[k] != 1) {
      pin_pair(rule, axis, axis);
      continue;
    }
    const SliceRange range =
        slice_range(atoms.size(x, axis), attrs.ints("starts")[k], attrs.ints("ends")[k], 1);
    atoms.tie_ranges(x, axis, range.start, y, axis, 0, range.count);
  }
}

// Along `axis` only a constant list of indices can be adjusted.
void gather(const Rule& rule) {
  ChannelAtoms& atoms = rule.atoms;
  const ValueId x = rule.input(0), indices = rule.input(1), y = rule.output();
  const auto axis = static_cast<int>(rule.node.attrs.i("axis"));
  const int picks = rule.rank(indices);
  for (int i = 0; i < axis; ++i) atoms.tie_axes(x, i, y, i);
  for (int i = 0; i < picks; ++i) atoms.tie_axes(indices, i, y, axis + i);
  for (int i = axis + 1; i < rule.rank(x); ++i) atoms.tie_axes(x, i, y, i - 1 + picks);
  const Value& list = rule.graph.value(indices);
  if (list.role != Role::kConstant || picks != 1 || !atoms.tracked(x, axis) || !atoms.tracked(y, axis)) {
    return atoms.pin_axis(x, axis);
  }
  const int64_t size = atoms.size(x, axis);
  for (int64_t i = 0; i < atoms.size(y, axis); ++i) {
    const int64_t index = element_as_int(list.constant, i);
    if (index < -size || index >= size) return rule.pin_operands();  // the kernel's to complain about
    atoms.tie(atoms.atom(y, axis, i), atoms.atom(x, axis, index < 0 ? index + size : index));
  }
}

// Channels that a constant Pad adds hang on nothing but their readers.
void pad(const Rule& rule) {
  ChannelAtoms& atoms = rule.atoms;
  const ValueId x = rule.input(0), y = rule.output();
  const auto& pads = rule.node.attrs.ints("pads");
  const bool constant = rule.node.attrs.s("mode", "constant") == "constant";
  for (int axis = 0; axis < rule.rank(x); ++axis) {
    const int64_t begin = pads[static_cast<size_t>(axis)];
    const int64_t end = pads[pads.size() / 2 + static_cast<size_t>(axis)];
    if (begin == 0 && end == 0) {
      atoms.tie_axes(x, axis, y, axis);
    } else if (constant && begin >= 0 && end >= 0 && atoms.tracked(x, axis) && atoms.tracked(y, axis)) {
      atoms.tie_ranges(x, axis, 0, y, axis, begin, atoms.size(x, axis));
    } else {
      pin_pair(rule, axis, axis);
    }
  }
}

void resize(const Rule& rule) {
  const Attrs& attrs = rule.node.attrs;
  const Shape &from = rule.graph.type(rule.input(0)).shape, &to = rule.graph.type(rule.output()).shape;
  const bool crops = attrs.s("coordinates", "half_pixel") == "tf_crop_and_resize";
  for (int axis = 0; axis < from.rank(); ++axis) {
    const bool same = from[axis] == to[axis] && attrs.floats("scales")[static_cast<size_t>(axis)] == 1;
    if (same && !crops) {
      rule.atoms.tie_axes(rule.input(0), axis, rule.output(), axis);
    } else {
      pin_pair(rule, axis, axis);
    }
  }
}

namespace {

// Channels of `deep` are block*block of each channel of `flat`, one after the other or side by side.
void depth(const Rule& rule, ValueId deep, ValueId flat, bool side_by_side) {
  ChannelAtoms& atoms = rule.atoms;
  atoms.tie_axes(deep, 0, flat, 0);
  rule.pin_from(deep, 2);
  rule.pin_from(flat, 2);
  if (!atoms.tracked(deep, 1) || !atoms.tracked(flat, 1)) return rule.pin_operands();
  const int64_t channels = atoms.size(flat, 1);
  for (int64_t c = 0; channels > 0 && c < atoms.size(deep, 1); ++c) {
    const int64_t copies = atoms.size(deep, 1) / channels;
    atoms.tie(atoms.atom(deep, 1, c), atoms.atom(flat, 1, side_by_side ? c / copies : c % channels));
  }
}

}  // namespace

void depth_to_space(const Rule& rule) {
  depth(rule, rule.input(0), rule.output(), rule.node.attrs.s("mode", "DCR") == "CRD");
}

void space_to_depth(const Rule& rule) { depth(rule, rule.output(), rule.input(0), false); }

}  // namespace limber::channels
