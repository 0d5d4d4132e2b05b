#include "serve/http/chunked.h"

#include <algorithm>
#include <charconv>

namespace limber {
namespace {

constexpr size_t kMaxLine = 1024;  // bytes of a size with its extensions, and of a trailer; both are skipped
constexpr size_t kMaxTrailers = 8 * kMaxLine;  // bytes of all of them

}  // namespace

ChunkDecoder::Outcome ChunkDecoder::put(std::string_view& bytes) {
  Outcome outcome = Outcome::kDone;
  while (outcome == Outcome::kDone && part_ != Part::kEnd) {
    switch (part_) {
      case Part::kSize:
        outcome = take_size(bytes);
        break;
      case Part::kData:
      case Part::kDataEnd:
        outcome = take_data(bytes);
        break;
      default:
        outcome = take_trailer(bytes);
    }
  }
  return outcome;
}

ChunkDecoder::Outcome ChunkDecoder::take_size(std::string_view& bytes) {
  const size_t end = bytes.find("\r\n");
  if (end == bytes.npos) return bytes.size() > kMaxLine ? Outcome::kBad : Outcome::kMore;
  if (end > kMaxLine) return Outcome::kBad;
  const auto [after, error] = std::from_chars(bytes.data(), bytes.data() + end, left_, 16);
  const bool extension = after != bytes.data() + end;
  if (error != std::errc() || (extension && *after != ';' && *after != ' ' && *after != '\t'))
    return Outcome::kBad;
  if (left_ > limit_ - body_.size()) return Outcome::kTooLarge;
  bytes.remove_prefix(end + 2);
  part_ = left_ == 0 ? Part::kTrailer : Part::kData;
  return Outcome::kDone;
}

ChunkDecoder::Outcome ChunkDecoder::take_data(std::string_view& bytes) {
  const size_t count = std::min<uint64_t>(left_, bytes.size());
  body_.append(bytes.substr(0, count));
  bytes.remove_prefix(count);
  left_ -= count;
  if (left_ > 0) return Outcome::kMore;
  part_ = Part::kDataEnd;
  if (bytes.size() < 2) return Outcome::kMore;
  if (!bytes.starts_with("\r\n")) return Outcome::kBad;
  bytes.remove_prefix(2);
  part_ = Part::kSize;
  return Outcome::kDone;
}

// Trailers are read and thrown away.
ChunkDecoder::Outcome ChunkDecoder::take_trailer(std::string_view& bytes) {
  const size_t end = bytes.find("\r\n");
  if (end == bytes.npos) return bytes.size() > kMaxLine ? Outcome::kBad : Outcome::kMore;
  trailers_ += end + 2;
  if (end > kMaxLine || trailers_ > kMaxTrailers) return Outcome::kBad;
  bytes.remove_prefix(end + 2);
  if (end == 0) part_ = Part::kEnd;
  return Outcome::kDone;
}

}  // namespace limber
