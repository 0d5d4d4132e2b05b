// Which classes a classifier takes for which, and how far its confidence can be trusted: counted image by
// image.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "record/evaluation.h"

namespace limber {

class ClassificationSums {
 public:
  // `names` of the model's classes, as far as they are known; so many mistakes are kept, the most confident.
  ClassificationSums(std::vector<std::string> names, size_t classes, size_t worst);
  void add(uint32_t sample, int64_t label, std::span<const float> logits);

  struct Found {
    EvaluationRecord record;  // classes, images, confusion, bins of a tenth, mistakes without their images
    std::vector<uint32_t> worst;  // whose mistakes these are, by index in the data
  };
  Found take() &&;

 private:
  struct Mistake {
    uint32_t sample = 0;
    EvaluationRecord::Mistake what;
  };

  EvaluationRecord record_;
  std::vector<Mistake> worst_;
  std::vector<std::vector<int64_t>> matrix_;  // by label, then claimed; rows are empty until they are used
  const size_t most_;
};

// Softmax of a row's largest, and which that is: of equal ones the first.
struct Claim {
  int64_t index = 0;
  double confidence = 0;
};
Claim claim_of(std::span<const float> logits);

}  // namespace limber
