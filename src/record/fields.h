// Small typed things as JSON, each field declared once, so that writer and reader cannot disagree:
//
//   struct Held {
//     int64_t count = 0;
//     std::vector<std::string> names;
//     static void fields(auto& self, auto& field) {
//       field("count", self.count);
//       field("names", self.names, Need::kOptional);  // written always, may be missing when read
//     }
//     std::string problem() const { return count == 0 ? "'count' is 0" : ""; }  // where types say too little
//   };
//
//   format_fields(Held{3, {"a"}})           {"count":3,"names":["a"]}
//   parse_fields<Held>(text)                a Held, or kCorrupt with the field and what it should be
//
// A field is a bool, a number, text, a list, a map from text, an optional or another such struct.
//   int64_t is a count: 0 to 2^53, which every reader of JSON has exactly. uint64_t is any (a seed).
//   A double that is not finite is null, as JSON knows no other; null is read as NaN.
//   An optional that is empty is left out; missing and null are read as empty.
// Fields nobody declares are skipped, so that an older program reads what a newer one wrote.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace limber {

enum class Need : uint8_t { kRequired, kOptional };

class FieldWriter {
 public:
  template <typename T>
  void operator()(std::string_view key, const T& value, Need /*need*/ = Need::kRequired) {
    begin(key);
    put(value);
  }
  template <typename T>
  void operator()(std::string_view key, const std::optional<T>& value, Need /*need*/ = Need::kRequired) {
    if (value) (*this)(key, *value);
  }
  std::string finish() && { return std::move(text_) + "}"; }

 private:
  void begin(std::string_view key);  // a comma where one is due, and the key
  void put(bool value) { text_ += value ? "true" : "false"; }
  void put(int64_t value);
  void put(uint64_t value);
  void put(double value);
  void put(const std::string& value);
  template <typename T>
  void put(const std::vector<T>& list) {
    text_ += '[';
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) text_ += ',';
      put(list[i]);
    }
    text_ += ']';
  }
  template <typename T>
  void put(const std::map<std::string, T>& map) {
    text_ += '{';
    for (const auto& [key, value] : map) (*this)(key, value);
    text_ += '}';
  }
  template <typename T>
  void put(const T& part) {
    text_ += '{';
    T::fields(part, *this);
    text_ += '}';
  }

  std::string text_ = "{";
};

// What was declared, from text that anybody may have written. The first field that is not what it should be
// is remembered and nothing is read after it.
class FieldReader {
 public:
  // kCorrupt unless it is one JSON object of bounded depth.
  static Result<FieldReader> parse(std::string_view text);
  FieldReader(FieldReader&&) noexcept;
  ~FieldReader();

  template <typename T>
  void operator()(std::string_view key, T& value, Need need = Need::kRequired) {
    if (!enter(key, need)) return;
    get(value);
    leave();
  }
  template <typename T>
  void operator()(std::string_view key, std::optional<T>& value, Need /*need*/ = Need::kRequired) {
    value.reset();
    if (!enter(key, Need::kOptional)) return;
    if (!is_null()) get(value.emplace());
    leave();
  }
  template <typename T>
  void read(T& record) {
    T::fields(record, *this);
    check(record);
  }
  const std::string& problem() const { return problem_; }

 private:
  struct Impl;
  explicit FieldReader(std::unique_ptr<Impl> impl);

  bool enter(std::string_view key, Need need);  // false: missing, or something failed before
  void enter(size_t index);
  void leave();
  bool is_null() const;
  // 0 after remembering that it is something else.
  size_t list_size();
  std::vector<std::string> keys();
  void get(bool& value);
  void get(int64_t& value);
  void get(uint64_t& value);
  void get(double& value);
  void get(std::string& value);
  template <typename T>
  void get(std::vector<T>& list) {
    list.clear();
    const size_t size = list_size();
    for (size_t i = 0; i < size && problem_.empty(); ++i) {
      enter(i);
      get(list.emplace_back());
      leave();
    }
  }
  template <typename T>
  void get(std::map<std::string, T>& map) {
    map.clear();
    for (const std::string& key : keys()) (*this)(key, map[key]);
  }
  template <typename T>
  void get(T& part) {
    keys();  // an object?
    read(part);
  }
  template <typename T>
  void check(const T& record) {
    if constexpr (requires {
                    { record.problem() } -> std::convertible_to<std::string>;
                  }) {
      if (problem_.empty()) problem_ = record.problem();
    }
  }
  void fail(std::string_view expected);  // "'a/b' should be `expected`"

  std::unique_ptr<Impl> impl_;
  std::string problem_;
};

// One line of JSON.
template <typename T>
std::string format_fields(const T& value) {
  FieldWriter writer;
  T::fields(value, writer);
  return std::move(writer).finish();
}

template <typename T>
Result<T> parse_fields(std::string_view text) {
  LIMBER_ASSIGN(FieldReader reader, FieldReader::parse(text));
  T value;
  reader.read(value);
  if (!reader.problem().empty()) return error(Code::kCorrupt, "{}", reader.problem());
  return value;
}

}  // namespace limber
