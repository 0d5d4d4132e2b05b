// How Limber reports failure: no function throws. What can fail returns an Error, or an Expected<T> that
// holds either a value or the Error that says why there is none.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace limber {
inline namespace v1 {

enum class ErrorCode : uint8_t {
  kOk,
  kInvalidArgument,    // the caller asked for something that makes no sense
  kUnsupported,        // an operator or type this version does not have
  kNotFound,           // no such file, input or output
  kIo,                 // the operating system refused
  kCorrupt,            // a file breaks its format
  kResourceExhausted,  // would need more memory than allowed or present
  kInternal,           // a failure that was not foreseen; please report it
};

// The outcome of a call: success, or a code and one line for people (several for kUnsupported: one per
// node). The message names the file, the node or the input, and what was expected.
class [[nodiscard]] Error {
 public:
  Error() = default;
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == ErrorCode::kOk; }
  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  ErrorCode code_ = ErrorCode::kOk;
  std::string message_;
};

template <typename T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::move(value)) {}
  Expected(Error error) : state_(std::move(error)) {}  // REQUIRES: !error.ok()

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }
  Error error() const { return ok() ? Error() : std::get<Error>(state_); }
  // REQUIRES (all below): ok()
  T& operator*() & { return *std::get_if<T>(&state_); }
  const T& operator*() const& { return *std::get_if<T>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<T>(&state_)); }
  T* operator->() { return std::get_if<T>(&state_); }
  const T* operator->() const { return std::get_if<T>(&state_); }

 private:
  std::variant<T, Error> state_;
};

}  // namespace v1
}  // namespace limber
