#include "ir/attrs.h"

#include <algorithm>

namespace limber {
namespace {

auto position(auto& entries, std::string_view name) {
  return std::lower_bound(entries.begin(), entries.end(), name,
                          [](const auto& entry, std::string_view n) { return entry.first < n; });
}

template <typename T>
const T& required(const Attrs& attrs, std::string_view name) {
  const AttrValue* value = attrs.find(name);
  LIMBER_ASSERT(value != nullptr && std::holds_alternative<T>(*value));
  return std::get<T>(*value);
}

}  // namespace

const char* attr_kind_name(AttrKind kind) {
  static constexpr const char* kNames[] = {"int", "float", "string", "ints", "floats", "dims"};
  return kNames[static_cast<size_t>(kind)];
}

Attrs::Attrs(std::initializer_list<std::pair<std::string, AttrValue>> entries) {
  for (const auto& [name, value] : entries) set(name, value);
}

Attrs& Attrs::set(std::string_view name, AttrValue value) {
  auto it = position(entries_, name);
  if (it != entries_.end() && it->first == name) {
    it->second = std::move(value);
  } else {
    entries_.insert(it, {std::string(name), std::move(value)});
  }
  return *this;
}

void Attrs::erase(std::string_view name) {
  auto it = position(entries_, name);
  if (it != entries_.end() && it->first == name) entries_.erase(it);
}

const AttrValue* Attrs::find(std::string_view name) const {
  auto it = position(entries_, name);
  return it != entries_.end() && it->first == name ? &it->second : nullptr;
}

int64_t Attrs::i(std::string_view name) const { return required<int64_t>(*this, name); }
int64_t Attrs::i(std::string_view name, int64_t fallback) const { return has(name) ? i(name) : fallback; }
double Attrs::f(std::string_view name) const { return required<double>(*this, name); }
double Attrs::f(std::string_view name, double fallback) const { return has(name) ? f(name) : fallback; }
const std::string& Attrs::s(std::string_view name) const { return required<std::string>(*this, name); }
std::string Attrs::s(std::string_view name, std::string_view fallback) const {
  return has(name) ? s(name) : std::string(fallback);
}
const std::vector<int64_t>& Attrs::ints(std::string_view name) const {
  return required<std::vector<int64_t>>(*this, name);
}
const std::vector<double>& Attrs::floats(std::string_view name) const {
  return required<std::vector<double>>(*this, name);
}
const Shape& Attrs::dims(std::string_view name) const { return required<Shape>(*this, name); }

}  // namespace limber
