#include "cli/json.h"

#include <nlohmann/json.hpp>

#include "base/assert.h"

namespace limber {

using nlohmann::ordered_json;

struct Json::Writer {
  ordered_json operator()(const Fields& fields) const {
    ordered_json out = ordered_json::object();
    for (const auto& [key, value] : fields) out[key] = std::visit(*this, value.value_);
    return out;
  }
  ordered_json operator()(const Items& items) const {
    ordered_json out = ordered_json::array();
    for (const Json& item : items) out.push_back(std::visit(*this, item.value_));
    return out;
  }
  template <typename Leaf>
  ordered_json operator()(const Leaf& leaf) const {
    return leaf;
  }
};

Json::Json(Fields fields) : value_(std::move(fields)) {}
Json::Json(Items items) : value_(std::move(items)) {}

Json::Json(const std::vector<int64_t>& values) : value_(Items()) {
  for (const int64_t value : values) push(value);
}

Json Json::object(std::initializer_list<Field> fields) { return Json(Fields(fields)); }
Json Json::array() { return Json(Items()); }

void Json::set(std::string key, Json value) {
  LIMBER_ASSERT(std::holds_alternative<Fields>(value_));
  std::get<Fields>(value_).emplace_back(std::move(key), std::move(value));
}

void Json::push(Json value) {
  LIMBER_ASSERT(std::holds_alternative<Items>(value_));
  std::get<Items>(value_).push_back(std::move(value));
}

std::string Json::text() const {
  return std::visit(Writer(), value_).dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace limber
