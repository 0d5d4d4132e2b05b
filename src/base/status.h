// Failure that comes from outside (a file, a caller, memory, the machine) travels as a Status or a
// Result<T>; failure that only our own bug can cause is a LIMBER_ASSERT (base/assert.h).
// Messages name the thing, the value, what was expected and, where there is one, the remedy.
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>
#include <variant>

#include "base/assert.h"

namespace limber {

enum class Code : uint8_t {
  kOk,
  kInvalidArgument,    // the caller asked for something that makes no sense
  kUnsupported,        // makes sense, but not to this build of Limber
  kNotFound,           // no such file, input, parameter ...
  kIo,                 // the operating system said no
  kCorrupt,            // a file or message breaks its format
  kResourceExhausted,  // would need more memory, disk or time than allowed
  kInternal,           // something below us failed in a way we did not foresee
};
const char* code_name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  // The same failure, seen from one level up: "model.onnx: node 'conv1': ...".
  Status in(std::string_view context) const;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// Either a value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Status status) : state_(std::move(status)) { LIMBER_ASSERT(!std::get<Status>(state_).ok()); }

  bool ok() const { return std::holds_alternative<T>(state_); }
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }
  // REQUIRES: ok()
  T& value() & { return check(), std::get<T>(state_); }
  const T& value() const& { return check(), std::get<T>(state_); }
  T&& value() && { return check(), std::get<T>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  void check() const { LIMBER_ASSERT(ok()); }
  std::variant<T, Status> state_;
};

template <typename... Args>
Status error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status invalid(fmt::format_string<Args...> format, Args&&... args) {
  return Status(Code::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status unsupported(fmt::format_string<Args...> format, Args&&... args) {
  return Status(Code::kUnsupported, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status corrupt(fmt::format_string<Args...> format, Args&&... args) {
  return Status(Code::kCorrupt, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace limber

// Returns from the enclosing function when `expr` (a Status) failed.
#define LIMBER_TRY(expr)                                                              \
  do {                                                                                \
    if (::limber::Status try_status_ = (expr); !try_status_.ok()) return try_status_; \
  } while (0)

// `LIMBER_ASSIGN(auto x, make_x());` declares x from a Result, or returns its Status.
#define LIMBER_ASSIGN(decl, expr) LIMBER_ASSIGN_IMPL_(LIMBER_CAT_(result_, __LINE__), decl, expr)
#define LIMBER_ASSIGN_IMPL_(tmp, decl, expr) \
  auto tmp = (expr);                         \
  if (!tmp.ok()) return tmp.status();        \
  decl = std::move(tmp).value()
#define LIMBER_CAT_(a, b) LIMBER_CAT2_(a, b)
#define LIMBER_CAT2_(a, b) a##b
