// Whatever a history holds, there is a page about it or an error.
#include <cstdint>

#include "report/training_page.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace limber;
  const auto log = parse_history({reinterpret_cast<const char*>(data), size}, "history.jsonl");
  if (log.ok()) LIMBER_ASSERT(!training_page({*log, *log}).empty());
  return 0;
}
