#include "sched/study.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace limber::sched {
namespace {

constexpr double kNearby = 0.05;      // square of the distance within which all domains count alike
constexpr double kFlat = 1;           // how much a slope has to explain: ridge
constexpr size_t kMostFeatures = 16;  // beyond, there are too few domains for slopes

using Matrix = std::vector<std::vector<double>>;

// Gauss; `rows` is symmetric, positive, and has the right side behind.
std::vector<double> solve(Matrix rows) {
  const size_t n = rows.size();
  for (size_t i = 0; i < n; ++i)
    for (size_t r = i + 1; r < n; ++r) {
      const double factor = rows[r][i] / rows[i][i];
      for (size_t c = i; c <= n; ++c) rows[r][c] -= factor * rows[i][c];
    }
  std::vector<double> x(n);
  for (size_t i = n; i-- > 0;) {
    x[i] = rows[i][n];
    for (size_t c = i + 1; c < n; ++c) x[i] -= rows[i][c] * x[c];
    x[i] /= rows[i][i];
  }
  return x;
}

class Plane {
 public:
  Plane(const ApplicationProfile& profile, size_t domain) : here_(profile.domains[domain]) {
    for (const DomainProfile& other : profile.domains) {
      if (&other == &here_ && profile.domains.size() > 1) continue;
      const double far = distance(here_, other);
      others_.push_back({&other, 1 / (kNearby + far * far)});
      sum_ += others_.back().second;
    }
  }

  template <typename Of>
  double at(Of of) const {
    const double mean = mean_of(of);
    const size_t n = here_.features.size();
    if (n == 0 || n > kMostFeatures) return mean;
    std::vector<double> middle(n);
    for (size_t j = 0; j < n; ++j)
      middle[j] = mean_of([&](const DomainProfile& other) { return other.features[j]; });
    Matrix rows(n, std::vector<double>(n + 1));
    for (size_t j = 0; j < n; ++j) {
      const auto off = [&](const DomainProfile& other, size_t k) { return other.features[k] - middle[k]; };
      for (size_t k = 0; k < n; ++k)
        rows[j][k] = mean_of([&](const DomainProfile& other) { return off(other, j) * off(other, k); });
      rows[j][j] += kFlat;
      rows[j][n] = mean_of([&](const DomainProfile& other) { return off(other, j) * (of(other) - mean); });
    }
    const std::vector<double> slopes = solve(std::move(rows));
    double value = mean;
    for (size_t j = 0; j < n; ++j) value += slopes[j] * (here_.features[j] - middle[j]);
    return std::clamp(value, 0.0, 1.0);
  }

 private:
  template <typename Of>
  double mean_of(Of of) const {
    double total = 0;
    for (const auto& [other, weight] : others_) total += weight * of(*other);
    return total / sum_;
  }

  const DomainProfile& here_;
  std::vector<std::pair<const DomainProfile*, double>> others_;
  double sum_ = 0;
};

}  // namespace

Expected study_elsewhere(const ApplicationProfile& profile, size_t domain, size_t option) {
  const Plane plane(profile, domain);
  return {plane.at([&](const DomainProfile& other) { return other.before[option]; }),
          plane.at([&](const DomainProfile& other) { return other.after[option]; })};
}

}  // namespace limber::sched
