#include "adapt/frame_features.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/assert.h"

namespace limber::adapt {
namespace {

constexpr int kMaxRowPairs = 16;
constexpr int kMaxColumns = 256;  // of a row, from its middle
constexpr float kTiny = 1e-4F;    // logs of a flat image

constexpr const char* kFeatureNames[kFrameFeatures] = {
    "brightness", "contrast", "edges across", "edges down", "colour edges", "fineness", "curvature",
    "sharpness",  "darkest",  "brightest",    "colour",     "evidence",     "margin",   "entropy"};

struct Row {
  float luma[kMaxColumns], tint[kMaxColumns];  // tint: first colour less the last
};

// Sums over rows, by column: loops over columns have nothing to wait for.
struct ColumnSums {
  float value[kMaxColumns] = {}, square[kMaxColumns] = {}, down[kMaxColumns] = {}, colour[kMaxColumns] = {};
  float across[kMaxColumns] = {}, across_square[kMaxColumns] = {}, across_two[kMaxColumns] = {};
  float bend[kMaxColumns] = {}, colour_across[kMaxColumns] = {};
  float darkest[kMaxColumns], brightest[kMaxColumns];
};

void read_row(std::span<const float> image, int channels, size_t plane, size_t offset, int columns,
              Row& row) {
  const float* first = image.data() + offset;
  if (channels == 1) {
    std::copy_n(first, columns, row.luma);
    std::fill_n(row.tint, columns, 0.F);
    return;
  }
  const float *second = first + plane, *third = second + plane;
  for (int x = 0; x < columns; ++x) {
    row.luma[x] = (first[x] + second[x] + third[x]) * (1.F / 3);
    row.tint[x] = first[x] - third[x];
  }
}

void add_rows(const Row& row, const Row& below, int columns, ColumnSums& sums) {
  for (int x = 0; x < columns; ++x) {
    const float luma = row.luma[x];
    sums.value[x] += luma;
    sums.square[x] += luma * luma;
    sums.down[x] += std::abs(below.luma[x] - luma);
    sums.colour[x] += std::abs(row.tint[x]);
    sums.darkest[x] = luma < sums.darkest[x] ? luma : sums.darkest[x];
    sums.brightest[x] = luma > sums.brightest[x] ? luma : sums.brightest[x];
  }
  for (int x = 0; x < columns - 2; ++x) {
    const float step = row.luma[x + 1] - row.luma[x], two = row.luma[x + 2] - row.luma[x];
    sums.across[x] += std::abs(step);
    sums.across_square[x] += step * step;
    sums.across_two[x] += std::abs(two);
    sums.bend[x] += std::abs(two - 2 * step);
    sums.colour_across[x] += std::abs(row.tint[x + 1] - row.tint[x]);
  }
}

double mean_of(const float* values, int count, double of) {
  double sum = 0;
  for (int x = 0; x < count; ++x) sum += static_cast<double>(values[x]);
  return sum / of;
}

float log_of(double value) { return std::log(std::max(static_cast<float>(value), 0.F) + kTiny); }

class FeatureWriter {
 public:
  explicit FeatureWriter(Frame& frame) : frame_(frame) {}
  void set(FrameFeature feature, float value) {
    frame_.features[static_cast<size_t>(feature)] = std::isfinite(value) ? value : 0.F;
  }

 private:
  Frame& frame_;
};

void describe_pixels(std::span<const float> image, int channels, int height, int width, FeatureWriter& to) {
  const int columns = std::min(width, kMaxColumns), left = (width - columns) / 2;
  const int pairs = std::clamp(height - 1, 1, kMaxRowPairs);
  const size_t plane = static_cast<size_t>(height) * static_cast<size_t>(width);
  ColumnSums sums;
  std::fill_n(sums.darkest, columns, INFINITY);
  std::fill_n(sums.brightest, columns, -INFINITY);
  Row row, below;
  for (int i = 0; i < pairs; ++i) {
    const int y = pairs == 1 ? 0 : static_cast<int>(static_cast<int64_t>(i) * (height - 2) / (pairs - 1));
    const auto offset = [&](int of) {
      return static_cast<size_t>(std::min(of, height - 1)) * static_cast<size_t>(width) +
             static_cast<size_t>(left);
    };
    read_row(image, channels, plane, offset(y), columns, row);
    read_row(image, channels, plane, offset(y + 1), columns, below);
    add_rows(row, below, columns, sums);
  }
  const double pixels = static_cast<double>(pairs) * columns,
               steps = std::max(1.0, static_cast<double>(pairs) * (columns - 2));
  const double mean = mean_of(sums.value, columns, pixels);
  const double variance = std::max(0.0, mean_of(sums.square, columns, pixels) - mean * mean);
  const float across = log_of(mean_of(sums.across, columns, steps));
  to.set(FrameFeature::kBrightness, static_cast<float>(mean));
  to.set(FrameFeature::kContrast, log_of(std::sqrt(variance)));
  to.set(FrameFeature::kEdgesAcross, across);
  to.set(FrameFeature::kEdgesDown, log_of(mean_of(sums.down, columns, pixels)));
  to.set(FrameFeature::kColourEdges, log_of(mean_of(sums.colour_across, columns, steps)));
  to.set(FrameFeature::kFineness, log_of(mean_of(sums.across_two, columns, steps)) - across);
  to.set(FrameFeature::kCurvature, log_of(mean_of(sums.bend, columns, steps)) - across);
  to.set(FrameFeature::kSharpness, log_of(std::sqrt(mean_of(sums.across_square, columns, steps))) - across);
  to.set(FrameFeature::kDarkest, static_cast<float>(mean_of(sums.darkest, columns, columns)));
  to.set(FrameFeature::kBrightest, static_cast<float>(mean_of(sums.brightest, columns, columns)));
  to.set(FrameFeature::kColour, log_of(mean_of(sums.colour, columns, pixels)));
}

void describe_answer(std::span<const float> logits, Frame& frame, FeatureWriter& to) {
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i) best = logits[i] > logits[best] ? i : best;
  const float peak = logits[best];
  float second = logits.size() > 1 ? -INFINITY : peak, sum = 0, weighted = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (i != best) second = std::max(second, logits[i]);
    const float share = std::exp(logits[i] - peak);
    sum += share;
    weighted += share * (logits[i] - peak);
  }
  const float log_sum = std::log(sum);
  frame.claimed = static_cast<int32_t>(best);
  to.set(FrameFeature::kEvidence, peak + log_sum);
  to.set(FrameFeature::kMargin, peak - second);
  to.set(FrameFeature::kEntropy, log_of(static_cast<double>(log_sum - weighted / sum)));
}

}  // namespace

const char* feature_name(FrameFeature feature) { return kFeatureNames[static_cast<size_t>(feature)]; }

Frame frame_of(std::span<const float> image, int channels, int height, int width,
               std::span<const float> logits) {
  LIMBER_ASSERT((channels == 1 || channels == 3) && height > 0 && width > 0 && !logits.empty());
  LIMBER_ASSERT(image.size() ==
                static_cast<size_t>(channels) * static_cast<size_t>(height) * static_cast<size_t>(width));
  Frame frame;
  FeatureWriter to(frame);
  describe_pixels(image, channels, height, width, to);
  describe_answer(logits, frame, to);
  return frame;
}

}  // namespace limber::adapt
