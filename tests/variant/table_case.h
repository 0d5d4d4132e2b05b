// Variant tables and random records for them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/random.h"
#include "variant/variant_table.h"

namespace limber::test {

inline std::unique_ptr<VariantTable> open_table(const std::string& path) {
  auto table = VariantTable::open(path);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return table.ok() ? *std::move(table) : nullptr;
}

// Values from few, so that many are equal.
inline VariantRecord random_record(Random& random, size_t blocks = 4) {
  VariantRecord r;
  r.context = random.below(3) == 0 ? "cpu/4 threads" : "cpu/1 thread";
  for (size_t b = 0; b < blocks; ++b) r.variant.choices.push_back(static_cast<int>(random.below(5)) - 1);
  if (random.below(4) == 0) r.variant.exit = static_cast<int>(random.below(3));
  if (random.below(4) == 0) r.variant.confidence = 0.25 * static_cast<double>(1 + random.below(4));
  r.predicted_s = 0.001 * static_cast<double>(1 + random.below(40));
  if (random.below(2) == 0) r.measured_s = 0.001 * static_cast<double>(1 + random.below(40));
  r.accuracy = 0.01 * static_cast<double>(random.below(101));
  r.images = static_cast<int64_t>(random.below(10000));
  r.memory_bytes = 1000 * random.below(50);
  r.parameter_bytes = random.below(1 << 30);
  r.flops = 1e6 * static_cast<double>(random.below(50));
  if (random.below(3) == 0) r.energy_j = random.uniform();
  return r;
}

}  // namespace limber::test
