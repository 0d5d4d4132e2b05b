#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "serve/grpc/messages.h"

namespace limber {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Walks over a message without keeping anything of it.
class PartCounter {
 public:
  explicit PartCounter(CodedInputStream& bytes) : bytes_(bytes) {}

  // To the end of the bytes, or of the limit that was pushed.
  Status walk(const Descriptor& kind) {
    while (const uint32_t tag = bytes_.ReadTag()) {
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      if (number == 0) return malformed(kind);
      const FieldDescriptor* field = kind.FindFieldByNumber(number);
      const auto wire = WireFormatLite::GetTagWireType(tag);
      const bool number_field = field != nullptr && field->is_packable();
      const auto cpp_type = field != nullptr ? field->cpp_type() : FieldDescriptor::CPPTYPE_STRING;
      if (!number_field && ++parts_ > kMaxMessageParts) {
        return invalid("a message of more than {} strings and messages; send fewer inputs or images at once",
                       kMaxMessageParts);
      }
      if (wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED && cpp_type == FieldDescriptor::CPPTYPE_MESSAGE) {
        LIMBER_TRY(walk_nested(*field->message_type(), kind));
      } else if (wire == WireFormatLite::WIRETYPE_START_GROUP || !WireFormatLite::SkipField(&bytes_, tag)) {
        return malformed(kind);
      }
    }
    // 0 is the end, or a tag that is none.
    return bytes_.ConsumedEntireMessage() ? Status() : malformed(kind);
  }

 private:
  Status walk_nested(const Descriptor& kind, const Descriptor& within) {
    int length = 0;
    if (!bytes_.ReadVarintSizeAsInt(&length)) return malformed(within);
    const auto limit = bytes_.PushLimit(length);
    LIMBER_TRY(walk(kind));
    if (bytes_.BytesUntilLimit() != 0) return malformed(kind);
    bytes_.PopLimit(limit);
    return {};
  }

  static Status malformed(const Descriptor& kind) { return invalid("the bytes are no {}", kind.full_name()); }

  CodedInputStream& bytes_;
  int64_t parts_ = 0;
};

}  // namespace

Status check_message(google::protobuf::io::ZeroCopyInputStream& bytes, const Descriptor& kind) {
  CodedInputStream stream(&bytes);
  return PartCounter(stream).walk(kind);
}

}  // namespace limber
