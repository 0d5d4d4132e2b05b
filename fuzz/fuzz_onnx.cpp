// Whatever the bytes are, importing ends in a Status or in a graph that verifies and binds without
// surprises, and taking the large tensors out of a file loses nothing.
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <span>

#include "io/onnx.h"
#include "io/wire.h"
#include "ops/op_def.h"

namespace {

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace limber;
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
  LIMBER_ASSERT(!bound.ok() || verify(*bound).ok());
  return 0;
}
