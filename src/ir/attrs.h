// Typed attributes of a node. Small and sorted by name, so equal attributes print and hash equally.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tensor/shape.h"

namespace limber {

// In this order: the index in the variant is the kind.
using AttrValue =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, Shape>;
enum class AttrKind : uint8_t { kInt, kFloat, kString, kInts, kFloats, kDims };
const char* attr_kind_name(AttrKind kind);

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, AttrValue>> entries);

  Attrs& set(std::string_view name, AttrValue value);
  void erase(std::string_view name);
  const AttrValue* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  const std::vector<std::pair<std::string, AttrValue>>& entries() const { return entries_; }
  bool operator==(const Attrs&) const = default;

  // REQUIRES: present (or a fallback is given) and of this kind; the verifier has checked both.
  int64_t i(std::string_view name) const;
  int64_t i(std::string_view name, int64_t fallback) const;
  double f(std::string_view name) const;
  double f(std::string_view name, double fallback) const;
  const std::string& s(std::string_view name) const;
  std::string s(std::string_view name, std::string_view fallback) const;
  const std::vector<int64_t>& ints(std::string_view name) const;
  const std::vector<double>& floats(std::string_view name) const;
  const Shape& dims(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, AttrValue>> entries_;
};

}  // namespace limber
