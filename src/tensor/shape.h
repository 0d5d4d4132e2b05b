// Shapes whose dimensions may be symbolic until a graph is bound and compiled.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"

namespace limber {

inline constexpr int kMaxRank = 8;

// The name of a symbolic dimension ("N"), held inline: at most 15 characters of [A-Za-z0-9_].
class Symbol {
 public:
  Symbol() = default;
  explicit Symbol(std::string_view name);  // characters outside the alphabet become '_', the rest is cut
  std::string_view name() const { return std::string_view(text_.data()); }
  bool empty() const { return text_[0] == '\0'; }
  auto operator<=>(const Symbol&) const = default;

 private:
  std::array<char, 16> text_{};
};

// One dimension: scale * symbol + offset. A constant has scale 0 and no symbol.
class Dim {
 public:
  Dim(int64_t value = 0) : offset_(value) {}
  explicit Dim(Symbol symbol, int64_t scale = 1, int64_t offset = 0);

  bool is_constant() const { return scale_ == 0; }
  int64_t value() const { return LIMBER_ASSERT(is_constant()), offset_; }  // REQUIRES: is_constant()
  Symbol symbol() const { return symbol_; }
  int64_t scale() const { return scale_; }
  int64_t offset() const { return offset_; }
  bool operator==(const Dim&) const = default;

  // This dimension when `symbol` is `value`. nullopt on overflow.
  std::optional<Dim> bind(Symbol symbol, int64_t value) const;
  std::string to_string() const;  // "3", "N", "2N", "N+1", "4N-1"

 private:
  Symbol symbol_;
  int64_t scale_ = 0;
  int64_t offset_ = 0;
};

// Arithmetic is exact: nullopt when the answer is not of the form a*S+b or would overflow.
std::optional<Dim> add(const Dim& a, const Dim& b);
std::optional<Dim> sub(const Dim& a, const Dim& b);
std::optional<Dim> mul(const Dim& a, const Dim& b);
std::optional<Dim> div_exact(const Dim& a, const Dim& b);  // only when b divides a for every binding
std::optional<Dim> parse_dim(std::string_view text);       // the inverse of to_string

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit Shape(std::vector<Dim> dims) : dims_(std::move(dims)) {}
  static Shape of(std::span<const int64_t> dims) { return Shape(std::vector<Dim>(dims.begin(), dims.end())); }

  int rank() const { return static_cast<int>(dims_.size()); }
  const Dim& operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  Dim& operator[](int axis) { return dims_[static_cast<size_t>(axis)]; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  void push_back(Dim dim) { dims_.push_back(dim); }
  bool operator==(const Shape&) const = default;

  bool is_constant() const;
  // REQUIRES (all below): is_constant()
  int64_t dim(int axis) const { return (*this)[axis].value(); }
  std::vector<int64_t> dims() const;
  int64_t elements() const;  // asserts on overflow: types are checked where they enter (checked_elements)

  std::string to_string() const;  // "N,3,224,224"

 private:
  std::vector<Dim> dims_;
};

// Number of elements, or nullopt when a dimension is negative or the product exceeds `limit`.
std::optional<int64_t> checked_elements(std::span<const int64_t> dims, int64_t limit);
// numpy broadcasting; nullopt when the shapes do not match. A symbolic dimension matches itself and 1.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);
// Row-major strides in elements. REQUIRES: constant shape
std::vector<int64_t> strides_of(const Shape& shape);

}  // namespace limber
