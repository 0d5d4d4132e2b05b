// What comes with an elastic model, by the first byte: (m)anifest, (v)ariant, (r)ecord, (t)able.
// What is read can be written, and then reads as the same.
#include <cstdint>
#include <span>
#include <string_view>

#include "variant/elastic_manifest.h"
#include "variant/lmdb_check.h"
#include "variant/variant_table.h"

namespace {

using namespace limber;

void manifest(std::string_view text) {
  const auto read = parse_elastic_manifest(text);
  if (read.ok()) LIMBER_ASSERT(format_elastic_manifest(*read) == text);
}

void variant(std::string_view text) {
  const auto read = parse_variant(text);
  if (!read.ok()) return;
  const auto again = parse_variant(print(*read));
  LIMBER_ASSERT(again.ok() && *again == *read);
}

void record(std::string_view text) {
  const auto read = parse_record(text);
  if (!read.ok()) return;
  const auto again = parse_record(format_record(*read));
  LIMBER_ASSERT(again.ok() && *again == *read);
}

void table(std::string_view text) {
  const auto file = std::as_bytes(std::span(text));
  if (check_lmdb_header(file, size_t{1} << 28).ok()) static_cast<void>(check_lmdb(file).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'm':
      manifest(text);
      break;
    case 'v':
      variant(text);
      break;
    case 'r':
      record(text);
      break;
    case 't':
      table(text);
      break;
  }
  return 0;
}
