#include "adapt/methods/alignment.h"

#include <algorithm>
#include <cmath>

namespace limber::adapt {
namespace {

WindowRecipe alignment_recipe(const SourceFeatures& source, const AlignmentOptions& o) {
  return {
      .method = "align",
      .loss = {.kind = o.loss, .bandwidth = source.bandwidth(), .source_rows = source.rows.shape().dim(0)},
      .optimizer = {.momentum = o.momentum, .decay = o.decay},
      .steps = o.steps,
      .rate = [rate = o.rate](int) { return rate; }};
}

void put(const std::vector<double>& values, Tensor tensor) {
  std::transform(values.begin(), values.end(), tensor.data<float>().begin(),
                 [](double x) { return static_cast<float>(x); });
}

}  // namespace

std::vector<double> SourceFeatures::mean() const {
  const auto count = static_cast<size_t>(rows.shape().dim(0)),
             width = static_cast<size_t>(rows.shape().dim(1));
  std::vector<double> sums(width, 0);
  for (size_t i = 0; i < count * width; ++i) sums[i % width] += rows.data<float>()[i];
  for (double& x : sums) x /= static_cast<double>(count);
  return sums;
}

std::vector<double> SourceFeatures::deviation() const {
  const auto count = static_cast<size_t>(rows.shape().dim(0)),
             width = static_cast<size_t>(rows.shape().dim(1));
  const std::vector<double> middle = mean();
  std::vector<double> squares(width, 0);
  for (size_t i = 0; i < count * width; ++i)
    squares[i % width] += std::pow(rows.data<float>()[i] - middle[i % width], 2);
  for (double& x : squares) x = std::sqrt(x / static_cast<double>(count) + kMomentsEpsilon);
  return squares;
}

std::vector<double> SourceFeatures::covariance() const {
  const auto count = static_cast<size_t>(rows.shape().dim(0)),
             width = static_cast<size_t>(rows.shape().dim(1));
  const std::vector<double> middle = mean();
  std::vector<double> products(width * width, 0);
  for (size_t r = 0; r < count; ++r) {
    const auto row = rows.data<float>().subspan(r * width, width);
    for (size_t i = 0; i < width; ++i) {
      for (size_t j = 0; j < width; ++j)
        products[i * width + j] += (row[i] - middle[i]) * (row[j] - middle[j]);
    }
  }
  for (double& x : products) x /= static_cast<double>(std::max<size_t>(1, count - 1));
  return products;
}

// The sum over pairs from the squared lengths, without going through the pairs.
double SourceFeatures::bandwidth() const {
  const auto count = static_cast<double>(rows.shape().dim(0));
  if (count < 2) return 1;
  double squares = 0, of_mean = 0;
  for (const float x : rows.data<float>()) squares += static_cast<double>(x) * x;
  for (const double x : mean()) of_mean += x * x;
  const double distance = 2 * (squares - count * of_mean) / (count - 1);
  return distance > 0 ? distance : 1;
}

Result<SourceFeatures> collect_source_features(const AdaptedModel& model, std::span<const Tensor> batches,
                                               int64_t limit) {
  LIMBER_ASSIGN(const auto reader, Reader::create(model));
  std::vector<float> values;
  int64_t count = 0, width = 0;
  for (const Tensor& images : batches) {
    if (count >= limit) break;
    LIMBER_TRY(check_images(model.graph, images));
    LIMBER_ASSIGN(const Reading reading, reader->read(images));
    width = reading.features.shape().dim(1);
    const int64_t taken = std::min(limit - count, reading.features.shape().dim(0));
    const auto some = reading.features.data<float>().first(static_cast<size_t>(taken * width));
    values.insert(values.end(), some.begin(), some.end());
    count += taken;
  }
  if (count == 0) return invalid("there are no images of the source to align with");
  return SourceFeatures{Tensor::from<float>(values, {count, width})};
}

Alignment::Alignment(const AdaptedModel& model, SourceFeatures source, const AlignmentOptions& options)
    : model_(model),
      source_(std::move(source)),
      options_(options),
      training_(model, alignment_recipe(source_, options)) {}

Result<std::unique_ptr<Strategy>> Alignment::create(const AdaptedModel& model, SourceFeatures source,
                                                    const AlignmentOptions& options) {
  if (options.loss < LossKind::kMoments) {
    return invalid("'{}' does not compare features; expected moments, covariance or kernel",
                   loss_name(options.loss));
  }
  if (options.steps < 1) return invalid("'align' trains for {} steps, expected 1 or more", options.steps);
  LIMBER_ASSIGN(const auto reader, Reader::create(model));
  if (source.rows.shape().dim(1) != reader->features()) {
    return invalid(
        "features of the source have {} numbers, the classifier reads {}; collect them of this model",
        source.rows.shape().dim(1), reader->features());
  }
  std::unique_ptr<Alignment> made(new Alignment(model, std::move(source), options));
  LIMBER_ASSIGN(made->targets_, TargetChooser::create(model, made->training_, options.filter_share));
  return std::unique_ptr<Strategy>(std::move(made));
}

Result<bool> Alignment::adapt(const Tensor& images) {
  LIMBER_TRY(check_images(model_.graph, images));
  LIMBER_ASSIGN(const WindowTargets chosen, targets_.choose(images));
  LIMBER_TRY(training_.run(images, chosen, [this](TrainingSession& session, int step) {
    if (step == 0) fill_source(session);
    return Status();
  }));
  forget_optimizer(*model_.weights);
  return true;
}

void Alignment::fill_source(TrainingSession& session) const {
  if (Tensor to = session.named_input("source_mean"); to.valid()) put(source_.mean(), to);
  if (Tensor to = session.named_input("source_deviation"); to.valid()) put(source_.deviation(), to);
  if (Tensor to = session.named_input("source_covariance"); to.valid()) put(source_.covariance(), to);
  if (Tensor to = session.named_input("source_features"); to.valid())
    std::copy(source_.rows.data<float>().begin(), source_.rows.data<float>().end(), to.data<float>().begin());
}

Status Alignment::reset() {
  forget_optimizer(*model_.weights);
  return {};
}

}  // namespace limber::adapt
