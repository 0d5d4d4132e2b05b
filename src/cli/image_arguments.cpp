#include "cli/image_arguments.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/units.h"
#include "cli/options.h"

namespace limber {
namespace {

// "0.5" for all channels or "0.485,0.456,0.406".
std::string parse_channels(const std::string& text, std::array<float, 3>& to) {
  const std::vector<double> values = parse_numbers(text);
  if (values.size() != 1 && values.size() != 3)
    return fmt::format("'{}' should be one number or three, as in 0.5,0.5,0.5", text);
  for (size_t c = 0; c < 3; ++c) to[c] = static_cast<float>(values[values.size() == 1 ? 0 : c]);
  return {};
}

std::string parse_std(const std::string& text, std::array<float, 3>& to) {
  const std::string problem = parse_channels(text, to);
  const bool positive = std::all_of(to.begin(), to.end(), [](float x) { return x > 0; });
  return problem.empty() && !positive ? fmt::format("'{}' must be positive", text) : problem;
}

std::string parse_size(const std::string& text, std::vector<int64_t>& to) {
  to = parse_dims(text);
  const bool sides = std::all_of(to.begin(), to.end(), [](int64_t x) { return x > 0 && x <= kMaxImageSide; });
  return sides && (to.size() == 1 || to.size() == 2)
             ? ""
             : fmt::format("'{}' should be SIDE or HEIGHTxWIDTH, at most {} a side", text, kMaxImageSide);
}

Normalisation& own(ImageOptions& options) {
  return options.normalisation ? *options.normalisation : options.normalisation.emplace();
}

}  // namespace

void add_image_arguments(Arguments& arguments, ImageOptions& options) {
  std::vector<std::pair<const char*, std::optional<Preset>>> choices;
  for (const Preset& preset : presets()) choices.emplace_back(preset.name.data(), preset);
  arguments.choice("--preprocess", options.preset, std::move(choices),
                   "How the model was trained to see images; default what is saved with it, else none");
  arguments.parsed("--mean", "R,G,B",
                   "Subtracted from pixels scaled to 0..1: one number or three (default 0)",
                   [&options](const std::string& text) { return parse_channels(text, own(options).mean); });
  arguments.parsed("--std", "R,G,B", "What pixels are then divided by: one number or three (default 1)",
                   [&options](const std::string& text) { return parse_std(text, own(options).std); });
  arguments.parsed("--size", "SIDE|HxW",
                   "Resize images to SIDExSIDE or HxW; with --crop, SIDE is the shorter side",
                   [&options](const std::string& text) { return parse_size(text, options.size); });
  arguments.number("--crop", options.crop, 1, kMaxImageSide, "Then cut this square out of the middle");
}

void add_bad_images_argument(Arguments& arguments, OnBadImage& to) {
  arguments.choice("--bad-images", to, {{"fail", OnBadImage::kFail}, {"skip", OnBadImage::kSkip}},
                   "Images that cannot be read; default fail");
}

void add_workers_argument(Arguments& arguments, int& workers) {
  arguments.number("--workers", workers, 0, 256,
                   "Threads that read images ahead; 0: all threads read, between two steps; default 0 when "
                   "--threads takes every core, else 1");
}

}  // namespace limber
