#include "backend/cpu/simd/own_kernels.h"

#include "backend/cpu/simd/own_families.h"

namespace limber {
namespace own {
namespace {

using Factory = KernelPtr (*)(const Graph& graph, const Node& node);

// nullptr: no own kernel.
Factory factory_of(OpKind op) {
  switch (op) {
    case OpKind::kAbs:
    case OpKind::kNeg:
    case OpKind::kSign:
    case OpKind::kReciprocal:
    case OpKind::kFloor:
    case OpKind::kCeil:
    case OpKind::kRound:
    case OpKind::kSqrt:
    case OpKind::kExp:
    case OpKind::kLog:
    case OpKind::kErf:
    case OpKind::kSin:
    case OpKind::kCos:
    case OpKind::kTan:
    case OpKind::kAsin:
    case OpKind::kAcos:
    case OpKind::kAtan:
    case OpKind::kSinh:
    case OpKind::kCosh:
    case OpKind::kTanh:
    case OpKind::kAsinh:
    case OpKind::kAcosh:
    case OpKind::kAtanh:
    case OpKind::kRelu:
    case OpKind::kSigmoid:
    case OpKind::kSilu:
    case OpKind::kHardSwish:
    case OpKind::kMish:
    case OpKind::kSoftplus:
    case OpKind::kSoftsign:
    case OpKind::kGelu:
    case OpKind::kLeakyRelu:
    case OpKind::kElu:
    case OpKind::kCelu:
    case OpKind::kSelu:
    case OpKind::kThresholdedRelu:
    case OpKind::kHardSigmoid:
    case OpKind::kShrink:
    case OpKind::kClip:
    case OpKind::kNot:
    case OpKind::kIsNaN:
    case OpKind::kIsInf:
      return &make_unary;
    case OpKind::kCast:
      return &make_cast;
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kDiv:
    case OpKind::kPow:
    case OpKind::kMin:
    case OpKind::kMax:
    case OpKind::kPRelu:
    case OpKind::kAnd:
    case OpKind::kOr:
    case OpKind::kXor:
    case OpKind::kEqual:
    case OpKind::kLess:
    case OpKind::kLessOrEqual:
    case OpKind::kGreater:
    case OpKind::kGreaterOrEqual:
      return &make_binary;
    case OpKind::kWhere:
      return &make_where;
    case OpKind::kAttention:
      return &make_attention;
    case OpKind::kBatchNorm:
      return &make_batch_norm;
    case OpKind::kLayerNorm:
      return &make_layer_norm;
    case OpKind::kInstanceNorm:
    case OpKind::kGroupNorm:
      return &make_group_norm;
    case OpKind::kLRN:
      return &make_lrn;
    case OpKind::kGlobalAveragePool:
    case OpKind::kGlobalMaxPool:
    case OpKind::kReduceSum:
    case OpKind::kReduceMean:
    case OpKind::kReduceMax:
    case OpKind::kReduceMin:
    case OpKind::kReduceProd:
    case OpKind::kReduceL1:
    case OpKind::kReduceL2:
    case OpKind::kReduceLogSum:
    case OpKind::kReduceLogSumExp:
    case OpKind::kReduceSumSquare:
      return &make_reduce;
    case OpKind::kArgMax:
    case OpKind::kArgMin:
      return &make_arg;
    case OpKind::kSoftmax:
    case OpKind::kLogSoftmax:
      return &make_softmax;
    case OpKind::kTranspose:
    case OpKind::kDepthToSpace:
    case OpKind::kSpaceToDepth:
      return &make_transpose;
    case OpKind::kConcat:
      return &make_concat;
    case OpKind::kSplit:
      return &make_split;
    case OpKind::kSlice:
    case OpKind::kExpand:
    case OpKind::kTile:
      return &make_strided_copy;
    case OpKind::kGather:
      return &make_gather;
    case OpKind::kPad:
      return &make_pad;
    case OpKind::kResize:
      return &make_resize;
    case OpKind::kActivationBackward:
      return &make_activation_backward;
    case OpKind::kSoftmaxBackward:
      return &make_softmax_backward;
    case OpKind::kLayerNormBackward:
      return &make_layer_norm_backward;
    case OpKind::kGatherBackward:
      return &make_gather_backward;
    case OpKind::kSgdUpdate:
      return &make_sgd;
    case OpKind::kAdamUpdate:
      return &make_adam;
    default:
      return nullptr;
  }
}

KernelPtr make(const Graph& graph, const Node& node) {
  if (const Factory factory = factory_of(node.op)) return factory(graph, node);
  return own_channel_kernel(graph, node, ChannelOrder::kPlanes);
}

}  // namespace

bool all_f32(const Graph& graph, const Node& node) {
  for (const auto* ids : {&node.inputs, &node.outputs}) {
    for (ValueId v : *ids) {
      if (v != kNoValue && graph.type(v).dtype != DType::kF32) return false;
    }
  }
  return true;
}

}  // namespace own

std::unique_ptr<Kernel> own_channel_kernel(const Graph& graph, const Node& node, ChannelOrder order) {
  if (node.op == OpKind::kGather) return own::make_channel_gather(graph, node, order);
  if (!own::all_f32(graph, node)) return nullptr;
  switch (node.op) {
    case OpKind::kBatchNormTraining:
      return own::make_batch_norm_training(graph, node, order);
    case OpKind::kBatchNormBackward:
      return own::make_batch_norm_backward(graph, node, order);
    case OpKind::kBatchNormApply:
      return own::make_batch_norm_apply(graph, node, order);
    case OpKind::kMaxPoolBackward:
      return own::make_max_pool_backward(graph, node, order);
    case OpKind::kAveragePoolBackward:
      return own::make_average_pool_backward(graph, node, order);
    default:
      return nullptr;
  }
}

bool own_supports(const Graph& graph, const Node& node) { return own::make(graph, node) != nullptr; }

Result<std::unique_ptr<Kernel>> own_kernel(const Graph& graph, const Node& node) {
  auto kernel = own::make(graph, node);
  if (kernel == nullptr) {
    return unsupported("{} '{}': the CPU backend has no own kernel for these types and attributes",
                       op_name(node.op), node.name);
  }
  return kernel;
}

int own_may_alias(const Graph& graph, const Node& node) {
  if (!own::has_output(node, 0)) return -1;
  if (node.op == OpKind::kBatchNormTraining || node.op == OpKind::kBatchNormApply) return 0;
  if (node.op == OpKind::kBatchNormBackward || node.op == OpKind::kSoftmaxBackward) return 1;
  if (node.op == OpKind::kActivationBackward) return 0;
  const auto factory = own::factory_of(node.op);
  const bool first_only = factory == &own::make_unary || factory == &own::make_softmax ||
                          factory == &own::make_batch_norm || factory == &own::make_layer_norm ||
                          factory == &own::make_group_norm;
  const int operands = first_only ? 1 : factory == &own::make_binary ? 2 : 0;
  const TensorType& out = own::output_type(graph, node);
  for (int i = 0; i < operands; ++i) {
    if (own::input_type(graph, node, i) == out) return i;
  }
  return -1;
}

}  // namespace limber
