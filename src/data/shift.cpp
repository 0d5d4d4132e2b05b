#include "data/shift.h"

#include <charconv>

#include "base/hash.h"
#include "data/canvas.h"

namespace limber {
namespace {

constexpr const char* kNames[kShiftKinds] = {"night", "fog",    "rain",    "blur",
                                             "noise", "invert", "texture", "viewpoint"};
constexpr float kPi = 3.14159265F;

using Taps = std::vector<float>;

Taps gaussian(float sigma) {
  const int radius = std::max(1, static_cast<int>(std::ceil(2.5F * sigma)));
  Taps taps;
  float sum = 0;
  for (int i = -radius; i <= radius; ++i) {
    taps.push_back(std::exp(-static_cast<float>(i * i) / (2 * sigma * sigma)));
    sum += taps.back();
  }
  for (float& tap : taps) tap /= sum;
  return taps;
}

Canvas blurred_along(const Canvas& from, const Taps& taps, int dy, int dx) {
  Canvas to(from.height, from.width);
  const int radius = static_cast<int>(taps.size()) / 2;
  for (int y = 0; y < from.height; ++y) {
    for (int x = 0; x < from.width; ++x) {
      Colour sum{};
      int i = -radius;
      for (const float tap : taps) {
        const Colour& pixel = from.clamped(y + i * dy, x + i * dx);
        for (size_t c = 0; c < 3; ++c) sum[c] += tap * pixel[c];
        ++i;
      }
      to.at(y, x) = sum;
    }
  }
  return to;
}

void blur_by(Canvas& canvas, float sigma) {
  const Taps taps = gaussian(sigma);
  canvas = blurred_along(blurred_along(canvas, taps, 0, 1), taps, 1, 0);
}

void add_noise(Canvas& canvas, float sigma, Random& random) {
  for (Colour& pixel : canvas.pixels) {
    for (float& value : pixel) value = std::clamp(value + sigma * rough_normal(random), 0.F, 255.F);
  }
}

void night(Canvas& canvas, float strength, Random& random) {
  const float lamp_y = uniform(random, 0.2, 0.8), lamp_x = uniform(random, 0.2, 0.8);
  const float spread = uniform(random, 0.03, 0.09);
  const Colour tint{1 - 0.35F * strength, 1 - 0.25F * strength, 1 - 0.05F * strength};
  for (int y = 0; y < canvas.height; ++y) {
    for (int x = 0; x < canvas.width; ++x) {
      const float dy = static_cast<float>(y) / static_cast<float>(canvas.height) - lamp_y;
      const float dx = static_cast<float>(x) / static_cast<float>(canvas.width) - lamp_x;
      const float gain =
          (1 - 0.7F * strength) * (1 + 0.9F * strength * std::exp(-(dx * dx + dy * dy) / spread));
      Colour& pixel = canvas.at(y, x);
      for (size_t c = 0; c < 3; ++c) {
        pixel[c] = 255 * std::pow(pixel[c] / 255, 1 + 0.4F * strength) * gain * tint[c];
      }
    }
  }
  add_noise(canvas, 7 * strength, random);
}

void fog(Canvas& canvas, float strength, Random& random) {
  const ValueNoise drift(random.next());
  const float scale = 1 / (12 * canvas.unit());
  const float level = uniform(random, 195, 225);
  for (int y = 0; y < canvas.height; ++y) {
    for (int x = 0; x < canvas.width; ++x) {
      const float hill = drift(static_cast<float>(x) * scale, static_cast<float>(y) * scale);
      const float density = strength * (0.5F + 0.42F * hill);
      canvas.at(y, x) = mixed(canvas.at(y, x), {level, level + 2, level + 6}, density);
    }
  }
}

void streak(Canvas& canvas, float y, float x, float dy, float dx, int length, float opacity) {
  for (int i = 0; i < length; ++i, y += dy, x += dx) {
    const int iy = static_cast<int>(y), ix = static_cast<int>(x);
    if (iy < 0 || ix < 0 || iy >= canvas.height || ix >= canvas.width) continue;
    canvas.at(iy, ix) = mixed(canvas.at(iy, ix), {205, 210, 220}, opacity);
  }
}

void rain(Canvas& canvas, float strength, Random& random) {
  const float grey = 1 - 0.25F * strength;
  for (Colour& pixel : canvas.pixels) {
    const float mean = (pixel[0] + pixel[1] + pixel[2]) / 3;
    pixel = mixed(pixel, {mean, mean, mean}, 0.5F * strength);
    for (float& value : pixel) value *= grey;
  }
  const float slant = uniform(random, -0.45, 0.45);
  const float area = static_cast<float>(canvas.height) * static_cast<float>(canvas.width);
  const int count = static_cast<int>(strength * area / (19 * canvas.unit()));
  for (int i = 0; i < count; ++i) {
    const int length = std::max(2, static_cast<int>(uniform(random, 3, 8) * canvas.unit()));
    streak(canvas, uniform(random, -6, canvas.height), uniform(random, 0, canvas.width), 1, slant, length,
           uniform(random, 0.3, 0.7));
  }
}

void noise(Canvas& canvas, float strength, Random& random) {
  add_noise(canvas, 48 * strength, random);
  for (Colour& pixel : canvas.pixels) {
    if (random.uniform() >= 0.05 * static_cast<double>(strength)) continue;
    const float value = random.uniform() < 0.5 ? 0.F : 255.F;
    pixel = {value, value, value};
  }
}

void invert(Canvas& canvas, float strength) {
  const float threshold = 255 * (1 - strength);
  for (Colour& pixel : canvas.pixels) {
    for (float& value : pixel) value = value >= threshold ? 255 - value : value;
  }
}

void texture(Canvas& canvas, float strength, Random& random) {
  const Pattern pattern(random, uniform(random, 3.5, 7) * canvas.unit());
  const Colour ink{uniform(random, 0, 255), uniform(random, 0, 255), uniform(random, 0, 255)};
  for (int y = 0; y < canvas.height; ++y) {
    for (int x = 0; x < canvas.width; ++x) {
      const float here = pattern(static_cast<float>(x), static_cast<float>(y));
      canvas.at(y, x) = mixed(canvas.at(y, x), ink, 0.6F * strength * here);
    }
  }
}

Colour sample(const Canvas& canvas, float y, float x) {
  const float fy = std::floor(y), fx = std::floor(x);
  const int iy = static_cast<int>(fy), ix = static_cast<int>(fx);
  const Colour top = mixed(canvas.clamped(iy, ix), canvas.clamped(iy, ix + 1), x - fx);
  const Colour bottom = mixed(canvas.clamped(iy + 1, ix), canvas.clamped(iy + 1, ix + 1), x - fx);
  return mixed(top, bottom, y - fy);
}

void viewpoint(Canvas& canvas, float strength, Random& random) {
  const float side = random.uniform() < 0.5 ? -1.F : 1.F;
  const float turn = side * strength * uniform(random, 0.35, 0.8);
  const float direction = uniform(random, 0, 2 * kPi), tilt = strength * uniform(random, 0.25, 0.5);
  const float zoom = std::exp(strength * uniform(random, -0.15, 0.35));
  const float tilt_x = tilt * std::cos(direction), tilt_y = tilt * std::sin(direction);
  const float half_h = static_cast<float>(canvas.height) / 2, half_w = static_cast<float>(canvas.width) / 2;
  const Canvas from = canvas;
  for (int y = 0; y < canvas.height; ++y) {
    for (int x = 0; x < canvas.width; ++x) {
      const float v = (static_cast<float>(y) + 0.5F) / half_h - 1,
                  u = (static_cast<float>(x) + 0.5F) / half_w - 1;
      const float depth = zoom / (1 + tilt_x * u + tilt_y * v);
      const float a = (u * std::cos(turn) - v * std::sin(turn)) * depth;
      const float b = (u * std::sin(turn) + v * std::cos(turn)) * depth;
      canvas.at(y, x) = sample(from, (b + 1) * half_h - 0.5F, (a + 1) * half_w - 0.5F);
    }
  }
}

void apply(Canvas& canvas, const Shift& shift, Random& random) {
  const auto strength = static_cast<float>(shift.strength);
  switch (shift.kind) {
    case ShiftKind::kNight:
      return night(canvas, strength, random);
    case ShiftKind::kFog:
      return fog(canvas, strength, random);
    case ShiftKind::kRain:
      return rain(canvas, strength, random);
    case ShiftKind::kBlur:
      return blur_by(canvas, 2.0F * strength * canvas.unit());
    case ShiftKind::kNoise:
      return noise(canvas, strength, random);
    case ShiftKind::kInvert:
      return invert(canvas, strength);
    case ShiftKind::kTexture:
      return texture(canvas, strength, random);
    case ShiftKind::kViewpoint:
      return viewpoint(canvas, strength, random);
  }
}

Result<Shift> parse_shift(std::string_view text) {
  const size_t equals = std::min(text.find('='), text.size());
  const std::string_view name = text.substr(0, equals);
  Shift shift;
  int kind = 0;
  while (kind < kShiftKinds && name != kNames[kind]) ++kind;
  if (kind == kShiftKinds) {
    return invalid(
        "no domain shift '{}'; expected night, fog, rain, blur, noise, invert, texture or viewpoint", name);
  }
  shift.kind = static_cast<ShiftKind>(kind);
  if (equals == text.size()) return shift;
  const std::string_view number = text.substr(equals + 1);
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), shift.strength);
  if (code == std::errc() && end == number.data() + number.size() && shift.strength > 0 &&
      shift.strength <= 1) {
    return shift;
  }
  return invalid("domain shift '{}': strength '{}'; expected a number above 0, up to 1", name, number);
}

class Shifted : public Dataset {
 public:
  Shifted(std::shared_ptr<const Dataset> inner, std::vector<Shift> shifts, uint64_t seed)
      : Dataset(inner->class_names()), inner_(std::move(inner)), shifts_(std::move(shifts)), seed_(seed) {}
  size_t size() const override { return inner_->size(); }
  int64_t label(size_t index) const override { return inner_->label(index); }
  std::string name(size_t index) const override { return inner_->name(index); }
  Result<Sample> get(size_t index) const override {
    LIMBER_ASSIGN(Sample sample, inner_->get(index));
    LIMBER_ASSIGN(sample.image, apply_shifts(sample.image, shifts_, Hasher().add(seed_).add(index).digest()));
    return sample;
  }

 private:
  std::shared_ptr<const Dataset> inner_;
  std::vector<Shift> shifts_;
  uint64_t seed_;
};

}  // namespace

const char* shift_name(ShiftKind kind) { return kNames[static_cast<size_t>(kind)]; }

Result<std::vector<Shift>> parse_shifts(std::string_view text) {
  std::vector<Shift> shifts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    LIMBER_ASSIGN(const Shift shift, parse_shift(text.substr(0, comma)));
    shifts.push_back(shift);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return shifts;
}

std::string format_shifts(const std::vector<Shift>& shifts) {
  std::string text;
  for (const Shift& shift : shifts) {
    if (!text.empty()) text += ',';
    text += shift_name(shift.kind);
    if (shift.strength != 1) text += fmt::format("={}", shift.strength);
  }
  return text;
}

Result<Tensor> apply_shifts(const Tensor& image, const std::vector<Shift>& shifts, uint64_t seed) {
  Canvas canvas = to_canvas(image);
  Random random(seed);
  for (const Shift& shift : shifts) {
    apply(canvas, shift, random);
    for (Colour& pixel : canvas.pixels) {
      for (float& value : pixel) value = std::clamp(value, 0.F, 255.F);
    }
  }
  return to_image(canvas);
}

std::unique_ptr<Dataset> shift_dataset(std::shared_ptr<const Dataset> inner, std::vector<Shift> shifts,
                                       uint64_t seed) {
  return std::make_unique<Shifted>(std::move(inner), std::move(shifts), seed);
}

}  // namespace limber
