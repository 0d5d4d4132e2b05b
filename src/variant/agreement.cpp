#include "variant/agreement.h"

#include <algorithm>

#include "variant/rows.h"

namespace limber {
namespace {

// The best class of a place, `step` elements from one class to the next. Of equal ones the first.
size_t best_class(std::span<const float> row, size_t place, size_t step) {
  size_t best = place;
  for (size_t at = place; at < row.size(); at += step) {
    if (row[at] > row[best]) best = at;
  }
  return best;
}

}  // namespace

Agreement::Agreement(Answers answers, std::vector<int64_t> sizes)
    : answers_(answers), sizes_(std::move(sizes)), sums_(sizes_.size()) {}

void Agreement::add(const Tensor& answer, const Tensor& original, int64_t rows) {
  LIMBER_ASSERT(answer.type() == original.type());
  answers_ == Answers::kValues ? add_values(answer, original, rows) : add_classes(answer, original, rows);
}

void Agreement::add_classes(const Tensor& answer, const Tensor& original, int64_t rows) {
  const auto classes = static_cast<size_t>(answer.shape().dim(1));
  for (size_t i = 0; i < static_cast<size_t>(rows); ++i) {
    const auto got = row_of(answer, i), want = row_of(original, i);
    const size_t places = want.size() / classes;
    for (size_t p = 0; p < places; ++p) equal_ += best_class(got, p, places) == best_class(want, p, places);
    places_ += static_cast<int64_t>(places);
  }
}

void Agreement::add_values(const Tensor& answer, const Tensor& original, int64_t rows) {
  for (size_t i = 0; i < static_cast<size_t>(rows); ++i) {
    const auto got = row_of(answer, i), want = row_of(original, i);
    size_t at = 0;
    for (size_t o = 0; o < sizes_.size(); ++o) {
      for (const size_t end = at + static_cast<size_t>(sizes_[o]); at < end; ++at) {
        const double w = want[at], d = got[at] - w;
        sums_[o].differences += d * d;
        sums_[o].values += w;
        sums_[o].squares += w * w;
        sums_[o].count += 1;
      }
    }
  }
}

double Agreement::share() const {
  if (answers_ != Answers::kValues)
    return places_ > 0 ? static_cast<double>(equal_) / static_cast<double>(places_) : 0;
  double sum = 0;
  for (const Sums& one : sums_) {
    const double spread = one.squares - one.values * one.values / std::max(one.count, 1.0);
    if (one.differences <= 0 && one.count > 0) {
      sum += 1;
    } else if (spread > 0) {
      sum += std::max(0.0, 1 - one.differences / spread);  // 0 for what is not a number, too
    }
  }
  return sums_.empty() ? 0 : sum / static_cast<double>(sums_.size());
}

}  // namespace limber
