#include "base/status.h"

namespace limber {

const char* code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kNotFound:
      return "not found";
    case Code::kIo:
      return "i/o error";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kResourceExhausted:
      return "resource exhausted";
    case Code::kInternal:
      return "internal error";
  }
  return "unknown";
}

Status Status::in(std::string_view context) const {
  if (ok()) return *this;
  return Status(code_, fmt::format("{}: {}", context, message_));
}

}  // namespace limber
