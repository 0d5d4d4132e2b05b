#include <algorithm>

#include "ops/gradients.h"
#include "ops/rules.h"

namespace limber {
namespace {

using namespace rules;

Result<Types> infer_reshape(const InferArgs& args) {
  const TensorType& x = args.input(0);
  TensorType y{x.dtype, args.attrs.dims("shape")};
  LIMBER_TRY(check_type(y));
  if (!may_have_same_elements(x.shape, y.shape)) {
    return invalid("x has type {}, which cannot take the shape [{}]: the numbers of elements differ",
                   x.to_string(), y.shape.to_string());
  }
  return Types{std::move(y)};
}

Result<Types> infer_transpose(const InferArgs& args) {
  const TensorType& x = args.input(0);
  LIMBER_TRY(check_ints(args, "perm", x.rank(), 0, x.rank() - 1));
  const auto& perm = args.attrs.ints("perm");
  TensorType y = x;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t axis = perm[static_cast<size_t>(i)];
    if (std::count(perm.begin(), perm.end(), axis) > 1) {
      return invalid("attribute 'perm' holds {} twice, expected a permutation", axis);
    }
    y.shape[i] = x.shape[static_cast<int>(axis)];
  }
  return Types{std::move(y)};
}

Result<Types> infer_expand(const InferArgs& args) {
  TensorType y{args.input(0).dtype, args.attrs.dims("shape")};
  LIMBER_TRY(check_type(y));
  LIMBER_TRY(need_broadcast_to(args.input(0), y.shape, "x"));
  return Types{std::move(y)};
}

Result<Types> infer_tile(const InferArgs& args) {
  TensorType y = args.input(0);
  LIMBER_TRY(check_ints(args, "repeats", y.rank(), 0, kMaxElements));
  for (int i = 0; i < y.rank(); ++i) {
    const int64_t repeats = args.attrs.ints("repeats")[static_cast<size_t>(i)];
    const auto size = mul(y.shape[i], repeats);
    if (!size)
      return invalid("axis {} of size {} repeated {} times overflows", i, y.shape[i].to_string(), repeats);
    y.shape[i] = *size;
  }
  return Types{std::move(y)};
}

Result<Types> infer_concat(const InferArgs& args) {
  TensorType y = args.input(0);
  LIMBER_TRY(need_same_dtype(args));
  LIMBER_ASSIGN(const int axis, axis_attr(args, "axis", y.rank()));
  for (int i = 1; i < static_cast<int>(args.inputs.size()); ++i) {
    const TensorType& x = args.input(i);
    LIMBER_TRY(need_rank(x, y.rank(), y.rank(), fmt::format("input {}", i)));
    for (int d = 0; d < y.rank(); ++d) {
      const auto size = d == axis ? add(y.shape[d], x.shape[d]) : unify(y.shape[d], x.shape[d]);
      if (!size && d != axis) {
        return invalid("input {} has type {}, expected [{}] on every axis but {}", i, x.to_string(),
                       y.shape.to_string(), axis);
      }
      LIMBER_ASSIGN(y.shape[d], expressible(size, fmt::format("the sum of the sizes on axis {}", axis)));
    }
  }
  return Types{std::move(y)};
}

Result<Types> infer_split(const InferArgs& args) {
  const TensorType& x = args.input(0);
  LIMBER_ASSIGN(const int axis, axis_attr(args, "axis", x.rank()));
  LIMBER_TRY(check_ints(args, "sizes", args.num_outputs, 0, kMaxElements));
  const auto& sizes = args.attrs.ints("sizes");
  Types types;
  Dim sum = 0;
  for (int64_t size : sizes) {
    const auto next = add(sum, size);
    if (!next) return invalid("the sum of attribute 'sizes' overflows");
    sum = *next;
    types.push_back(x);
    types.back().shape[axis] = size;
  }
  if (!may_equal(sum, x.shape[axis])) {
    return invalid("attribute 'sizes' sums to {}, expected {}, the size of axis {}", sum.to_string(),
                   x.shape[axis].to_string(), axis);
  }
  return types;
}

Result<Dim> padded(const Dim& size, int64_t begin, int64_t end, const std::string& mode, int axis) {
  LIMBER_ASSIGN(const Dim out, expressible(add(size, Dim(begin + end)), "the padded size"));
  if (!size.is_constant()) return out;
  const int64_t n = size.value();
  if (out.value() < 0 || -begin > n || -end > n) {
    return invalid("pads {} and {} crop more than axis {} of size {} has", begin, end, axis, n);
  }
  const bool grows = begin > 0 || end > 0;
  if (grows && mode != "constant" && n == 0)
    return invalid("axis {} has no element to pad from (mode '{}')", axis, mode);
  if (mode == "reflect" && (begin >= n || end >= n) && grows) {
    return invalid("pads {} and {} reflect more than axis {} of size {} has; expected less than {}", begin,
                   end, axis, n, n);
  }
  return out;
}

Result<Types> infer_pad(const InferArgs& args) {
  TensorType y = args.input(0);
  LIMBER_TRY(check_ints(args, "pads", 2 * y.rank(), -kMaxElements, kMaxElements));
  LIMBER_ASSIGN(const std::string mode,
                choice_attr(args, "mode", "constant", {"constant", "reflect", "edge", "wrap"}));
  const auto& pads = args.attrs.ints("pads");
  for (int i = 0; i < y.rank(); ++i) {
    const int64_t begin = pads[static_cast<size_t>(i)], end = pads[static_cast<size_t>(y.rank() + i)];
    LIMBER_ASSIGN(y.shape[i], padded(y.shape[i], begin, end, mode, i));
  }
  return Types{std::move(y)};
}

Result<Types> infer_trilu(const InferArgs& args) {
  LIMBER_TRY(need_rank(args.input(0), 2, kMaxRank, "x"));
  LIMBER_TRY(flag_attr(args, "upper").status());
  return Types{args.input(0)};
}

Result<Types> infer_reverse_sequence(const InferArgs& args) {
  const TensorType& x = args.input(0);
  LIMBER_TRY(need_rank(x, 2, kMaxRank, "x"));
  LIMBER_ASSIGN(const int batch_axis, axis_attr(args, "batch_axis", x.rank()));
  LIMBER_ASSIGN(const int time_axis, axis_attr(args, "time_axis", x.rank()));
  if (batch_axis == time_axis)
    return invalid("attributes 'batch_axis' and 'time_axis' are both {}", time_axis);
  if (args.input(1).dtype != DType::kI64)
    return invalid("lengths has type {}, expected i64", args.input(1).to_string());
  LIMBER_TRY(need_vector(args, 1, x.shape[batch_axis], "lengths"));
  return Types{x};
}

constexpr AttrSpec kShapeAttr[] = {required("shape", AttrKind::kDims)};
constexpr AttrSpec kPerm[] = {required("perm", AttrKind::kInts)};
constexpr AttrSpec kRepeats[] = {required("repeats", AttrKind::kInts)};
constexpr AttrSpec kAxis[] = {required("axis", AttrKind::kInt)};
constexpr AttrSpec kSplitAttrs[] = {required("axis", AttrKind::kInt), required("sizes", AttrKind::kInts)};
constexpr AttrSpec kPadAttrs[] = {required("pads", AttrKind::kInts), optional("mode", AttrKind::kString),
                                  optional("value", AttrKind::kFloat)};
constexpr AttrSpec kTriluAttrs[] = {required("k", AttrKind::kInt), required("upper", AttrKind::kInt)};
constexpr AttrSpec kReverseAttrs[] = {required("batch_axis", AttrKind::kInt),
                                      required("time_axis", AttrKind::kInt)};

constexpr OpDef mover(OpKind op, InferFn infer, std::span<const AttrSpec> attrs, gradients::Rule* gradient) {
  return {op, 1, 1, 1, 1, attrs, infer, no_flops, OpFamily::kOther, gradient};
}

}  // namespace

constinit const OpDef kReshapeOp = mover(OpKind::kReshape, infer_reshape, kShapeAttr, gradients::reshape);
constinit const OpDef kTransposeOp = mover(OpKind::kTranspose, infer_transpose, kPerm, gradients::transpose);
constinit const OpDef kExpandOp = mover(OpKind::kExpand, infer_expand, kShapeAttr, gradients::expand);
constinit const OpDef kTileOp = mover(OpKind::kTile, infer_tile, kRepeats, gradients::tile);
constinit const OpDef kConcatOp =
    gradients::with({OpKind::kConcat, 1, -1, 1, 1, kAxis, infer_concat, no_flops}, gradients::concat);
constinit const OpDef kSplitOp =
    gradients::with({OpKind::kSplit, 1, 1, 1, -1, kSplitAttrs, infer_split, no_flops}, gradients::split);
constinit const OpDef kPadOp = mover(OpKind::kPad, infer_pad, kPadAttrs, gradients::pad);
constinit const OpDef kTriluOp = mover(OpKind::kTrilu, infer_trilu, kTriluAttrs, gradients::trilu);
constinit const OpDef kReverseSequenceOp =
    gradients::with({OpKind::kReverseSequence, 2, 2, 1, 1, kReverseAttrs, infer_reverse_sequence, no_flops},
                    gradients::reverse_sequence);

}  // namespace limber
