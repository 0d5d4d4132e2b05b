#include "jobs/eval_page.h"

#include <algorithm>

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

Status write_eval_page(const EvalResult& result, const std::string& path) {
  EvaluationRecord record = result.record;
  for (size_t i = 0; i < record.worst.size(); ++i) {
    const auto read = result.judged.data->get(result.worst[i]);
    if (!read.ok()) continue;
    if (auto png = thumbnail(read->image); png.ok()) record.worst[i].png = *std::move(png);
  }
  return os_files().write(path, evaluation_page(record));
}

}  // namespace limber
