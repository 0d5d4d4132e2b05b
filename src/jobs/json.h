// JSON out. A small tree of our own, so that only one file compiles a JSON library.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace limber {

class Json {
 public:
  template <typename T>
  requires std::is_integral_v<T> Json(T value)
      : Json(std::is_same_v<T, bool> ? Kind::kBool : Kind::kInteger, static_cast<int64_t>(value)) {}
  Json(double value);
  Json(std::string_view value);
  Json(const std::string& value) : Json(std::string_view(value)) {}
  Json(const char* value) : Json(std::string_view(value)) {}
  Json(const std::vector<int64_t>& values);
  static Json object(std::initializer_list<std::pair<const char*, Json>> fields = {});
  static Json array();
  // An array of all in a range, or of what `make` makes of each.
  template <typename Range, typename Make>
  static Json list(const Range& of, Make make) {
    Json items = array();
    for (const auto& one : of) items.push(make(one));
    return items;
  }
  template <typename Range>
  static Json list(const Range& of) {
    return list(of, [](const auto& one) { return Json(one); });
  }
  ~Json();
  Json(const Json&);
  Json& operator=(const Json&);

  void set(std::string_view key, Json value);  // REQUIRES: an object without this key
  void push(Json value);                       // REQUIRES: an array
  // Keys in the order they were set; invalid UTF-8 is replaced; NaN and infinity are null.
  std::string text() const;
  std::string line() const;  // the same on one line

 private:
  struct Writer;
  enum class Kind : uint8_t { kBool, kInteger, kReal, kText, kObject, kArray };
  Json(Kind kind, int64_t integer);

  Kind kind_;
  int64_t integer_ = 0;
  double real_ = 0;
  std::string text_;
  std::vector<std::string> keys_;  // of an object, as items_
  std::vector<Json> items_;
};

}  // namespace limber
