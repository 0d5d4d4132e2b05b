#include "ops/gradients.h"
#include "ops/window.h"

namespace limber {
namespace {

using namespace rules;

Result<Types> infer_max_pool(const InferArgs& args) {
  LIMBER_TRY(need_numeric(args.input(0), "x"));
  LIMBER_TRY(flag_attr(args, "storage_order", false).status());
  LIMBER_ASSIGN(TensorType y, pooled(args, args.input(0)));
  Types types{y};
  if (args.num_outputs == 2) types.push_back({DType::kI64, y.shape});
  return types;
}

Result<Types> infer_average_pool(const InferArgs& args) {
  LIMBER_TRY(need_float(args.input(0), "x"));
  LIMBER_TRY(flag_attr(args, "count_include_pad", false).status());
  LIMBER_ASSIGN(TensorType y, pooled(args, args.input(0)));
  return Types{std::move(y)};
}

Result<Types> infer_lp_pool(const InferArgs& args) {
  LIMBER_TRY(need_float(args.input(0), "x"));
  LIMBER_TRY(int_attr(args, "p", std::nullopt, 1, kMaxExtent).status());
  LIMBER_ASSIGN(TensorType y, pooled(args, args.input(0)));
  return Types{std::move(y)};
}

Result<Types> infer_global(const InferArgs& args) {
  LIMBER_TRY(need_float(args.input(0), "x"));
  LIMBER_TRY(need_rank(args.input(0), 3, kMaxRank, "x"));
  if (args.attrs.has("p")) LIMBER_TRY(int_attr(args, "p", std::nullopt, 1, kMaxExtent).status());
  TensorType y = args.input(0);
  for (int i = 2; i < y.rank(); ++i) y.shape[i] = 1;
  return Types{std::move(y)};
}

double flops_pool(const Graph& graph, const Node& node) {
  double window = 1;
  for (int64_t k : node.attrs.ints("kernel")) window *= static_cast<double>(k);
  return elements(graph, node.outputs[0]) * window;
}

constexpr AttrSpec kKernel = required("kernel", AttrKind::kInts);
constexpr AttrSpec kStrides = required("strides", AttrKind::kInts);
constexpr AttrSpec kPads = required("pads", AttrKind::kInts);
constexpr AttrSpec kCeilMode = optional("ceil_mode", AttrKind::kInt);
constexpr AttrSpec kMaxPoolAttrs[] = {kKernel,   kStrides,
                                      kPads,     required("dilations", AttrKind::kInts),
                                      kCeilMode, optional("storage_order", AttrKind::kInt)};
constexpr AttrSpec kAveragePoolAttrs[] = {kKernel, kStrides, kPads, kCeilMode,
                                          optional("count_include_pad", AttrKind::kInt)};
constexpr AttrSpec kLpPoolAttrs[] = {kKernel, kStrides, kPads, required("p", AttrKind::kInt)};
constexpr AttrSpec kP[] = {required("p", AttrKind::kInt)};

}  // namespace

constinit const OpDef kMaxPoolOp = gradients::with(
    {OpKind::kMaxPool, 1, 1, 1, 2, kMaxPoolAttrs, infer_max_pool, flops_pool}, gradients::max_pool);
constinit const OpDef kAveragePoolOp =
    gradients::with({OpKind::kAveragePool, 1, 1, 1, 1, kAveragePoolAttrs, infer_average_pool, flops_pool},
                    gradients::average_pool);
constinit const OpDef kLpPoolOp = gradients::with(
    {OpKind::kLpPool, 1, 1, 1, 1, kLpPoolAttrs, infer_lp_pool, flops_pool}, gradients::lp_pool);
constinit const OpDef kGlobalAveragePoolOp =
    gradients::with({OpKind::kGlobalAveragePool, 1, 1, 1, 1, {}, infer_global, flops_of_inputs},
                    gradients::global_average_pool);
constinit const OpDef kGlobalMaxPoolOp = gradients::with(
    {OpKind::kGlobalMaxPool, 1, 1, 1, 1, {}, infer_global, flops_of_inputs}, gradients::global_max_pool);
constinit const OpDef kGlobalLpPoolOp = gradients::with(
    {OpKind::kGlobalLpPool, 1, 1, 1, 1, kP, infer_global, flops_of_inputs}, gradients::global_lp_pool);

}  // namespace limber
