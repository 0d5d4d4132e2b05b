// Whatever the bytes are, importing ends in a Status or in a graph that verifies, binds, is taken apart,
// differentiated, compiled and, when it is small, run without surprises; and taking the large tensors out of
// a file loses nothing.
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <span>

#include "backend/ref/ref_backend.h"
#include "io/onnx.h"
#include "io/wire.h"
#include "ops/op_def.h"
#include "passes/channel_groups.h"
#include "passes/cut_points.h"
#include "passes/differentiate.h"
#include "runtime/compile.h"
#include "runtime/session.h"

namespace {

using namespace limber;

void check_split(std::span<const std::byte> bytes) {
  const auto split = limber::onnx_io::split_model(bytes, 1);
  if (!split) return;
  onnx::ModelProto whole, rest;
  const bool parsed = whole.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  const bool also = rest.ParseFromString(split->rest);
  LIMBER_ASSERT(parsed == also);
  if (!parsed) return;
  LIMBER_ASSERT(static_cast<size_t>(rest.graph().initializer_size()) == split->raw.size());
  for (int i = 0; i < rest.graph().initializer_size(); ++i) {
    const auto raw = split->raw[static_cast<size_t>(i)];
    if (raw.empty()) continue;
    rest.mutable_graph()->mutable_initializer(i)->set_raw_data(raw.data(), raw.size());
  }
  LIMBER_ASSERT(rest.SerializeAsString() == whole.SerializeAsString());
}

// FLOP and bytes of all nodes: small enough for thousands of runs a minute, enough for every operator.
constexpr double kMaxWork = 2e5;

bool is_small(const Graph& graph) {
  double work = 0;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    work += node_flops(graph, NodeId{n}) + node_bytes(graph, NodeId{n});
  }
  return work <= kMaxWork;
}

template <typename T>
void count_up(Tensor tensor) {
  for (size_t i = 0; i < tensor.data<T>().size(); ++i) {
    tensor.data<T>()[i] = static_cast<T>(static_cast<int>((i + 1) % 4) - 1);
  }
}

// 0, 1, 2, -1, 0 ...: indices among them are sometimes right. Other types are zero.
void fill(Tensor tensor) {
  if (tensor.bytes() > 0) std::memset(tensor.raw(), 0, tensor.bytes());
  if (tensor.dtype() == DType::kF32) count_up<float>(tensor);
  if (tensor.dtype() == DType::kI32) count_up<int32_t>(tensor);
  if (tensor.dtype() == DType::kI64) count_up<int64_t>(tensor);
}

// What looks at a graph of any shape, as `inspect`, `elastify` and training do.
void check_passes(const Graph& graph) {
  cut_points(graph);
  channel_groups(graph);
  for (const Output& output : graph.outputs()) {
    const TensorType& type = graph.type(output.value);
    if (type.dtype != DType::kF32) continue;
    Graph step = graph;
    std::vector<int64_t> axes(static_cast<size_t>(type.rank()));
    std::iota(axes.begin(), axes.end(), 0);
    const auto loss =
        emit(step, OpKind::kReduceSum, {output.value}, {{"axes", axes}, {"keepdims", int64_t{0}}}, "loss");
    LIMBER_ASSERT(loss.ok());
    std::vector<ValueId> targets = step.inputs();
    std::erase_if(targets, [&](ValueId v) { return step.type(v).dtype != DType::kF32; });
    const auto gradients = differentiate(step, *loss, targets);
    LIMBER_ASSERT(!gradients.ok() || verify(step).ok());
    return;
  }
}

void check_run(const Model& model, const Graph& bound) {
  if (!is_small(bound)) return;
  CompileSettings options;
  options.max_bytes = size_t{16} << 20;
  const auto plan = compile(bound, model.params, {make_ref_backend()}, options);
  if (!plan.ok()) return;
  const auto session = Session::create(*plan);
  if (!session.ok()) return;
  for (size_t i = 0; i < bound.inputs().size(); ++i) fill((*session)->input(i));
  for (int i = 0; i < 2; ++i) {
    const Status status = (*session)->run();
    if (!status.ok()) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  check_split(bytes);
  ImportOptions options;
  options.max_tensor_bytes = size_t{1} << 30;
  const auto model = import_onnx_bytes(bytes, "fuzz", options);
  if (!model.ok()) return 0;
  const Status sound = verify(model->graph);
  LIMBER_ASSERT(sound.ok());
  std::map<std::string, int64_t> ones;
  for (const std::string& symbol : symbols(model->graph)) ones[symbol] = 1;
  const auto bound = limber::bind(model->graph, ones);
  if (!bound.ok()) return 0;
  LIMBER_ASSERT(verify(*bound).ok());
  check_passes(*bound);
  check_run(*model, *bound);
  return 0;
}
