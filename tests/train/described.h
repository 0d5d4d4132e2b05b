// Tensors as scripts that run PyTorch describe them: sum, norm and a few elements.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tensor/tensor.h"

namespace limber::test {

// Absolute: what is zero but for rounding, as the gradient of a key's bias.
inline constexpr double kZero = 1e-6;

inline nlohmann::json read_json(const std::string& path) {
  std::ifstream file(path);
  nlohmann::json stored = nlohmann::json::parse(file, nullptr, false);
  EXPECT_FALSE(stored.is_discarded()) << path;
  return stored;
}

// `stored` is what describe() in golden.py keeps of a tensor.
inline void expect_described(const Tensor& tensor, const nlohmann::json& stored, double tolerance,
                             const std::string& what) {
  const auto values = tensor.data<float>();
  double sum = 0, square = 0;
  for (const float x : values) sum += x, square += double{x} * x;
  const double norm = stored["norm"];
  const double slack = std::max(tolerance * norm, kZero);
  EXPECT_NEAR(std::sqrt(square), norm, slack) << what << ": norm";
  EXPECT_NEAR(sum, stored["sum"].get<double>(), slack * std::sqrt(static_cast<double>(values.size())))
      << what << ": sum";
  const auto& samples = stored["samples"];
  for (size_t i = 0; i < samples.size(); ++i) {
    const size_t place = i * (values.size() - 1) / (samples.size() - 1);
    EXPECT_NEAR(values[place], samples[i].get<double>(), slack) << what << ": element " << place;
  }
}

}  // namespace limber::test
