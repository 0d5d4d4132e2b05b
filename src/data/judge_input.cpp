#include "data/judge_input.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace limber {
namespace {

// Means and deviations of one data set or another hardly differ to a network; these do. Common ones first.
constexpr std::string_view kTried[] = {"imagenet", "none", "minus1to1", "0to255"};

// Measured on five networks and their own kind of images: what is right tells 1.6 to 3.4 times as much as
// 0..1 does where that is wrong, and no wrong preset more than 1.03 times as much as the right one.
constexpr double kClearlyBetter = 1.4;  // times the information
constexpr double kLeastGain = 0.3;      // nats; below it is the chance of which images were seen
constexpr size_t kLeastImages = 16;     // different ones; fewer are too alike, or too unlike, by chance
constexpr double kAsGood = 0.95;        // of the best: then the more common preset is named
// Any network is surer of larger pixels. Seven with random weights, which say next to nothing about 0..1,
// were certain of every image at 255 times that: answers as sure as these (mean of the largest probability)
// prove nothing.
constexpr double kTooSure = 0.995;
constexpr float kMuchLarger = 16;  // times the deviation; of the presets only 0to255 makes pixels so large

using Answers = std::vector<std::vector<double>>;  // probabilities

double entropy(const std::vector<double>& p) {
  double sum = 0;
  for (const double x : p) sum -= x > 0 ? x * std::log(x) : 0;
  return sum;
}

bool is_probabilities(std::span<const float> row) {
  const double sum = std::accumulate(row.begin(), row.end(), 0.0);
  return std::abs(sum - 1) < 1e-3 && std::all_of(row.begin(), row.end(), [](float x) { return x >= 0; });
}

std::vector<double> probabilities(std::span<const float> row) {
  std::vector<double> p(row.begin(), row.end());
  if (is_probabilities(row)) return p;
  const double most = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - most);
  for (double& x : p) x /= sum;
  return p;
}

Status add_answers(const Tensor& rows, int64_t batch, Answers& answers) {
  const bool fits = rows.dtype() == DType::kF32 && rows.shape().rank() >= 2 && rows.shape().dim(0) == batch &&
                    rows.elements() > 0;
  if (!fits) return invalid("answers of {}; expected f32[{},classes]", rows.type().to_string(), batch);
  const auto values = rows.data<float>();
  const bool finite = std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
  if (!finite) return invalid("the network's answers are not finite numbers");
  const size_t classes = values.size() / static_cast<size_t>(batch);
  for (size_t i = 0; i < values.size(); i += classes)
    answers.push_back(probabilities(values.subspan(i, classes)));
  return {};
}

InputFit fit_of(const Answers& answers, std::string_view preset) {
  InputFit fit{preset};
  std::vector<double> mean(answers[0].size());
  const auto count = static_cast<double>(answers.size());
  for (const auto& p : answers) {
    fit.confidence += *std::max_element(p.begin(), p.end()) / count;
    fit.information -= entropy(p) / count;
    for (size_t c = 0; c < p.size(); ++c) mean[c] += p[c] / count;
  }
  fit.information += entropy(mean);
  return fit;
}

class Judge {
 public:
  Judge(const AnswerImages& answer, int64_t batch, std::vector<Tensor> images)
      : answer_(answer), batch_(batch), images_(std::move(images)) {}

  Result<InputFit> try_input(const Preprocess& how, std::string_view preset) const {
    LIMBER_ASSIGN(const Preprocessor input, Preprocessor::make(how));
    Answers answers;
    for (size_t first = 0; first < images_.size(); first += static_cast<size_t>(batch_)) {
      LIMBER_ASSIGN(Tensor batch,
                    Tensor::allocate({DType::kF32, Shape{batch_, how.channels, how.height, how.width}}));
      const size_t each = input.output_size();
      for (size_t i = 0; i < static_cast<size_t>(batch_); ++i)
        LIMBER_TRY(input.apply(images_[first + i], batch.data<float>().subspan(i * each, each)));
      LIMBER_ASSIGN(const Tensor rows, answer_(batch));
      LIMBER_TRY(add_answers(rows, batch_, answers));
    }
    return fit_of(answers, preset);
  }

 private:
  const AnswerImages& answer_;
  int64_t batch_;
  std::vector<Tensor> images_;
};

// Spread over the data, which are often sorted by class; repeated where there are fewer than a batch.
Result<std::vector<Tensor>> some_images(const Dataset& data, const JudgeOptions& options) {
  const auto batch = static_cast<size_t>(options.batch);
  const size_t wanted = std::min(static_cast<size_t>(std::max<int64_t>(options.images, 1)), data.size());
  const size_t count = std::max<size_t>(1, wanted / batch) * batch;
  std::vector<Tensor> images;
  for (size_t i = 0; i < count; ++i) {
    LIMBER_ASSIGN(Sample sample, data.get(i * data.size() / count));
    images.push_back(std::move(sample.image));
  }
  return images;
}

}  // namespace

Result<InputVerdict> judge_input(const Dataset& data, const Preprocess& given, const AnswerImages& answer,
                                 const JudgeOptions& options) {
  if (options.batch < 1) return invalid("a batch of {} images", options.batch);
  LIMBER_ASSIGN(std::vector<Tensor> images, some_images(data, options));
  const Judge judge(answer, options.batch, std::move(images));
  InputVerdict verdict;
  LIMBER_ASSIGN(verdict.given, judge.try_input(given, ""));
  verdict.best = verdict.given;
  std::vector<InputFit> fits;
  for (const std::string_view name : kTried) {
    LIMBER_ASSIGN(const Preset preset, find_preset(name));
    if (preset.normalisation == given.normalisation) continue;
    Preprocess how = given;
    how.normalisation = preset.normalisation;
    LIMBER_ASSIGN(const InputFit fit, judge.try_input(how, preset.name));
    const bool larger = kMuchLarger * preset.normalisation.std[0] < given.normalisation.std[0];
    if (!larger || fit.confidence <= kTooSure) fits.push_back(fit);
  }
  const auto more = [](const InputFit& a, const InputFit& b) { return a.information < b.information; };
  const double most = std::max_element(fits.begin(), fits.end(), more)->information;
  const InputFit& best = *std::find_if(
      fits.begin(), fits.end(), [&](const InputFit& fit) { return fit.information >= kAsGood * most; });
  const double gain = best.information - verdict.given.information;
  if (data.size() < kLeastImages || gain < kLeastGain ||
      best.information < kClearlyBetter * verdict.given.information)
    return verdict;
  verdict.best = best;
  verdict.doubtful = true;
  verdict.advice = fmt::format(
      "the network seems to be fed other pixels than it was trained with: preprocessed as '{}' its answers "
      "tell "
      "{:.1f} times as much about the images as now ({}; {:.0f} % sure of its answers instead of {:.0f} %)",
      best.preset, best.information / std::max(verdict.given.information, 0.01), preset_name(given),
      100 * best.confidence, 100 * verdict.given.confidence);
  return verdict;
}

}  // namespace limber
