#include "runtime/backend.h"

#include <cstring>

namespace limber {

std::optional<Candidate> NodeCompiler::element_wise(NodeId, Layout) { return std::nullopt; }

Status NodeCompiler::prepare(NodeId, Candidate&) { return {}; }

std::optional<int64_t> Backend::recall(const std::string&) const { return std::nullopt; }
void Backend::remember(const std::string&, int64_t) {}

size_t Backend::bytes(const TensorType& type, Layout layout) const {
  LIMBER_ASSERT(layout == kPlain);
  return type.bytes();
}

std::string Backend::layout_name(Layout layout) const {
  LIMBER_ASSERT(layout == kPlain);
  return "plain";
}

double Backend::reorder_seconds(const TensorType&, Layout from, Layout to) {
  LIMBER_ASSERT(from == kPlain && to == kPlain);
  return 0;
}

Result<std::unique_ptr<Kernel>> Backend::reorder(const TensorType& type, Layout from, Layout to) {
  LIMBER_ASSERT(from == kPlain && to == kPlain);
  const size_t bytes = type.bytes();
  return make_kernel([bytes](const KernelIo& io) { std::memcpy(io.outputs[0], io.inputs[0], bytes); });
}

Candidate plain_candidate(const Node& node, std::string impl, double seconds) {
  Candidate c;
  c.impl = std::move(impl);
  c.inputs.assign(node.inputs.size(), kPlain);
  c.outputs.assign(node.outputs.size(), kPlain);
  c.seconds = seconds;
  return c;
}

}  // namespace limber
