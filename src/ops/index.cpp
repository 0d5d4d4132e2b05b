#include "ops/gradients.h"
#include "ops/rules.h"

namespace limber {
namespace {

using namespace rules;

Result<Types> infer_gather(const InferArgs& args) {
  const TensorType &x = args.input(0), &indices = args.input(1);
  LIMBER_TRY(need_index(indices, "indices"));
  LIMBER_ASSIGN(const int axis, axis_attr(args, "axis", x.rank()));
  Shape shape;
  for (int i = 0; i < axis; ++i) shape.push_back(x.shape[i]);
  for (const Dim& d : indices.shape) shape.push_back(d);
  for (int i = axis + 1; i < x.rank(); ++i) shape.push_back(x.shape[i]);
  return Types{{x.dtype, std::move(shape)}};
}

// indices have the rank of x and, on every axis but `axis`, at most its size.
Status check_element_indices(const InferArgs& args) {
  const TensorType &x = args.input(0), &indices = args.input(1);
  LIMBER_TRY(need_index(indices, "indices"));
  LIMBER_ASSIGN(const int axis, axis_attr(args, "axis", x.rank()));
  LIMBER_TRY(need_rank(indices, x.rank(), x.rank(), "indices"));
  for (int i = 0; i < x.rank(); ++i) {
    const Dim &size = x.shape[i], &wanted = indices.shape[i];
    if (i == axis || !size.is_constant() || !wanted.is_constant() || wanted.value() <= size.value()) continue;
    return invalid("indices have type {}, expected at most {} on axis {}", indices.to_string(), size.value(),
                   i);
  }
  return {};
}

Result<Types> infer_gather_elements(const InferArgs& args) {
  LIMBER_TRY(check_element_indices(args));
  return Types{{args.input(0).dtype, args.input(1).shape}};
}

// How many axes of x one index tuple (the last axis of indices) addresses.
Result<int> tuple_size(const InferArgs& args, int batch_dims) {
  const TensorType &x = args.input(0), &indices = args.input(1);
  LIMBER_TRY(need_index(indices, "indices"));
  LIMBER_TRY(need_rank(x, batch_dims + 1, kMaxRank, "x"));
  LIMBER_TRY(need_rank(indices, batch_dims + 1, kMaxRank, "indices"));
  const Dim& last = indices.shape[indices.rank() - 1];
  if (last.is_constant() && last.value() >= 1 && last.value() <= x.rank() - batch_dims) {
    return static_cast<int>(last.value());
  }
  return invalid("indices have type {}, expected a last axis of 1 to {}", indices.to_string(),
                 x.rank() - batch_dims);
}

// The shape of what the tuples select: indices without the last axis, then the rest of x.
Shape selected_shape(const InferArgs& args, int first_kept) {
  const TensorType &x = args.input(0), &indices = args.input(1);
  Shape shape(std::vector<Dim>(indices.shape.begin(), indices.shape.end() - 1));
  for (int i = first_kept; i < x.rank(); ++i) shape.push_back(x.shape[i]);
  return shape;
}

Result<Types> infer_gather_nd(const InferArgs& args) {
  LIMBER_ASSIGN(const int64_t batch_dims, int_attr(args, "batch_dims", 0, 0, kMaxRank - 1));
  const int batch = static_cast<int>(batch_dims);
  LIMBER_ASSIGN(const int tuple, tuple_size(args, batch));
  Shape shape = selected_shape(args, batch + tuple);
  for (int i = 0; i < batch; ++i) {
    const auto size = unify(args.input(0).shape[i], args.input(1).shape[i]);
    if (!size) {
      return invalid("x has type {} and indices {}, expected the same size on batch axis {}",
                     args.input(0).to_string(), args.input(1).to_string(), i);
    }
    shape[i] = *size;
  }
  return Types{{args.input(0).dtype, std::move(shape)}};
}

Status check_updates(const InferArgs& args, const Shape& expected) {
  const TensorType &x = args.input(0), &updates = args.input(2);
  if (updates.dtype != x.dtype) {
    return invalid("updates have type {}, expected the dtype of x, {}", updates.to_string(),
                   dtype_name(x.dtype));
  }
  LIMBER_ASSIGN(const std::string reduction,
                choice_attr(args, "reduction", "none", {"none", "add", "mul", "max", "min"}));
  if (reduction != "none") LIMBER_TRY(need_numeric(x, "x"));
  return need_shape(updates, expected, "updates");
}

Result<Types> infer_scatter_elements(const InferArgs& args) {
  LIMBER_TRY(check_element_indices(args));
  LIMBER_TRY(check_updates(args, args.input(1).shape));
  return Types{args.input(0)};
}

Result<Types> infer_scatter_nd(const InferArgs& args) {
  LIMBER_ASSIGN(const int tuple, tuple_size(args, 0));
  LIMBER_TRY(check_updates(args, selected_shape(args, tuple)));
  return Types{args.input(0)};
}

Result<Types> infer_one_hot(const InferArgs& args) {
  const TensorType &indices = args.input(0), &values = args.input(1);
  LIMBER_TRY(need_numeric(indices, "indices"));
  LIMBER_TRY(need_vector(args, 1, 2, "values"));
  LIMBER_ASSIGN(const int axis, axis_attr(args, "axis", indices.rank() + 1));
  LIMBER_ASSIGN(const int64_t depth, int_attr(args, "depth", std::nullopt, 0, kMaxElements));
  std::vector<Dim> shape(indices.shape.begin(), indices.shape.end());
  shape.insert(shape.begin() + axis, Dim(depth));
  return Types{{values.dtype, Shape(std::move(shape))}};
}

Result<Types> infer_eye_like(const InferArgs& args) {
  LIMBER_TRY(need_rank(args.input(0), 2, 2, "x"));
  LIMBER_ASSIGN(const DType to, dtype_attr(args, "to"));
  return Types{{to, args.input(0).shape}};
}

Result<Types> infer_shape_of(const InferArgs& args) { return Types{{DType::kI64, {args.input(0).rank()}}}; }

constexpr AttrSpec kAxis[] = {required("axis", AttrKind::kInt)};
constexpr AttrSpec kBatchDims[] = {optional("batch_dims", AttrKind::kInt)};
constexpr AttrSpec kAxisReduction[] = {required("axis", AttrKind::kInt),
                                       optional("reduction", AttrKind::kString)};
constexpr AttrSpec kReduction[] = {optional("reduction", AttrKind::kString)};
constexpr AttrSpec kOneHotAttrs[] = {required("axis", AttrKind::kInt), required("depth", AttrKind::kInt)};
constexpr AttrSpec kEyeAttrs[] = {required("k", AttrKind::kInt), required("to", AttrKind::kString)};

}  // namespace

constinit const OpDef kGatherOp =
    gradients::with({OpKind::kGather, 2, 2, 1, 1, kAxis, infer_gather, no_flops}, gradients::gather);
constinit const OpDef kGatherElementsOp =
    gradients::with({OpKind::kGatherElements, 2, 2, 1, 1, kAxis, infer_gather_elements, no_flops},
                    gradients::gather_elements);
constinit const OpDef kGatherNDOp = gradients::with(
    {OpKind::kGatherND, 2, 2, 1, 1, kBatchDims, infer_gather_nd, no_flops}, gradients::gather_nd);
constinit const OpDef kScatterElementsOp =
    gradients::with({OpKind::kScatterElements, 3, 3, 1, 1, kAxisReduction, infer_scatter_elements, no_flops},
                    gradients::scatter_elements);
constinit const OpDef kScatterNDOp = gradients::with(
    {OpKind::kScatterND, 3, 3, 1, 1, kReduction, infer_scatter_nd, no_flops}, gradients::scatter_nd);
constinit const OpDef kOneHotOp =
    gradients::with({OpKind::kOneHot, 2, 2, 1, 1, kOneHotAttrs, infer_one_hot, no_flops}, gradients::one_hot);
constinit const OpDef kEyeLikeOp =
    gradients::with({OpKind::kEyeLike, 1, 1, 1, 1, kEyeAttrs, infer_eye_like, no_flops}, gradients::zero);
constinit const OpDef kShapeOfOp = {OpKind::kShapeOf, 1, 1, 1, 1, {}, infer_shape_of, no_flops};

}  // namespace limber
