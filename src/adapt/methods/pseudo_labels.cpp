#include "adapt/methods/pseudo_labels.h"

#include <algorithm>
#include <cmath>

#include "adapt/methods/reader.h"

namespace limber::adapt {
namespace {

using Rows = std::vector<std::vector<double>>;

double length_of(const std::vector<double>& v) {
  double square = 0;
  for (const double x : v) square += x * x;
  return std::sqrt(square);
}

// With a 1 behind, at length 1.
Rows directions_of(const Tensor& features) {
  const auto rows = static_cast<size_t>(features.shape().dim(0));
  const size_t width = features.data<float>().size() / rows;
  Rows directions;
  for (size_t r = 0; r < rows; ++r) {
    const auto row = features.data<float>().subspan(r * width, width);
    std::vector<double>& v = directions.emplace_back(row.begin(), row.end());
    v.push_back(1);
    const double length = length_of(v);
    for (double& x : v) x /= length;
  }
  return directions;
}

// By class, the direction of the mean of `rows` weighted by `shares` [n][classes]; empty where nobody is.
Rows centroids_of(const Rows& rows, const Rows& shares) {
  Rows centroids(shares[0].size());
  for (size_t c = 0; c < centroids.size(); ++c) {
    std::vector<double> sum(rows[0].size(), 0);
    for (size_t r = 0; r < rows.size(); ++r) {
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += shares[r][c] * rows[r][i];
    }
    const double length = length_of(sum);
    if (length == 0) continue;
    for (double& x : sum) x /= length;
    centroids[c] = std::move(sum);
  }
  return centroids;
}

int64_t nearest(const std::vector<double>& row, const Rows& centroids, const std::vector<bool>& allowed) {
  int64_t best = -1;
  double closest = 0;
  for (size_t c = 0; c < centroids.size(); ++c) {
    if (!allowed[c] || centroids[c].empty()) continue;
    double cosine = 0;
    for (size_t i = 0; i < row.size(); ++i) cosine += row[i] * centroids[c][i];
    if (best >= 0 && cosine <= closest) continue;
    best = static_cast<int64_t>(c);
    closest = cosine;
  }
  return best;
}

}  // namespace

std::vector<int64_t> pseudo_labels(const Tensor& logits, const Tensor& features) {
  Rows shares = probabilities_of(logits);
  const Rows rows = directions_of(features);
  std::vector<bool> predicted(shares[0].size(), false);
  for (const auto& p : shares)
    predicted[static_cast<size_t>(std::max_element(p.begin(), p.end()) - p.begin())] = true;
  std::vector<int64_t> labels(rows.size());
  for (int round = 0; round < 2; ++round) {
    const Rows centroids = centroids_of(rows, shares);
    for (size_t r = 0; r < rows.size(); ++r) {
      labels[r] = nearest(rows[r], centroids, predicted);
      std::fill(shares[r].begin(), shares[r].end(), 0.0);
      shares[r][static_cast<size_t>(labels[r])] = 1;
    }
  }
  return labels;
}

}  // namespace limber::adapt
