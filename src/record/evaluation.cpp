#include "record/evaluation.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace limber {
namespace {

constexpr size_t kMostClasses = 100'000;             // several times as many as the largest sets have
constexpr size_t kLargestPicture = size_t{1} << 20;  // characters of base64: thumbnails have some thousands

// Goes into a page between quotes.
bool is_base64(std::string_view text) {
  return text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") ==
         std::string_view::npos;
}

bool is_share(double value) { return value >= 0 && value <= 1; }

std::string confusion_problem(const EvaluationRecord& record) {
  int64_t images = 0;
  std::set<std::pair<uint64_t, uint64_t>> pairs;
  for (const auto& cell : record.confusion) {
    if (cell.truth >= record.classes.size() || cell.predicted >= record.classes.size())
      return fmt::format("'confusion' names class {} of {}", std::max(cell.truth, cell.predicted),
                         record.classes.size());
    if (!pairs.emplace(cell.truth, cell.predicted).second) return "'confusion' has a pair twice";
    if (cell.count > record.images - images) return "'confusion' has more images than 'images'";
    images += cell.count;
  }
  return images == record.images ? "" : fmt::format("'confusion' has {} images of {}", images, record.images);
}

std::string bins_problem(const EvaluationRecord& record) {
  for (const auto& bin : record.bins) {
    const bool possible =
        bin.correct <= bin.images && bin.images <= record.images && bin.confidence >= 0 &&
        bin.confidence <= static_cast<double>(bin.images) * 1.001;  // a sum of floats rounds
    if (!possible) return "'bins' has one that cannot be";
  }
  return "";
}

}  // namespace

std::string EvaluationRecord::problem() const {
  if (classes.empty() || classes.size() > kMostClasses)
    return fmt::format("'classes' should be 1 to {} names", kMostClasses);
  if (correct_top5 > images) return "'correct_top5' is more than 'images'";
  for (const Mistake& mistake : worst) {
    if (mistake.truth >= classes.size() || mistake.predicted >= classes.size() ||
        !is_share(mistake.confidence))
      return "'worst' has one that cannot be";
    if (mistake.png.size() > kLargestPicture || !is_base64(mistake.png))
      return fmt::format("'worst' has a picture that is not base64 of at most {} characters",
                         kLargestPicture);
  }
  const std::string cells = confusion_problem(*this);
  return cells.empty() ? bins_problem(*this) : cells;
}

std::vector<EvaluationRecord::ClassCount> EvaluationRecord::by_class() const {
  std::vector<ClassCount> counts(classes.size());
  for (const Cell& cell : confusion) {
    counts[cell.truth].images += cell.count;
    counts[cell.predicted].predicted += cell.count;
    if (cell.truth == cell.predicted) counts[cell.truth].correct += cell.count;
  }
  return counts;
}

std::vector<EvaluationRecord::Cell> EvaluationRecord::mistaken() const {
  std::vector<Cell> cells;
  std::copy_if(confusion.begin(), confusion.end(), std::back_inserter(cells),
               [](const Cell& cell) { return cell.truth != cell.predicted && cell.count > 0; });
  std::stable_sort(cells.begin(), cells.end(),
                   [](const Cell& a, const Cell& b) { return a.count > b.count; });
  return cells;
}

int64_t EvaluationRecord::correct() const {
  int64_t correct = 0;
  for (const Cell& cell : confusion) correct += cell.truth == cell.predicted ? cell.count : 0;
  return correct;
}

double EvaluationRecord::calibration_error() const {
  double error = 0;
  int64_t count = 0;
  for (const Bin& bin : bins) {
    error += std::abs(bin.confidence - static_cast<double>(bin.correct));
    count += bin.images;
  }
  return count == 0 ? 0 : error / static_cast<double>(count);
}

}  // namespace limber
