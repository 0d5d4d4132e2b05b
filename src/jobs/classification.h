// Which classes a classifier takes for which, and how far its confidence can be trusted.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace limber {

struct ClassCount {
  int64_t images = 0;   // of this class
  int64_t right = 0;    // of these
  int64_t claimed = 0;  // images that the model took for this class, rightly or not

  double recall() const { return images > 0 ? static_cast<double>(right) / static_cast<double>(images) : 0; }
  double precision() const {
    return claimed > 0 ? static_cast<double>(right) / static_cast<double>(claimed) : 0;
  }
};

struct Mistake {
  uint32_t sample = 0;  // index in the data
  std::string name;     // of the image
  int64_t label = 0, claimed = 0;
  double confidence = 0;  // in the wrong class, 0..1
};

// Images by what the model said its confidence was.
struct ConfidenceBin {
  int64_t images = 0, right = 0;
  double confidence = 0;  // sum over the images
};
inline constexpr size_t kConfidenceBins = 10;  // 0..10 %, 10..20 % and so on

struct Confusion {
  int64_t label = 0, claimed = 0, images = 0;
};

struct Classification {
  std::vector<std::string> names;  // of the model's classes
  std::vector<ClassCount> classes;
  std::vector<Confusion> confusions;  // pairs that happened, mistaken or not, by label and claimed
  std::vector<Mistake> worst;         // the most confident first
  std::array<ConfidenceBin, kConfidenceBins> bins;

  // Expected calibration error: how far confidence is from accuracy, a mean over the images.
  double calibration_error() const;
  // Mistaken pairs, the most frequent first.
  std::vector<Confusion> most_confused(size_t count) const;
};

// Fed image by image.
class ClassificationSums {
 public:
  ClassificationSums(std::vector<std::string> names, size_t classes, size_t worst);
  void add(uint32_t sample, int64_t label, std::span<const float> logits);
  Classification take() &&;

 private:
  Classification sums_;
  std::vector<std::vector<int64_t>> matrix_;  // by label, then claimed; rows are empty until they are used
  size_t worst_;
};

// Softmax of a row's largest, and which that is: of equal ones the first.
struct Claim {
  int64_t index = 0;
  double confidence = 0;
};
Claim claim_of(std::span<const float> logits);

}  // namespace limber
