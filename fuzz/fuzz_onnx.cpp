// Whatever the bytes are, importing ends in a Status or in a graph that verifies and binds without
// surprises.
#include <cstdint>
#include <map>
#include <span>

#include "io/onnx.h"
#include "ops/op_def.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace limber;
  ImportOptions options;
  options.max_tensor_bytes = size_t{1} << 30;
  const auto model = import_onnx_bytes(std::as_bytes(std::span(data, size)), "fuzz", options);
  if (!model.ok()) return 0;
  const Status sound = verify(model->graph);
  LIMBER_ASSERT(sound.ok());
  std::map<std::string, int64_t> ones;
  for (const std::string& symbol : symbols(model->graph)) ones[symbol] = 1;
  const auto bound = limber::bind(model->graph, ones);
  LIMBER_ASSERT(!bound.ok() || verify(*bound).ok());
  return 0;
}
