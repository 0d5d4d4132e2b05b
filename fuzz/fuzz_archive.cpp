// Any bytes, as an archive and as a list of images: each image is inside the bytes or held, and within the
// limits.
#include <cstdint>
#include <span>

#include "data/archive.h"
#include "data/dataset.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace limber;
  const auto bytes = std::as_bytes(std::span(data, size));
  size_t sum = 0;
  if (const auto archive = parse_archive(bytes); archive.ok()) {
    for (const Member& image : archive->images) {
      for (const std::byte b : image.bytes) sum += static_cast<size_t>(b);
    }
  }
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"list.csv", "list.txt"}) {
    const auto list = parse_list(text, name);
    if (!list.ok()) continue;
    LIMBER_ASSERT((*list)->size() > 0);
    for (size_t i = 0; i < (*list)->size(); ++i)
      LIMBER_ASSERT((*list)->label(i) < static_cast<int64_t>((*list)->class_names().size()));
  }
  return sum == SIZE_MAX ? 1 : 0;  // so that every byte is read
}
