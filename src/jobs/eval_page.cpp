#include "jobs/eval_page.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "report/evaluation_page.h"
#include "report/markup.h"

namespace limber {
namespace {

constexpr int64_t kThumbnailSide = 128;  // pixels; some 20 kB each, and a page shows two dozen

Result<Tensor> in_colour(const Tensor& image) {
  if (image.shape().dim(2) == 3) return image;
  LIMBER_ASSIGN(Tensor out,
                Tensor::allocate({DType::kU8, Shape{image.shape().dim(0), image.shape().dim(1), 3}}));
  const auto from = image.data<uint8_t>();
  const auto to = out.data<uint8_t>();
  for (size_t i = 0; i < to.size(); ++i) to[i] = from[i / 3];
  return out;
}

Result<std::string> thumbnail(const Tensor& image) {
  const int64_t height = image.shape().dim(0), width = image.shape().dim(1), side = std::max(height, width);
  LIMBER_ASSIGN(Tensor small, in_colour(image));
  if (side > kThumbnailSide) {
    const auto shrunk = [&](int64_t length) {
      return static_cast<int>(std::max<int64_t>(1, length * kThumbnailSide / side));
    };
    LIMBER_ASSIGN(small, resize(small, shrunk(height), shrunk(width)));
  }
  LIMBER_ASSIGN(const std::string png, encode_png(small));
  return base64(png);
}

}  // namespace

EvaluationRecord record_of(const EvalJobOptions& options, const EvalResult& result) {
  const Classification& found = result.classes;
  EvaluationRecord record{.model = options.model, .data = options.data};
  record.which = options.split == Split::kTest ? "test" : "training";
  record.loss = result.evaluation.loss;
  record.seconds = result.evaluation.seconds;
  record.classes = found.names;
  for (const Confusion& pair : found.confusions) {
    record.confusion.push_back(
        {static_cast<uint64_t>(pair.label), static_cast<uint64_t>(pair.claimed), pair.images});
    record.images += pair.images;
  }
  const double top5 = std::round(result.evaluation.top5 * static_cast<double>(record.images));
  record.correct_top5 = std::min(record.images, static_cast<int64_t>(top5));
  for (const ConfidenceBin& bin : found.bins) record.bins.push_back({bin.images, bin.right, bin.confidence});
  for (const Mistake& mistake : found.worst) {
    record.worst.push_back({mistake.name, static_cast<uint64_t>(mistake.label),
                            static_cast<uint64_t>(mistake.claimed), std::clamp(mistake.confidence, 0.0, 1.0),
                            ""});
  }
  LIMBER_ASSERT(record.problem().empty());
  return record;
}

Status write_eval_page(const EvalJobOptions& options, const EvalResult& result, const std::string& path) {
  EvaluationRecord record = record_of(options, result);
  LIMBER_ASSIGN(const auto data, open_dataset(options.data, {.split = options.split}));
  for (size_t i = 0; i < record.worst.size(); ++i) {
    const size_t sample = result.classes.worst[i].sample;
    if (sample >= data->size() || data->name(sample) != record.worst[i].image) continue;  // data have changed
    const auto read = data->get(sample);
    if (!read.ok()) continue;
    if (auto png = thumbnail(read->image); png.ok()) record.worst[i].png = *std::move(png);
  }
  return os_files().write(path, evaluation_page(record));
}

}  // namespace limber
