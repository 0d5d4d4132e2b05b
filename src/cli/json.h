// JSON out. A small tree of our own, so that only one file compiles a JSON library.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace limber {

class Json {
 public:
  using Field = std::pair<std::string, Json>;

  template <typename T>
  requires std::is_integral_v<T> Json(T value) : value_(as_number(value)) {}
  Json(double value) : value_(value) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(const std::vector<int64_t>& values);
  static Json object(std::initializer_list<Field> fields = {});
  static Json array();

  void set(std::string key, Json value);  // REQUIRES: an object without this key
  void push(Json value);                  // REQUIRES: an array
  // Keys in the order they were set; invalid UTF-8 is replaced; NaN and infinity are null.
  std::string text() const;

 private:
  struct Writer;
  using Fields = std::vector<Field>;
  using Items = std::vector<Json>;
  using Value = std::variant<bool, int64_t, double, std::string, Fields, Items>;

  template <typename T>
  static Value as_number(T value) {
    if constexpr (std::is_same_v<T, bool>) return Value(value);
    return Value(static_cast<int64_t>(value));
  }

  Json(Fields fields);
  Json(Items items);
  Value value_;
};

}  // namespace limber
