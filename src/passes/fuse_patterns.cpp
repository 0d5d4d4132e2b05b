#include <algorithm>
#include <cmath>
#include <numbers>

#include "passes/match.h"
#include "passes/passes.h"

namespace limber {
namespace {

constexpr size_t kMaxFactors = 6;  // of a product that are looked at; a bound on the search

// The factors of a product, through every Mul that serves only this product and every multiplication by
// a constant. Constants are multiplied together.
struct Product {
  double constant = 1;
  std::vector<ValueId> factors;
};

Product product_of(const Rewriter& r, ValueId root) {
  Product product;
  std::vector<ValueId> work{root};
  while (!work.empty()) {
    const ValueId v = work.back();
    work.pop_back();
    const bool inside = v == root || r.used_once(v);
    if (const auto c = scalar_constant(r.graph(), v)) {
      product.constant *= *c;
    } else if (const auto scaled = as_scaled(r, v)) {  // others may share it: it is cheap either way
      product.constant *= scaled->factor;
      work.push_back(scaled->x);
    } else if (const NodeId mul = inside ? r.producer(v, OpKind::kMul) : kNoNode; mul != kNoNode) {
      work.push_back(r.input(mul, 1));
      work.push_back(r.input(mul, 0));
    } else {
      product.factors.push_back(v);
    }
    if (product.factors.size() + work.size() > kMaxFactors) return {};
  }
  return product;
}

// The input of the `op` that makes v, when v serves nobody else.
ValueId argument(const Rewriter& r, ValueId v, OpKind op) {
  const NodeId n = r.producer(v, op);
  return n != kNoNode && r.used_once(v) ? r.input(n, 0) : kNoValue;
}

// u when v = u + 1, and v serves nobody else.
ValueId minus_one(const Rewriter& r, ValueId v) {
  const auto shifted = as_shifted(r, v);
  return shifted && close(shifted->term, 1) && r.used_once(v) ? shifted->x : kNoValue;
}

Status replace_by(Rewriter& r, NodeId n, OpKind op, ValueId x, Attrs attrs = {}) {
  if (r.graph().type(x) != r.graph().type(r.output(n))) return {};
  const std::string name = r.node(n).name;
  LIMBER_ASSIGN(const ValueId v, r.emit(op, {x}, std::move(attrs), name));
  r.replace(r.output(n), v);
  return {};
}

// --- x * sigmoid(x), x * tanh(softplus(x)), x * hard_sigmoid(x) -------------------------------------------

bool is_hard_sigmoid(const Rewriter& r, NodeId n) {
  const Attrs& attrs = r.node(n).attrs;
  return close(attrs.f("alpha"), 1.0 / 6) && close(attrs.f("beta"), 0.5);
}

// relu6(x + 3): x, else kNoValue.
ValueId shifted_relu6(const Rewriter& r, ValueId v) {
  const NodeId clip = r.producer(v, OpKind::kClip);
  if (clip == kNoNode || !r.used_once(v)) return kNoValue;
  const Attrs& attrs = r.node(clip).attrs;
  if (attrs.f("min", -INFINITY) != 0.0 || attrs.f("max", INFINITY) != 6.0) return kNoValue;
  const ValueId sum = r.input(clip, 0);
  const auto shifted = as_shifted(r, sum);
  return shifted && shifted->term == 3.0 && r.used_once(sum) ? shifted->x : kNoValue;
}

// The operator f when `gate` is the g of f(x) = x * g(x) * factor.
std::optional<OpKind> gated(const Rewriter& r, ValueId x, ValueId gate, double factor) {
  if (shifted_relu6(r, gate) == x && close(factor, 1.0 / 6)) return OpKind::kHardSwish;
  if (factor != 1) return std::nullopt;
  if (argument(r, gate, OpKind::kSigmoid) == x) return OpKind::kSilu;
  if (argument(r, gate, OpKind::kHardSigmoid) == x &&
      is_hard_sigmoid(r, r.producer(gate, OpKind::kHardSigmoid))) {
    return OpKind::kHardSwish;
  }
  const ValueId softplus = argument(r, gate, OpKind::kTanh);
  if (softplus != kNoValue && argument(r, softplus, OpKind::kSoftplus) == x) return OpKind::kMish;
  return std::nullopt;
}

// --- gelu: 0.5 * x * (1 + erf(x / sqrt 2)), 0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) ----------

bool is_erf_argument(const Rewriter& r, ValueId z, ValueId x) {
  const auto scaled = as_scaled(r, z);
  return scaled && scaled->x == x && close(scaled->factor, std::numbers::sqrt2 / 2) && r.used_once(z);
}

bool is_power(const Product& p, const Rewriter& r, ValueId x, size_t exponent) {
  if (p.factors.size() == exponent) {
    return std::all_of(p.factors.begin(), p.factors.end(), [x](ValueId f) { return f == x; });
  }
  if (p.factors.size() == 2) {  // x * (x*x), where the square is shared or was merged
    for (size_t i = 0; i < 2; ++i) {
      const NodeId square = r.producer(p.factors[1 - i], OpKind::kMul);
      if (exponent == 3 && p.factors[i] == x && square != kNoNode && r.input(square, 0) == x &&
          r.input(square, 1) == x)
        return true;
    }
  }
  const NodeId pow = p.factors.size() == 1 ? r.producer(p.factors[0], OpKind::kPow) : kNoNode;
  return pow != kNoNode && r.input(pow, 0) == x &&
         is_constant_close_to(r.graph(), r.input(pow, 1), static_cast<double>(exponent));
}

// sqrt(2/pi) * (x + 0.044715 x^3), or x * sqrt(2/pi) * (1 + 0.044715 x^2).
bool is_tanh_argument(const Rewriter& r, ValueId z, ValueId x) {
  constexpr double kCubic = 0.044715;  // of the paper (Hendrycks and Gimpel), in every framework
  const Product outer = product_of(r, z);
  const double root = std::sqrt(2 / std::numbers::pi);
  if (!close(outer.constant, root)) return false;
  if (outer.factors.size() == 1) {
    const NodeId sum = r.producer(outer.factors[0], OpKind::kAdd);
    const ValueId rest = sum == kNoNode ? kNoValue : other_operand(r, sum, x);
    if (rest == kNoValue) return false;
    const Product cubic = product_of(r, rest);
    return close(cubic.constant, kCubic) && is_power(cubic, r, x, 3);
  }
  if (outer.factors.size() != 2) return false;
  for (size_t i = 0; i < 2; ++i) {
    const ValueId square = outer.factors[i] == x ? minus_one(r, outer.factors[1 - i]) : kNoValue;
    if (square == kNoValue) continue;
    const Product quadratic = product_of(r, square);
    if (close(quadratic.constant, kCubic) && is_power(quadratic, r, x, 2)) return true;
  }
  return false;
}

enum class GeluKind { kNone, kErf, kTanh };

// What x * (1 + g) / 2 is.
GeluKind gelu_kind(const Rewriter& r, ValueId x, ValueId sum) {
  const ValueId g = minus_one(r, sum);
  if (g == kNoValue) return GeluKind::kNone;
  const ValueId erf = argument(r, g, OpKind::kErf);
  if (erf != kNoValue && is_erf_argument(r, erf, x)) return GeluKind::kErf;
  const ValueId tanh = argument(r, g, OpKind::kTanh);
  return tanh != kNoValue && is_tanh_argument(r, tanh, x) ? GeluKind::kTanh : GeluKind::kNone;
}

Status product_rule(Rewriter& r, NodeId n) {
  const Product p = product_of(r, r.output(n));
  if (p.factors.size() != 2) return {};
  for (size_t i = 0; i < 2; ++i) {
    const ValueId x = p.factors[i], gate = p.factors[1 - i];
    if (const auto op = gated(r, x, gate, p.constant)) return replace_by(r, n, *op, x);
    if (!close(p.constant, 0.5)) continue;
    const GeluKind kind = gelu_kind(r, x, gate);
    if (kind == GeluKind::kErf)
      return replace_by(r, n, OpKind::kGelu, x, {{"approximate", std::string("none")}});
    if (kind == GeluKind::kTanh)
      return replace_by(r, n, OpKind::kGelu, x, {{"approximate", std::string("tanh")}});
  }
  return {};
}

// relu6(x + 3) / 6
Status hard_sigmoid_rule(Rewriter& r, NodeId n) {
  const auto scaled = as_scaled(r, r.output(n));
  if (!scaled || !close(scaled->factor, 1.0 / 6)) return {};
  const ValueId x = shifted_relu6(r, scaled->x);
  if (x == kNoValue) return {};
  return replace_by(r, n, OpKind::kHardSigmoid, x, {{"alpha", 1.0 / 6}, {"beta", 0.5}});
}

// log(1 + exp(x))
Status softplus_rule(Rewriter& r, NodeId n) {
  const ValueId exp = minus_one(r, r.input(n, 0));
  const ValueId x = exp == kNoValue ? kNoValue : argument(r, exp, OpKind::kExp);
  return x == kNoValue ? Status() : replace_by(r, n, OpKind::kSoftplus, x);
}

Status pattern_rule(Rewriter& r, NodeId n) {
  const OpKind op = r.node(n).op;
  if (op != OpKind::kLog && op != OpKind::kMul && op != OpKind::kDiv) return {};
  if (!is_float(r.graph().type(r.output(n)).dtype)) return {};
  switch (op) {
    case OpKind::kLog:
      return softplus_rule(r, n);
    case OpKind::kMul:
    case OpKind::kDiv: {
      LIMBER_TRY(hard_sigmoid_rule(r, n));
      return r.dead(n) ? Status() : product_rule(r, n);
    }
    default:
      return {};
  }
}

}  // namespace

Status fuse_activation_patterns(Graph& graph) { return sweep_all(graph, pattern_rule); }

}  // namespace limber
