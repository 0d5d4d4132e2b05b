#include "jobs/json.h"

#include <nlohmann/json.hpp>

#include "base/assert.h"

namespace limber {

using nlohmann::ordered_json;

struct Json::Writer {
  static ordered_json write(const Json& json) {
    switch (json.kind_) {
      case Kind::kBool:
        return json.integer_ != 0;
      case Kind::kInteger:
        return json.integer_;
      case Kind::kReal:
        return json.real_;
      case Kind::kText:
        return json.text_;
      case Kind::kArray:
        return write_array(json);
      case Kind::kObject:
        return write_object(json);
    }
    LIMBER_UNREACHABLE();
  }
  static ordered_json write_array(const Json& json) {
    ordered_json out = ordered_json::array();
    for (const Json& item : json.items_) out.push_back(write(item));
    return out;
  }
  static ordered_json write_object(const Json& json) {
    ordered_json out = ordered_json::object();
    for (size_t i = 0; i < json.keys_.size(); ++i) out[json.keys_[i]] = write(json.items_[i]);
    return out;
  }
};

Json::Json(Kind kind, int64_t integer) : kind_(kind), integer_(integer) {}
Json::Json(double value) : kind_(Kind::kReal), real_(value) {}
Json::Json(std::string_view value) : kind_(Kind::kText), text_(value) {}
Json::Json(const std::vector<int64_t>& values) : kind_(Kind::kArray), items_(values.begin(), values.end()) {}
Json::~Json() = default;
Json::Json(const Json&) = default;
Json& Json::operator=(const Json&) = default;

Json Json::object(std::initializer_list<std::pair<const char*, Json>> fields) {
  Json json(Kind::kObject, 0);
  for (const auto& [key, value] : fields) json.set(key, value);
  return json;
}

Json Json::array() { return {Kind::kArray, 0}; }

void Json::set(std::string_view key, Json value) {
  LIMBER_ASSERT(kind_ == Kind::kObject);
  keys_.emplace_back(key);
  items_.push_back(std::move(value));
}

void Json::push(Json value) {
  LIMBER_ASSERT(kind_ == Kind::kArray);
  items_.push_back(std::move(value));
}

std::string Json::text() const {
  return Writer::write(*this).dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

std::string Json::line() const {
  return Writer::write(*this).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace limber
