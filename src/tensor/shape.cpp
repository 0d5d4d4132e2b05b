#include "tensor/shape.h"

#include <fmt/core.h>

#include <charconv>
#include <limits>

namespace limber {
namespace {

std::optional<int64_t> checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}
std::optional<int64_t> checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}
bool symbol_char(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}
bool digit(char c) { return c >= '0' && c <= '9'; }

std::optional<Dim> affine(Symbol symbol, std::optional<int64_t> scale, std::optional<int64_t> offset) {
  if (!scale || !offset) return std::nullopt;
  return *scale == 0 ? Dim(*offset) : Dim(symbol, *scale, *offset);
}

}  // namespace

Symbol::Symbol(std::string_view name) {
  size_t n = 0;
  for (char c : name) {
    if (n == text_.size() - 1) break;
    if (n == 0 && digit(c)) text_[n++] = '_';  // a leading digit would read as a scale
    if (n < text_.size() - 1) text_[n++] = symbol_char(c) ? c : '_';
  }
  if (n == 0) text_[0] = '_';
}

Dim::Dim(Symbol symbol, int64_t scale, int64_t offset) : symbol_(symbol), scale_(scale), offset_(offset) {
  if (scale == 0) symbol_ = Symbol();
}

std::optional<Dim> Dim::bind(Symbol symbol, int64_t value) const {
  if (is_constant() || symbol_ != symbol) return *this;
  const auto scaled = checked_mul(scale_, value);
  if (!scaled) return std::nullopt;
  const auto sum = checked_add(*scaled, offset_);
  if (!sum) return std::nullopt;
  return Dim(*sum);
}

std::string Dim::to_string() const {
  if (is_constant()) return fmt::format("{}", offset_);
  std::string text = scale_ == 1 ? "" : fmt::format("{}", scale_);
  text += symbol_.name();
  if (offset_ > 0) text += fmt::format("+{}", offset_);
  if (offset_ < 0) text += fmt::format("{}", offset_);
  return text;
}

std::optional<Dim> add(const Dim& a, const Dim& b) {
  if (!a.is_constant() && !b.is_constant() && a.symbol() != b.symbol()) return std::nullopt;
  const Symbol symbol = a.is_constant() ? b.symbol() : a.symbol();
  return affine(symbol, checked_add(a.scale(), b.scale()), checked_add(a.offset(), b.offset()));
}

std::optional<Dim> sub(const Dim& a, const Dim& b) {
  const auto negative = mul(b, Dim(-1));
  return negative ? add(a, *negative) : std::nullopt;
}

std::optional<Dim> mul(const Dim& a, const Dim& b) {
  if (!a.is_constant() && !b.is_constant()) return std::nullopt;
  const Dim& c = a.is_constant() ? a : b;
  const Dim& d = a.is_constant() ? b : a;
  return affine(d.symbol(), checked_mul(c.offset(), d.scale()), checked_mul(c.offset(), d.offset()));
}

std::optional<Dim> div_exact(const Dim& a, const Dim& b) {
  if (b.is_constant()) {
    const int64_t n = b.value();
    if (n == 0 || (n == -1 && (a.offset() == INT64_MIN || a.scale() == INT64_MIN))) return std::nullopt;
    if (a.scale() % n != 0 || a.offset() % n != 0) return std::nullopt;
    return affine(a.symbol(), a.scale() / n, a.offset() / n);
  }
  // (k*c)S + k*d over cS + d is k.
  if (a.is_constant()) return a.offset() == 0 ? std::optional<Dim>(Dim(0)) : std::nullopt;
  if (a.symbol() != b.symbol() || a.scale() % b.scale() != 0) return std::nullopt;
  const int64_t k = a.scale() / b.scale();
  const auto offset = checked_mul(k, b.offset());
  if (!offset || *offset != a.offset()) return std::nullopt;
  return Dim(k);
}

std::optional<Dim> parse_dim(std::string_view text) {
  const char* p = text.data();
  const char* end = p + text.size();
  int64_t number = 0;
  bool have_number = false;
  if (p != end && (digit(*p) || *p == '-')) {
    const auto [next, ec] = std::from_chars(p, end, number);
    if (ec != std::errc()) return std::nullopt;
    have_number = true;
    p = next;
  }
  if (p == end) return have_number ? std::optional<Dim>(Dim(number)) : std::nullopt;
  const char* name = p;
  while (p != end && symbol_char(*p)) ++p;
  if (p == name || p - name > 15) return std::nullopt;
  const Symbol symbol(std::string_view(name, static_cast<size_t>(p - name)));
  int64_t offset = 0;
  if (p != end) {
    if (*p == '+') ++p;
    const auto [next, ec] = std::from_chars(p, end, offset);
    if (ec != std::errc() || next != end) return std::nullopt;
  }
  return Dim(symbol, have_number ? number : 1, offset);
}

bool Shape::is_constant() const {
  for (const Dim& d : dims_) {
    if (!d.is_constant()) return false;
  }
  return true;
}

std::vector<int64_t> Shape::dims() const {
  std::vector<int64_t> out;
  out.reserve(dims_.size());
  for (const Dim& d : dims_) out.push_back(d.value());
  return out;
}

int64_t Shape::elements() const {
  const auto n = checked_elements(dims(), std::numeric_limits<int64_t>::max());
  LIMBER_ASSERT(n.has_value());
  return *n;
}

std::string Shape::to_string() const {
  std::string text;
  for (const Dim& d : dims_) {
    if (!text.empty()) text += ',';
    text += d.to_string();
  }
  return text;
}

std::optional<int64_t> checked_elements(std::span<const int64_t> dims, int64_t limit) {
  int64_t n = 1;
  bool zero = false;
  for (int64_t d : dims) {
    if (d < 0) return std::nullopt;
    if (d == 0) {
      zero = true;
      continue;
    }
    const auto product = checked_mul(n, d);
    if (!product || *product > limit) return std::nullopt;
    n = *product;
  }
  return zero ? 0 : n;
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<Dim> dims(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const Dim da = ia >= 0 ? a[ia] : Dim(1), db = ib >= 0 ? b[ib] : Dim(1);
    if (da == db || db == Dim(1)) {
      dims[static_cast<size_t>(i)] = da;
    } else if (da == Dim(1)) {
      dims[static_cast<size_t>(i)] = db;
    } else {
      return std::nullopt;
    }
  }
  return Shape(std::move(dims));
}

std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()));
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = step;
    step *= shape.dim(i);
  }
  return strides;
}

}  // namespace limber
