// Elementary functions on vectors. The coefficients are minimax fits made for this file; errors are those
// of the fit plus rounding, together below 3 ulp where nothing else is said.

// The result of reducing exp's argument: x = n * ln 2 + r with |r| <= ln(2) / 2.
struct ExpParts {
  Vec n, r;
};

LIMBER_INLINE ExpParts exp_reduce(Vec x) {
  const Vec kMagic = splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const Vec n = (x * 1.44269504088896341f + kMagic) - kMagic;
  // ln 2 in two parts: n times the first is exact.
  const Vec r = (x - n * 0.693145751953125f) - n * 1.42860682030941723e-6f;
  return {n, r};
}

// exp(r) - 1 for a reduced argument.
LIMBER_INLINE Vec exp_tail(Vec r) {
  Vec p = 0.001381458604f * r + 0.008368718067f;
  p = p * r + 0.04166838831f;
  p = p * r + 0.1666652062f;
  p = p * r + 0.4999999345f;
  return p * (r * r) + r;
}

LIMBER_INLINE Vec exp_of(Vec x) {
  x = min_of(splat(90.0f), max_of(splat(-105.0f), x));  // beyond, exp is infinity or 0 in floats
  const ExpParts parts = exp_reduce(x);
  return scale_by_power(exp_tail(parts.r) + 1.0f, parts.n);
}

// For arguments up to 80, mostly negative ones, as softmax has them. Results below the smallest normal number
// are 0: a denormal would cost the processor more than all the rest.
LIMBER_INLINE Vec exp_of_nonpositive(Vec x) {
  const float kLowest = -87.33f;
  const Vec clamped = max_of(splat(kLowest), x);
  const Vec kMagic = splat(12582912.0f + 127.0f);
  const Vec shifted = clamped * 1.44269504088896341f + kMagic;  // its low bits are n + 127: 2^n
  const Vec n = shifted - kMagic;
  const Vec r = (clamped - n * 0.693145751953125f) - n * 1.42860682030941723e-6f;
  // A product, not a sum of bits: of a NaN, whatever its bits are, NaN comes.
  const Vec y = (exp_tail(r) + 1.0f) * from_bits(as_bits(shifted) << 23);
  return x < kLowest ? Vec{} : y;
}

// exp(x) - 1 without cancellation near zero.
LIMBER_INLINE Vec expm1_of(Vec x) {
  x = min_of(splat(90.0f), max_of(splat(-30.0f), x));
  const ExpParts parts = exp_reduce(x);
  const Vec power = scale_by_power(splat(1.0f), parts.n);
  return power * exp_tail(parts.r) + (power - 1.0f);
}

// log(x) + e * log(2) for a positive normal x.
LIMBER_INLINE Vec log_scaled(Vec x, Vec e) {
  // The mantissa is brought to [sqrt(1/2), sqrt(2)).
  const UVec bits = as_bits(x) - 0x3f3504f3u;
  const IVec exponent = reinterpret_cast<IVec>(bits) >> 23;
  const Vec m = from_bits((bits & 0x007fffffu) + 0x3f3504f3u);
  e = e + __builtin_convertvector(exponent, Vec);
  const Vec f = m - 1.0f;
  Vec p = -0.07634107687f * f + 0.1276142066f;
  p = p * f - 0.1316025601f;
  p = p * f + 0.1420178418f;
  p = p * f - 0.1662335234f;
  p = p * f + 0.2000122565f;
  p = p * f - 0.2500082116f;
  p = p * f + 0.3333333172f;
  const Vec f2 = f * f;
  const Vec y = p * f2 * f - 0.5f * f2 + e * 1.42860682030941723e-6f;
  return y + f + e * 0.693145751953125f;
}

LIMBER_INLINE Vec log_of(Vec x) {
  const IVec tiny = x < 1.17549435e-38f;
  Vec y = log_scaled(tiny ? x * 8388608.0f : x, tiny ? splat(-23.0f) : Vec{});
  y = x == 0.0f ? splat(-kInfinity) : y;
  y = x < 0.0f ? splat(__builtin_nanf("")) : y;
  return ((x == kInfinity) | (x != x)) ? x : y;
}

// log(1 + u) for u in [0, 1]
LIMBER_INLINE Vec log1p_of_unit(Vec u) {
  const Vec w = u + 1.0f;
  return log_scaled(w, Vec{}) + quotient(u - (w - 1.0f), w);
}

LIMBER_INLINE Vec erf_of(Vec x) {
  x = min_of(splat(3.925f), max_of(splat(-3.925f), x));
  const Vec s = x * x;
  Vec p = 2.045990297e-6f * s + 0.0002847888707f;
  p = p * s + 0.003771057354f;
  p = p * s + 0.0527645954f;
  p = p * s + 0.1905618693f;
  p = p * s + 1.128379146f;
  Vec q = 3.804454553e-5f * s + 0.0011634571f;
  q = q * s + 0.01498021555f;
  q = q * s + 0.1141691028f;
  q = q * s + 0.5022137981f;
  q = q * s + 1.0f;
  return quotient(x * p, q);
}

LIMBER_INLINE Vec tanh_of(Vec x) {
  x = min_of(splat(9.05f), max_of(splat(-9.05f), x));
  const Vec s = x * x;
  Vec p = 1.326657767e-8f * s + 2.054591051e-5f;
  p = p * s + 0.00349176476f;
  p = p * s + 0.1337781125f;
  p = p * s + 0.9999999786f;
  Vec q = 7.740627783e-7f * s + 0.0003279371453f;
  q = q * s + 0.02586245184f;
  q = q * s + 0.4671112615f;
  q = q * s + 1.0f;
  return quotient(x * p, q);
}

// With e = exp(-|x|), which neither overflows nor is denormal.
LIMBER_INLINE Vec sigmoid_of(Vec x) {
  const Vec e = exp_of_nonpositive(-abs_of(x));
  return quotient(x < 0.0f ? e : splat(1.0f), e + 1.0f);
}
LIMBER_INLINE Vec silu_of(Vec x) {
  const Vec e = exp_of_nonpositive(-abs_of(x));
  return quotient(x < 0.0f ? x * e : x, e + 1.0f);
}

// x^p for x > 0
LIMBER_INLINE Vec power_of(Vec x, float p) { return exp_of(log_of(x) * p); }
