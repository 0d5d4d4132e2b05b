#include "ops/gradients.h"
#include "ops/rules.h"

namespace limber {
namespace {

using namespace rules;

// x[N,C,..] and vectors of C for all other inputs.
Status check_channel_norm(const InferArgs& args) {
  const TensorType& x = args.input(0);
  LIMBER_TRY(need_float(x, "x"));
  LIMBER_TRY(need_same_dtype(args));
  LIMBER_TRY(need_rank(x, 2, kMaxRank, "x"));
  for (int i = 1; i < static_cast<int>(args.inputs.size()); ++i) {
    LIMBER_TRY(need_vector(args, i, x.shape[1], fmt::format("input {}", i)));
  }
  return check_finite(args, "epsilon");
}

Result<Types> infer_batch_norm(const InferArgs& args) {
  LIMBER_TRY(check_channel_norm(args));
  return Types{args.input(0)};
}

Result<Types> infer_batch_norm_training(const InferArgs& args) {
  LIMBER_TRY(check_channel_norm(args));
  LIMBER_TRY(check_finite(args, "momentum"));
  LIMBER_TRY(choice_attr(args, "act", "", {"", "relu"}).status());
  Types types{args.input(0), args.input(3), args.input(4), args.input(3), args.input(4)};
  types.resize(static_cast<size_t>(args.num_outputs));
  return types;
}

Result<Types> infer_group_norm(const InferArgs& args) {
  LIMBER_TRY(check_channel_norm(args));
  LIMBER_ASSIGN(const int64_t groups, int_attr(args, "groups", std::nullopt, 1, kMaxExtent));
  const Dim& channels = args.input(0).shape[1];
  if (channels.is_constant() && channels.value() % groups != 0) {
    return invalid("{} channels do not divide into {} groups", channels.to_string(), groups);
  }
  return Types{args.input(0)};
}

Result<Types> infer_layer_norm(const InferArgs& args) {
  const TensorType& x = args.input(0);
  LIMBER_TRY(need_float(x, "x"));
  LIMBER_TRY(need_same_dtype(args));
  LIMBER_TRY(check_finite(args, "epsilon"));
  LIMBER_ASSIGN(const int axis, axis_attr(args, "axis", x.rank()));
  const Shape normalized(std::vector<Dim>(x.shape.begin() + axis, x.shape.end()));
  if (args.has(1)) LIMBER_TRY(need_broadcast_to(args.input(1), normalized, "scale"));
  if (args.has(2)) LIMBER_TRY(need_broadcast_to(args.input(2), normalized, "bias"));
  TensorType statistics = x;
  for (int i = axis; i < x.rank(); ++i) statistics.shape[i] = 1;
  Types types{x};
  types.resize(static_cast<size_t>(args.num_outputs), statistics);
  return types;
}

Result<Types> infer_lrn(const InferArgs& args) {
  LIMBER_TRY(need_float(args.input(0), "x"));
  LIMBER_TRY(need_rank(args.input(0), 2, kMaxRank, "x"));
  LIMBER_TRY(int_attr(args, "size", std::nullopt, 1, kMaxExtent).status());
  for (const char* name : {"alpha", "beta", "bias"}) LIMBER_TRY(check_finite(args, name));
  return Types{args.input(0)};
}

Result<Types> infer_lp_norm(const InferArgs& args) {
  LIMBER_TRY(need_float(args.input(0), "x"));
  LIMBER_TRY(axis_attr(args, "axis", args.input(0).rank()).status());
  LIMBER_TRY(int_attr(args, "p", std::nullopt, 1, 2).status());
  return Types{args.input(0)};
}

constexpr AttrSpec kEpsilon[] = {required("epsilon", AttrKind::kFloat)};
constexpr AttrSpec kBatchNormTrainingAttrs[] = {required("epsilon", AttrKind::kFloat),
                                                required("momentum", AttrKind::kFloat),
                                                optional("act", AttrKind::kString)};
constexpr AttrSpec kAxisEpsilon[] = {required("axis", AttrKind::kInt), required("epsilon", AttrKind::kFloat)};
constexpr AttrSpec kGroupsEpsilon[] = {required("groups", AttrKind::kInt),
                                       required("epsilon", AttrKind::kFloat)};
constexpr AttrSpec kLrnAttrs[] = {required("size", AttrKind::kInt), required("alpha", AttrKind::kFloat),
                                  required("beta", AttrKind::kFloat), required("bias", AttrKind::kFloat)};
constexpr AttrSpec kAxisP[] = {required("axis", AttrKind::kInt), required("p", AttrKind::kInt)};

constexpr InPlace kRunningStatistics[] = {{1, 3}, {2, 4}};

}  // namespace

// Per element: inference scales and adds; the others also sum, subtract, square and sum.
constinit const OpDef kBatchNormOp =
    gradients::with({OpKind::kBatchNorm, 5, 5, 1, 1, kEpsilon, infer_batch_norm, flops_per_element<2>},
                    gradients::batch_norm);
constinit const OpDef kBatchNormTrainingOp = gradients::with(
    {OpKind::kBatchNormTraining, 5, 5, 3, 5, kBatchNormTrainingAttrs, infer_batch_norm_training,
     flops_per_element<6>, OpFamily::kOther, nullptr, kRunningStatistics},
    gradients::batch_norm_training);
constinit const OpDef kLayerNormOp =
    gradients::with({OpKind::kLayerNorm, 1, 3, 1, 3, kAxisEpsilon, infer_layer_norm, flops_per_element<6>},
                    gradients::layer_norm);
constinit const OpDef kInstanceNormOp =
    gradients::with({OpKind::kInstanceNorm, 3, 3, 1, 1, kEpsilon, infer_batch_norm, flops_per_element<6>},
                    gradients::instance_norm);
constinit const OpDef kGroupNormOp =
    gradients::with({OpKind::kGroupNorm, 3, 3, 1, 1, kGroupsEpsilon, infer_group_norm, flops_per_element<6>},
                    gradients::group_norm);
constinit const OpDef kLRNOp =
    gradients::with({OpKind::kLRN, 1, 1, 1, 1, kLrnAttrs, infer_lrn, flops_per_element<6>}, gradients::lrn);
constinit const OpDef kLpNormOp = gradients::with(
    {OpKind::kLpNorm, 1, 1, 1, 1, kAxisP, infer_lp_norm, flops_per_element<3>}, gradients::lp_norm);

}  // namespace limber
