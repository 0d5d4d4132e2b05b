#include <algorithm>
#include <map>

#include "ops/einsum.h"
#include "passes/channel_rules.h"

namespace limber::channels {
namespace {

// A channel axis of a grouped product with the weight axis that holds only one group's width.
// `whole`: channels of one group are tied and the weights keep their width.
void tie_groups(ChannelAtoms& atoms, ValueId x, int64_t groups, ValueId w, int w_axis, bool whole) {
  const int64_t width = atoms.size(x, 1) / groups;
  for (int64_t c = 0; c < groups * width; ++c) {
    atoms.tie(atoms.atom(x, 1, c),
              whole ? atoms.atom(x, 1, c / width * width) : atoms.atom(w, w_axis, c % width));
  }
  if (whole) atoms.pin_axis(w, w_axis);
}

// The two channel axes of a grouped product: `wide` has an axis of its own in the weights, `narrow` shares
// axis 1 of them among the groups.
void grouped(const Rule& rule, ValueId wide, ValueId narrow, int64_t groups) {
  ChannelAtoms& atoms = rule.atoms;
  const ValueId w = rule.input(1);
  if (!atoms.tracked(wide, 1) || !atoms.tracked(narrow, 1)) return rule.pin_operands();
  const int64_t wide_width = atoms.size(wide, 1) / groups, narrow_width = atoms.size(narrow, 1) / groups;
  const bool whole = by_whole_groups(groups, std::max(wide_width, narrow_width));
  tie_groups(atoms, narrow, groups, w, 1, whole);
  for (int64_t c = 0; c < groups * wide_width; ++c) {
    const int64_t group = c / wide_width, position = c % wide_width;
    atoms.tie(atoms.atom(wide, 1, c),
              whole ? atoms.atom(narrow, 1, group * narrow_width) : atoms.atom(wide, 1, position));
  }
}

void convolution(const Rule& rule, bool transposed) {
  const ValueId x = rule.input(0), w = rule.input(1), bias = rule.input(2), y = rule.output();
  const ValueId wide = transposed ? x : y, narrow = transposed ? y : x;
  const int64_t groups = rule.node.attrs.i("groups", 1);
  rule.atoms.tie_axes(x, 0, y, 0);
  for (ValueId v : {x, y, w}) rule.pin_from(v, 2);
  rule.atoms.tie_axes(w, 0, wide, 1);
  if (groups == 1) {
    rule.atoms.tie_axes(w, 1, narrow, 1);
  } else {
    grouped(rule, wide, narrow, groups);
  }
  if (bias != kNoValue) rule.atoms.tie_axes(bias, 0, y, 1);
}

}  // namespace

void conv(const Rule& rule) {
  convolution(rule, false);
  if (rule.input(3) != kNoValue) rule.atoms.tie_broadcast(rule.input(3), rule.output());
}

void conv_transpose(const Rule& rule) { convolution(rule, true); }

void gemm(const Rule& rule) {
  const ValueId a = rule.input(0), b = rule.input(1), y = rule.output();
  const int ta = rule.node.attrs.i("trans_a", 0) != 0, tb = rule.node.attrs.i("trans_b", 0) != 0;
  rule.atoms.tie_axes(a, ta, y, 0);
  rule.atoms.tie_axes(a, 1 - ta, b, tb);
  rule.atoms.tie_axes(b, 1 - tb, y, 1);
  if (rule.input(2) != kNoValue) rule.atoms.tie_broadcast(rule.input(2), y);
}

void matmul(const Rule& rule) {
  const ValueId a = rule.input(0), b = rule.input(1), y = rule.output();
  const int ra = rule.rank(a), rb = rule.rank(b), ry = rule.rank(y);
  const bool ta = rule.node.attrs.i("trans_a", 0) != 0, tb = rule.node.attrs.i("trans_b", 0) != 0;
  const int a_sum = ra == 1 ? 0 : (ta ? ra - 2 : ra - 1), b_sum = rb == 1 ? 0 : (tb ? rb - 1 : rb - 2);
  rule.atoms.tie_axes(a, a_sum, b, b_sum);
  const int matrix = (ra > 1) + (rb > 1);  // axes of y that are not of the batch
  if (ra > 1) rule.atoms.tie_axes(a, ta ? ra - 1 : ra - 2, y, ry - matrix);
  if (rb > 1) rule.atoms.tie_axes(b, tb ? rb - 2 : rb - 1, y, ry - 1);
  for (int i = 0; i < ra - 2; ++i) rule.atoms.tie_axes(a, i, y, ry - matrix - (ra - 2) + i);
  for (int i = 0; i < rb - 2; ++i) rule.atoms.tie_axes(b, i, y, ry - matrix - (rb - 2) + i);
  for (size_t i = 2; i < 4; ++i) {
    if (rule.input(i) != kNoValue) rule.atoms.tie_broadcast(rule.input(i), y);
  }
}

// Axes of one letter run together; what the output lacks is summed over.
void einsum(const Rule& rule) {
  std::vector<int> ranks;
  for (ValueId v : rule.node.inputs) ranks.push_back(rule.rank(v));
  const auto axes = parse_einsum(rule.node.attrs.s("equation"), ranks);
  if (!axes.ok()) return rule.pin_operands();
  std::map<char, std::pair<ValueId, int>> longest;  // by letter
  const auto each = [&](auto&& visit) {
    for (size_t i = 0; i <= rule.node.inputs.size(); ++i) {
      const bool is_output = i == rule.node.inputs.size();
      const std::string& letters = is_output ? axes->output : axes->inputs[i];
      for (size_t k = 0; k < letters.size(); ++k)
        visit(letters[k], is_output ? rule.output() : rule.input(i), static_cast<int>(k));
    }
  };
  each([&](char letter, ValueId v, int axis) {
    const auto [it, fresh] = longest.try_emplace(letter, v, axis);
    if (!fresh && rule.graph.type(it->second.first).shape[it->second.second] == Dim(1))
      it->second = {v, axis};
  });
  each([&](char letter, ValueId v, int axis) {
    rule.atoms.tie_axes(v, axis, longest[letter].first, longest[letter].second);
  });
}

void attention(const Rule& rule) {
  const ValueId q = rule.input(0), k = rule.input(1), v = rule.input(2), mask = rule.input(3),
                y = rule.output();
  const int rank = rule.rank(q);
  for (ValueId other : {k, v, y}) rule.tie_same(q, other, 0, rank - 2);
  rule.atoms.tie_axes(q, rank - 2, y, rank - 2);
  rule.atoms.tie_axes(q, rank - 1, k, rank - 1);
  rule.atoms.tie_axes(v, rank - 1, y, rank - 1);
  rule.atoms.pin_axis(k, rank - 2);
  rule.atoms.pin_axis(v, rank - 2);
  if (mask == kNoValue) return;
  const int missing = rank - rule.rank(mask);
  for (int axis = 0; axis + missing < rank - 1; ++axis) rule.atoms.tie_axes(mask, axis, q, axis + missing);
  if (rule.rank(mask) > 0) rule.atoms.pin_axis(mask, rule.rank(mask) - 1);
}

}  // namespace limber::channels
