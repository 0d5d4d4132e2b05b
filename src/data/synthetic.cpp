#include "data/synthetic.h"

#include <mutex>
#include <optional>

#include "base/hash.h"
#include "data/canvas.h"
#include "data/classes.h"
#include "data/shapes.h"

namespace limber {
namespace {

constexpr size_t kTrainCount = 10000, kTestCount = 2000;  // images, unless the spec says another count
constexpr int kMinSize = 8, kMaxSize = 1024;     // pixels a side: shapes can be told apart, and drawn at once
constexpr size_t kKeptBytes = size_t{64} << 20;  // drawn images stay up to this: 20,000 of 32x32
constexpr std::string_view kPrefix = "synthetic";

Colour random_colour(Random& random) {
  return {uniform(random, 10, 245), uniform(random, 10, 245), uniform(random, 10, 245)};
}

Colour ground_colour(Random& random) {
  const Colour colour = random_colour(random);
  return mixed({0, 0, 0}, colour, std::min(1.F, uniform(random, 40, 120) / luma_of(colour)));
}

// Things are brighter than what is behind them.
Colour object_colour(Random& random, const Colour& ground) {
  Colour colour = random_colour(random);
  const float wanted = luma_of(ground) + uniform(random, 30, 110), luma = luma_of(colour);
  if (luma >= wanted) return colour;
  return mixed(colour, {255, 255, 255}, (wanted - luma) / (255 - luma));
}

// Two colours that run into each other across the image, with a pattern and smooth noise on them.
class Paint {
 public:
  Paint(Random& random, const Colour& colour, float unit)
      : from_(colour),
        to_(mixed(colour, random_colour(random), uniform(random, 0, 0.45))),
        pattern_(random, uniform(random, 3, 9) * unit),
        noise_(random.next()),
        unit_(unit) {
    const float angle = uniform(random, 0, 6.2831);
    cos_ = std::cos(angle) / (45 * unit);
    sin_ = std::sin(angle) / (45 * unit);
    pattern_depth_ = random.uniform() < 0.5 ? uniform(random, -45, 45) : 0.F;
    noise_depth_ = uniform(random, 0, 50);
  }
  Colour operator()(float y, float x) const {
    const float share = std::clamp(0.5F + x * cos_ + y * sin_, 0.F, 1.F);
    float level = noise_depth_ * (noise_(x / (4 * unit_), y / (4 * unit_)) - 0.5F);
    if (pattern_depth_ != 0) level += pattern_depth_ * (pattern_(x, y) - 0.5F);
    const Colour colour = mixed(from_, to_, share);
    return {colour[0] + level, colour[1] + level, colour[2] + level};
  }

 private:
  Colour from_, to_;
  Pattern pattern_;
  ValueNoise noise_;
  float unit_, cos_, sin_, pattern_depth_, noise_depth_;
};

struct Placement {
  int shape;
  float y, x, radius;  // pixels
  float angle;
  float stretch;  // of the width; the height shrinks by it
};

void draw(Canvas& canvas, const Placement& at, const Paint& paint, float opacity) {
  const float reach = 1.5F * at.radius + 1;
  const int top = std::max(0, static_cast<int>(at.y - reach)),
            left = std::max(0, static_cast<int>(at.x - reach));
  const int bottom = std::min(canvas.height, static_cast<int>(at.y + reach) + 1);
  const int right = std::min(canvas.width, static_cast<int>(at.x + reach) + 1);
  const float cosine = std::cos(at.angle) / at.radius, sine = std::sin(at.angle) / at.radius;
  const float limit = 1.1F + 1 / at.radius;  // no shape goes farther, with its soft edge
  for (int y = top; y < bottom; ++y) {
    for (int x = left; x < right; ++x) {
      const float dy = static_cast<float>(y) + 0.5F - at.y, dx = static_cast<float>(x) + 0.5F - at.x;
      const float u = (dx * cosine + dy * sine) / at.stretch, v = (dy * cosine - dx * sine) * at.stretch;
      if (u * u + v * v > limit * limit) continue;
      const float cover = std::clamp(0.5F - shape_distance(at.shape, u, v) * at.radius, 0.F, 1.F);
      if (cover <= 0) continue;
      canvas.at(y, x) = mixed(canvas.at(y, x), paint(dy, dx), cover * opacity);
    }
  }
}

// Small shapes of any class: what is in the picture besides what it shows.
void draw_clutter(Canvas& canvas, Random& random, int count, double smallest, double largest) {
  for (int i = 0; i < count; ++i) {
    const Placement at{static_cast<int>(random.below(kShapes)),
                       uniform(random, 0, canvas.height),
                       uniform(random, 0, canvas.width),
                       uniform(random, smallest, largest) * canvas.unit(),
                       uniform(random, 0, 6.2831),
                       uniform(random, 0.6, 1.6)};
    draw(canvas, at, Paint(random, random_colour(random), canvas.unit()), uniform(random, 0.5, 1));
  }
}

Placement place(Random& random, int shape, const Canvas& canvas) {
  const float unit = canvas.unit();
  const float middle = 16 * unit;
  return {shape,
          middle + uniform(random, -5, 5) * unit,
          middle + uniform(random, -5, 5) * unit,
          uniform(random, 7, 12.5) * unit,
          uniform(random, -0.5, 0.5),
          uniform(random, 0.82, 1.2)};
}

void light(Canvas& canvas, Random& random) {
  const float gain = uniform(random, 0.75, 1.15), grain = uniform(random, 2, 9);
  for (Colour& pixel : canvas.pixels) {
    for (float& value : pixel) value = std::clamp(value * gain + grain * rough_normal(random), 0.F, 255.F);
  }
}

Canvas draw_scene(int size, int shape, Random& random) {
  Canvas canvas(size, size);
  const Colour ground = ground_colour(random);
  const Paint background(random, ground, canvas.unit());
  for (int y = 0; y < size; ++y) {
    for (int x = 0; x < size; ++x) {
      const float middle = static_cast<float>(size) / 2;
      canvas.at(y, x) = background(static_cast<float>(y) - middle, static_cast<float>(x) - middle);
    }
  }
  draw_clutter(canvas, random, 2 + static_cast<int>(random.below(4)), 2, 5);
  draw(canvas, place(random, shape, canvas), Paint(random, object_colour(random, ground), canvas.unit()),
       uniform(random, 0.85, 1));
  draw_clutter(canvas, random, static_cast<int>(random.below(3)), 1, 2.5);
  light(canvas, random);
  return canvas;
}

// Images that were drawn are kept where all of them are small: drawing one takes longer than training a small
// network on it.
class Synthetic : public Dataset {
 public:
  explicit Synthetic(const SyntheticOptions& options) : Dataset(shape_names()), options_(options) {
    const auto side = static_cast<size_t>(options.size);
    if (options.count <= kKeptBytes / (3 * side * side)) kept_.resize(options.count);
  }
  size_t size() const override { return options_.count; }
  int64_t label(size_t index) const override { return static_cast<int64_t>(index % kShapes); }
  std::string name(size_t index) const override {
    return fmt::format("synthetic {} image {}", split_name(options_.split), index);
  }
  Result<Sample> get(size_t index) const override {
    if (kept_.empty()) {
      LIMBER_ASSIGN(Tensor image, draw_image(index));
      return Sample{std::move(image), label(index)};
    }
    {
      const std::lock_guard lock(mutex_);
      if (kept_[index]) return Sample{*kept_[index], label(index)};
    }
    LIMBER_ASSIGN(const Tensor image, draw_image(index));
    const std::lock_guard lock(mutex_);
    kept_[index] = image;
    return Sample{image, label(index)};
  }

 private:
  Result<Tensor> draw_image(size_t index) const {
    const auto split = static_cast<uint64_t>(options_.split);
    Random random(Hasher().add(options_.seed).add(split).add(index).digest());
    const Canvas scene = draw_scene(options_.size, static_cast<int>(label(index)), random);
    LIMBER_ASSIGN(Tensor image, to_image(scene));
    if (!options_.shifts.empty()) {
      LIMBER_ASSIGN(image, apply_shifts(image, options_.shifts, random.next()));
    }
    return image;
  }

  SyntheticOptions options_;
  mutable std::mutex mutex_;  // of what follows
  mutable std::vector<std::optional<Tensor>> kept_;
};

// Whether `item` sets one of the numbers.
Result<bool> parse_setting(std::string_view item, SyntheticOptions& options) {
  const size_t equals = std::min(item.find('='), item.size());
  const std::string_view key = item.substr(0, equals);
  if (key != "size" && key != "count" && key != "seed") return false;
  const auto value = parse_number(item.substr(std::min(equals + 1, item.size())));
  if (!value || *value < 0 || (key == "size" && *value > kMaxSize)) {
    return invalid("'{}': expected {}=NUMBER{}", item, key, key == "size" ? ", 8 to 1024" : "");
  }
  if (key == "size") options.size = static_cast<int>(*value);
  if (key == "count") options.count = static_cast<size_t>(*value);
  if (key == "seed") options.seed = static_cast<uint64_t>(*value);
  return true;
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_synthetic(const SyntheticOptions& options) {
  SyntheticOptions complete = options;
  if (complete.count == 0) complete.count = options.split == Split::kTrain ? kTrainCount : kTestCount;
  if (options.size < kMinSize || options.size > kMaxSize) {
    return invalid("synthetic images of {} pixels a side; expected {}..{}", options.size, kMinSize, kMaxSize);
  }
  if (complete.count > static_cast<size_t>(kMaxSamples)) {
    return invalid("{} synthetic images; at most {}", complete.count, kMaxSamples);
  }
  return std::unique_ptr<Dataset>(std::make_unique<Synthetic>(complete));
}

bool is_synthetic(std::string_view spec) {
  return spec == kPrefix || (spec.starts_with(kPrefix) && spec[kPrefix.size()] == ':');
}

Result<SyntheticOptions> parse_synthetic(std::string_view spec) {
  LIMBER_ASSERT(is_synthetic(spec));
  SyntheticOptions options;
  std::string_view rest = spec.substr(std::min(kPrefix.size() + 1, spec.size()));
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view item = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    auto setting = parse_setting(item, options);
    if (!setting.ok()) return setting.status().in(spec);
    if (*setting) continue;
    auto shift = parse_shifts(item);
    if (!shift.ok()) return invalid("{}: {}; or count=N, size=N, seed=N", spec, shift.status().message());
    if (shift->empty()) return invalid("{}: nothing between two commas", spec);
    options.shifts.insert(options.shifts.end(), shift->begin(), shift->end());
  }
  return options;
}

}  // namespace limber
