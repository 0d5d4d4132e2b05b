#include "ops/static_element.h"

#include <cmath>
#include <limits>

namespace limber {

using MaybeElement = std::optional<StaticElement>;

std::optional<double> element_number(const StaticElement& e) {
  if (const double* x = std::get_if<double>(&e)) return *x;
  const Dim& dim = std::get<Dim>(e);
  if (!dim.is_constant()) return std::nullopt;
  return static_cast<double>(dim.value());
}

std::optional<int64_t> element_int(const StaticElement& e) {
  const Dim* dim = std::get_if<Dim>(&e);
  if (dim == nullptr || !dim->is_constant()) return std::nullopt;
  return dim->value();
}

namespace {

std::optional<Dim> as_dim(const StaticElement& e) {
  if (const Dim* dim = std::get_if<Dim>(&e)) return *dim;
  const double x = std::get<double>(e);
  if (!(std::abs(x) <= 0x1p53) || x != std::trunc(x)) return std::nullopt;
  return Dim(static_cast<int64_t>(x));
}

double rounded_to(DType dtype, double x) {
  switch (dtype) {
    case DType::kF32:
      return static_cast<double>(static_cast<float>(x));
    case DType::kF16:
      return static_cast<double>(half_to_float(float_to_half(static_cast<float>(x))));
    case DType::kBF16:
      return static_cast<double>(bfloat16_to_float(float_to_bfloat16(static_cast<float>(x))));
    default:
      return x;
  }
}

bool fits(DType dtype, int64_t x) {
  switch (dtype) {
    case DType::kI8:
      return x >= INT8_MIN && x <= INT8_MAX;
    case DType::kU8:
      return x >= 0 && x <= UINT8_MAX;
    case DType::kI16:
      return x >= INT16_MIN && x <= INT16_MAX;
    case DType::kU16:
      return x >= 0 && x <= UINT16_MAX;
    case DType::kI32:
      return x >= INT32_MIN && x <= INT32_MAX;
    case DType::kU32:
      return x >= 0 && x <= UINT32_MAX;
    case DType::kU64:
      return x >= 0;
    case DType::kBool:
      return x == 0 || x == 1;
    default:
      return true;
  }
}

MaybeElement element(std::optional<Dim> dim) {
  return dim ? MaybeElement(StaticElement(*dim)) : std::nullopt;
}
MaybeElement element(std::optional<bool> flag) {
  return flag ? MaybeElement(StaticElement(Dim(*flag ? 1 : 0))) : std::nullopt;
}

// What is known about a - b when every symbol is at least 1.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

std::optional<Bounds> difference(const StaticElement& a, const StaticElement& b) {
  const auto x = element_number(a), y = element_number(b);
  if (x && y && (std::holds_alternative<double>(a) || std::holds_alternative<double>(b))) {
    if (std::isnan(*x) || std::isnan(*y)) return std::nullopt;
    const double sign = *x < *y ? -1 : (*x > *y ? 1 : 0);
    return Bounds{sign, sign};
  }
  const auto da = as_dim(a), db = as_dim(b);
  if (!da || !db) return std::nullopt;
  const auto d = sub(*da, *db);
  if (!d) return std::nullopt;
  const double edge = static_cast<double>(d->scale()) + static_cast<double>(d->offset());
  if (d->is_constant()) return Bounds{edge, edge};
  return d->scale() > 0 ? Bounds{.low = edge} : Bounds{.high = edge};
}

std::optional<bool> compare(OpKind op, const StaticElement& a, const StaticElement& b) {
  const auto d = difference(a, b);
  if (!d) return std::nullopt;
  const auto decide = [](bool yes, bool no) { return yes || no ? std::optional<bool>(yes) : std::nullopt; };
  switch (op) {
    case OpKind::kEqual:
      return decide(d->low == 0 && d->high == 0, d->low > 0 || d->high < 0);
    case OpKind::kLess:
      return decide(d->high < 0, d->low >= 0);
    case OpKind::kLessOrEqual:
      return decide(d->high <= 0, d->low > 0);
    case OpKind::kGreater:
      return decide(d->low > 0, d->high <= 0);
    case OpKind::kGreaterOrEqual:
      return decide(d->low >= 0, d->high < 0);
    default:
      return std::nullopt;
  }
}

std::optional<Dim> divided(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) {
    if (b.value() == 0 || (b.value() == -1 && a.value() == INT64_MIN)) return std::nullopt;
    return Dim(a.value() / b.value());
  }
  return div_exact(a, b);
}

std::optional<Dim> modulo(const Dim& a, const Dim& b, bool fmod) {
  if (!a.is_constant() || !b.is_constant()) {
    return div_exact(a, b) ? std::optional<Dim>(Dim(0)) : std::nullopt;
  }
  if (b.value() == 0 || b.value() == -1) return b.value() == 0 ? std::nullopt : std::optional<Dim>(Dim(0));
  const int64_t r = a.value() % b.value();
  return Dim(!fmod && r != 0 && (r < 0) != (b.value() < 0) ? r + b.value() : r);
}

MaybeElement binary_numbers(OpKind op, const Attrs& attrs, double a, double b) {
  switch (op) {
    case OpKind::kAdd:
      return a + b;
    case OpKind::kSub:
      return a - b;
    case OpKind::kMul:
      return a * b;
    case OpKind::kDiv:
      return a / b;
    case OpKind::kPow:
      return std::pow(a, b);
    case OpKind::kMod:
      return attrs.i("fmod", 0) != 0 ? MaybeElement(std::fmod(a, b)) : std::nullopt;
    default:
      return std::nullopt;
  }
}

MaybeElement binary_dims(OpKind op, const Attrs& attrs, const Dim& a, const Dim& b) {
  switch (op) {
    case OpKind::kAdd:
      return element(add(a, b));
    case OpKind::kSub:
      return element(sub(a, b));
    case OpKind::kMul:
      return element(mul(a, b));
    case OpKind::kDiv:
      return element(divided(a, b));
    case OpKind::kMod:
      return element(modulo(a, b, attrs.i("fmod", 0) != 0));
    default:
      return std::nullopt;
  }
}

MaybeElement cast(DType to, const StaticElement& e) {
  if (to == DType::kBool) {
    const auto zero = compare(OpKind::kEqual, e, StaticElement(Dim(0)));
    return zero ? MaybeElement(StaticElement(Dim(*zero ? 0 : 1))) : std::nullopt;
  }
  if (is_float(to) || std::holds_alternative<Dim>(e)) return e;
  return StaticElement(std::trunc(std::get<double>(e)));
}

MaybeElement unary_number(OpKind op, double x) {
  switch (op) {
    case OpKind::kNeg:
      return -x;
    case OpKind::kAbs:
      return std::abs(x);
    case OpKind::kFloor:
      return std::floor(x);
    case OpKind::kCeil:
      return std::ceil(x);
    case OpKind::kRound:
      return std::nearbyint(x);
    case OpKind::kSqrt:
      return std::sqrt(x);
    case OpKind::kExp:
      return std::exp(x);
    case OpKind::kLog:
      return std::log(x);
    case OpKind::kReciprocal:
      return 1 / x;
    default:
      return std::nullopt;
  }
}

MaybeElement unary_dim(OpKind op, const Dim& x) {
  switch (op) {
    case OpKind::kFloor:
    case OpKind::kCeil:
    case OpKind::kRound:
      return StaticElement(x);
    case OpKind::kNeg:
      return element(mul(x, Dim(-1)));
    case OpKind::kNot:
      return x.is_constant() ? MaybeElement(StaticElement(Dim(1 - x.value()))) : std::nullopt;
    case OpKind::kAbs: {
      const auto negative = compare(OpKind::kLess, StaticElement(x), StaticElement(Dim(0)));
      if (!negative) return std::nullopt;
      return *negative ? element(mul(x, Dim(-1))) : MaybeElement(StaticElement(x));
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

MaybeElement element_stored(DType dtype, const StaticElement& e) {
  if (is_float(dtype)) {
    const auto x = element_number(e);
    return x ? StaticElement(rounded_to(dtype, *x)) : e;
  }
  const auto dim = as_dim(e);
  if (!dim || (dim->is_constant() && !fits(dtype, dim->value()))) return std::nullopt;
  return StaticElement(*dim);
}

MaybeElement static_binary(OpKind op, const Attrs& attrs, const StaticElement& a, const StaticElement& b) {
  switch (op) {
    case OpKind::kEqual:
    case OpKind::kLess:
    case OpKind::kLessOrEqual:
    case OpKind::kGreater:
    case OpKind::kGreaterOrEqual:
      return element(compare(op, a, b));
    case OpKind::kMin:
    case OpKind::kMax: {
      const auto less = compare(OpKind::kLess, a, b);
      if (!less) return std::nullopt;
      return *less == (op == OpKind::kMin) ? a : b;
    }
    case OpKind::kAnd:
    case OpKind::kOr:
    case OpKind::kXor: {
      const auto x = element_int(a), y = element_int(b);
      if (!x || !y) return std::nullopt;
      return StaticElement(Dim(op == OpKind::kAnd ? (*x & *y) : op == OpKind::kOr ? (*x | *y) : (*x ^ *y)));
    }
    default:
      break;
  }
  const bool numbers = std::holds_alternative<double>(a) && std::holds_alternative<double>(b);
  if (numbers) return binary_numbers(op, attrs, std::get<double>(a), std::get<double>(b));
  const auto x = as_dim(a), y = as_dim(b);
  return x && y ? binary_dims(op, attrs, *x, *y) : std::nullopt;
}

MaybeElement static_unary(OpKind op, const Attrs& attrs, const StaticElement& e) {
  if (op == OpKind::kIdentity) return e;
  if (op == OpKind::kCast) {
    const auto to = parse_dtype(attrs.s("to", ""));
    return to ? cast(*to, e) : std::nullopt;
  }
  if (const double* x = std::get_if<double>(&e)) return unary_number(op, *x);
  return unary_dim(op, std::get<Dim>(e));
}

}  // namespace limber
