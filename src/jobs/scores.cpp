#include "jobs/scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/file.h"

namespace limber {
namespace {

constexpr size_t kMaxLabelBytes = size_t{16} << 20;  // read of a list of labels

// [N, classes] with any number of trailing ones.
bool is_class_scores(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (tensor.dtype() != DType::kF32 || shape.rank() < 2 || shape.dim(1) < 2) return false;
  for (int axis = 2; axis < shape.rank(); ++axis) {
    if (shape.dim(axis) != 1) return false;
  }
  return true;
}

bool is_distribution(std::span<const float> row) {
  double sum = 0;
  for (const float x : row) {
    if (!(x >= 0)) return false;
    sum += x;
  }
  return std::abs(sum - 1) < 1e-3;
}

}  // namespace

std::vector<ClassScore> top_of_row(std::span<const float> row, int k,
                                   const std::vector<std::string>& labels) {
  std::vector<int64_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::min<size_t>(static_cast<size_t>(k), row.size());
  const auto better = [&](int64_t a, int64_t b) {
    const float x = row[static_cast<size_t>(a)], y = row[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(count), order.end(), better);
  const bool distribution = is_distribution(row);
  const float largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x - largest));
  std::vector<ClassScore> top;
  for (size_t i = 0; i < count; ++i) {
    const auto index = static_cast<size_t>(order[i]);
    const double softmax = std::exp(static_cast<double>(row[index] - largest)) / sum;
    top.push_back({order[i], row[index], distribution ? row[index] : static_cast<float>(softmax),
                   index < labels.size() ? labels[index] : fmt::format("class {}", index)});
  }
  return top;
}

std::vector<std::vector<ClassScore>> top_classes(const std::vector<NamedTensor>& outputs, int k,
                                                 const std::vector<std::string>& labels) {
  const auto scores = std::find_if(outputs.begin(), outputs.end(),
                                   [](const NamedTensor& output) { return is_class_scores(output.tensor); });
  std::vector<std::vector<ClassScore>> rows;
  if (scores == outputs.end()) return rows;
  const auto classes = static_cast<size_t>(scores->tensor.shape().dim(1));
  const auto all = std::as_const(scores->tensor).data<float>();
  for (size_t at = 0; at < all.size(); at += classes)
    rows.push_back(top_of_row(all.subspan(at, classes), k, labels));
  return rows;
}

Result<std::vector<std::string>> read_labels(const std::string& path) {
  LIMBER_ASSIGN(const std::string text, os_files().read(path, kMaxLabelBytes));
  std::vector<std::string> labels;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    labels.push_back(std::move(line));
    at = end + 1;
  }
  return labels;
}

}  // namespace limber
