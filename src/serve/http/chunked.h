// Bodies that come in chunks, each with its size in front (RFC 9112, section 7.1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace limber {

class ChunkDecoder {
 public:
  explicit ChunkDecoder(size_t limit) : limit_(limit) {}  // of the whole body

  enum class Outcome : uint8_t { kMore, kDone, kBad, kTooLarge };
  // Takes what it can from the front of `bytes`; what is left belongs to the next request when kDone, and has
  // to come again in front of more when kMore.
  Outcome put(std::string_view& bytes);
  std::string& body() { return body_; }

 private:
  Outcome take_size(std::string_view& bytes);
  Outcome take_data(std::string_view& bytes);
  Outcome take_trailer(std::string_view& bytes);

  enum class Part : uint8_t { kSize, kData, kDataEnd, kTrailer, kEnd };
  Part part_ = Part::kSize;
  size_t limit_;
  uint64_t left_ = 0;    // of this chunk
  size_t trailers_ = 0;  // bytes of them
  std::string body_;
};

}  // namespace limber
