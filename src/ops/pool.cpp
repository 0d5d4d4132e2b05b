#include "ops/window.h"

namespace limber {
namespace {

using namespace rules;

Result<TensorType> pooled(const InferArgs& args) {
  const TensorType& x = args.input(0);
  LIMBER_TRY(need_rank(x, 3, kMaxRank, "x"));
  const int spatial = x.rank() - 2;
  LIMBER_TRY(check_ints(args, "kernel", spatial, 1, kMaxExtent));
  LIMBER_TRY(check_window_attrs(args, spatial));
  LIMBER_ASSIGN(const bool ceil_mode, flag_attr(args, "ceil_mode", false));
  TensorType y{x.dtype, {x.shape[0], x.shape[1]}};
  for (int i = 0; i < spatial; ++i) {
    Window window = window_at(args, spatial, i, args.attrs.ints("kernel")[static_cast<size_t>(i)]);
    window.ceil_mode = ceil_mode;
    if (window.pad_begin >= window.extent() || window.pad_end >= window.extent()) {
      return invalid(
          "spatial axis {} has pads {}+{}, expected less than the window of {} or windows hold only padding",
          i, window.pad_begin, window.pad_end, window.extent());
    }
    LIMBER_ASSIGN(const Dim size, window_count(x.shape[2 + i], window, i));
    y.shape.push_back(size);
  }
  return y;
}

Result<Types> infer_max_pool(const InferArgs& args) {
  LIMBER_TRY(need_numeric(args.input(0), "x"));
  LIMBER_TRY(flag_attr(args, "storage_order", false).status());
  LIMBER_ASSIGN(TensorType y, pooled(args));
  Types types{y};
  if (args.num_outputs == 2) types.push_back({DType::kI64, y.shape});
  return types;
}

Result<Types> infer_average_pool(const InferArgs& args) {
  LIMBER_TRY(need_float(args.input(0), "x"));
  LIMBER_TRY(flag_attr(args, "count_include_pad", false).status());
  LIMBER_ASSIGN(TensorType y, pooled(args));
  return Types{std::move(y)};
}

Result<Types> infer_lp_pool(const InferArgs& args) {
  LIMBER_TRY(need_float(args.input(0), "x"));
  LIMBER_TRY(int_attr(args, "p", std::nullopt, 1, kMaxExtent).status());
  LIMBER_ASSIGN(TensorType y, pooled(args));
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

constinit const OpDef kMaxPoolOp = {OpKind::kMaxPool, 1, 1, 1, 2, kMaxPoolAttrs, infer_max_pool, flops_pool};
constinit const OpDef kAveragePoolOp = {OpKind::kAveragePool, 1,         1, 1, 1, kAveragePoolAttrs,
                                        infer_average_pool,   flops_pool};
constinit const OpDef kLpPoolOp = {OpKind::kLpPool, 1, 1, 1, 1, kLpPoolAttrs, infer_lp_pool, flops_pool};
constinit const OpDef kGlobalAveragePoolOp = {
    OpKind::kGlobalAveragePool, 1, 1, 1, 1, {}, infer_global, flops_of_inputs};
constinit const OpDef kGlobalMaxPoolOp = {OpKind::kGlobalMaxPool, 1, 1, 1, 1, {}, infer_global,
                                          flops_of_inputs};
constinit const OpDef kGlobalLpPoolOp = {OpKind::kGlobalLpPool, 1, 1, 1, 1, kP, infer_global,
                                         flops_of_inputs};

}  // namespace limber
