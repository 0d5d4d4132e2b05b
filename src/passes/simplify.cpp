#include <algorithm>

#include "passes/algebra.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace limber {
namespace {

bool all_equal(const std::vector<int64_t>& values, int64_t expected) {
  return std::all_of(values.begin(), values.end(), [=](int64_t v) { return v == expected; });
}

bool is_identity_window(const Attrs& attrs) {
  return all_equal(attrs.ints("kernel"), 1) && all_equal(attrs.ints("strides"), 1) &&
         all_equal(attrs.ints("pads"), 0);
}

// Sampling at the very positions of the source gives the source.
bool is_identity_resize(const Attrs& attrs) {
  const std::string coordinates = attrs.s("coordinates", "half_pixel");
  if (coordinates == "tf_crop_and_resize" || coordinates == "tf_half_pixel_for_nn") return false;
  const auto& scales = attrs.floats("scales");
  return std::all_of(scales.begin(), scales.end(), [](double s) { return s == 1.0; });
}

bool is_identity_perm(const std::vector<int64_t>& perm) {
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// Gives its first input as its only wanted output. The caller has checked that their types are equal.
bool copies_input(const Node& node) {
  switch (node.op) {
    case OpKind::kIdentity:
    case OpKind::kCast:
    case OpKind::kReshape:
    case OpKind::kExpand:
      return true;
    case OpKind::kTranspose:
      return is_identity_perm(node.attrs.ints("perm"));
    case OpKind::kSlice:
      return all_equal(node.attrs.ints("steps"), 1);
    case OpKind::kPad:
      return all_equal(node.attrs.ints("pads"), 0);
    case OpKind::kTile:
      return all_equal(node.attrs.ints("repeats"), 1);
    case OpKind::kConcat:
      return node.inputs.size() == 1;
    case OpKind::kSplit:
      return node.outputs.size() == 1;
    case OpKind::kResize:
      return is_identity_resize(node.attrs);
    case OpKind::kMaxPool:
      return node.outputs.size() == 1 && is_identity_window(node.attrs);
    case OpKind::kAveragePool:
      return is_identity_window(node.attrs);
    case OpKind::kGlobalAveragePool:
    case OpKind::kGlobalMaxPool:
      return true;
    case OpKind::kDepthToSpace:
    case OpKind::kSpaceToDepth:
      return node.attrs.i("blocksize") == 1;
    default:
      return false;
  }
}

bool remove_copy(Rewriter& r, NodeId n) {
  const Node& node = r.node(n);
  if (node.inputs.empty() || node.inputs[0] == kNoValue || node.outputs[0] == kNoValue) return false;
  if (r.graph().type(node.inputs[0]) != r.graph().type(node.outputs[0]) || !copies_input(node)) return false;
  return r.replace(node.outputs[0], node.inputs[0]);
}

void merge_reshapes(Rewriter& r, NodeId n) {
  const NodeId above = r.producer(r.input(n, 0), OpKind::kReshape);
  if (above != kNoNode) r.set_input(n, 0, r.input(above, 0));
}

void merge_transposes(Rewriter& r, NodeId n) {
  const NodeId above = r.producer(r.input(n, 0), OpKind::kTranspose);
  if (above == kNoNode) return;
  const auto& first = r.node(above).attrs.ints("perm");
  const auto& second = r.node(n).attrs.ints("perm");
  std::vector<int64_t> perm;
  for (int64_t axis : second) perm.push_back(first[static_cast<size_t>(axis)]);
  r.set_input(n, 0, r.input(above, 0));
  r.edit_attrs(n).set("perm", std::move(perm));
}

// Axes of size 1 may go anywhere without moving a byte.
Status transpose_to_reshape(Rewriter& r, NodeId n) {
  const ValueId x = r.input(n, 0), y = r.output(n);
  const Shape& shape = r.graph().type(x).shape;
  int64_t last = -1;
  for (int64_t axis : r.node(n).attrs.ints("perm")) {
    if (shape[static_cast<int>(axis)] == Dim(1)) continue;
    if (axis < last) return {};
    last = axis;
  }
  const std::string name = r.node(n).name;
  LIMBER_ASSIGN(const ValueId reshaped,
                r.emit(OpKind::kReshape, {x}, {{"shape", r.graph().type(y).shape}}, name));
  r.replace(y, reshaped);
  return {};
}

void drop_unused_outputs(Rewriter& r, NodeId n) {
  const int needed = op_def(r.node(n).op).min_outputs;
  while (static_cast<int>(r.node(n).outputs.size()) > needed) {
    const auto& outputs = r.node(n).outputs;
    if (outputs.back() != kNoValue && !r.unused(outputs.back())) return;
    // Every piece of a Split has its size.
    if (r.node(n).op == OpKind::kSplit) return;
    r.drop_output(n, outputs.size() - 1);
  }
}

Status simplify_node(Rewriter& r, NodeId n) {
  drop_unused_outputs(r, n);
  switch (r.node(n).op) {
    case OpKind::kReshape:
      merge_reshapes(r, n);
      break;
    case OpKind::kTranspose:
      merge_transposes(r, n);
      break;
    default:
      break;
  }
  if (remove_copy(r, n)) return {};
  if (r.node(n).op == OpKind::kTranspose) return transpose_to_reshape(r, n);
  return simplify_arithmetic(r, n);
}

}  // namespace

Status simplify(Graph& graph) {
  LIMBER_TRY(sweep_all(graph, simplify_node));
  graph.compact();
  return {};
}

}  // namespace limber
