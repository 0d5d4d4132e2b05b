// Variant tables, a model for them, and random records.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/random.h"
#include "ops/op_def.h"
#include "variant/variant_table.h"

namespace limber::test {

// Blocks with five alternatives each, and three exits. Its graphs are none that could run.
inline ElasticModel table_model(size_t blocks = 4) {
  ElasticModel model;
  model.params = std::make_shared<Parameters>();
  Graph graph;
  const ValueId x = graph.add_input("x", {DType::kF32, Shape{1, 4}});
  graph.add_output(*emit(graph, OpKind::kRelu, {x}), "y");
  model.base = graph;
  for (size_t b = 0; b < blocks; ++b) {
    Block& block = model.blocks.emplace_back(Block{fmt::format("/layer{}/Relu,{}", b, b % 3), {}});
    for (const char* name : {"original", "shrink50", "skip", "low_rank25", "copy1"})
      block.alternatives.push_back({name, 1, graph, 0});
  }
  for (size_t e = 0; e < 3; ++e)
    model.exits.push_back({fmt::format("exit {}", e), static_cast<int>(std::min(e, blocks - 1)), graph});
  return model;
}

inline std::unique_ptr<VariantTable> open_table(const std::string& path,
                                                const ElasticModel& model = table_model()) {
  auto table = VariantTable::open(path, model);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return table.ok() ? *std::move(table) : nullptr;
}

// Numbers from few, so that many are equal; of the table's model, with so many blocks changed at most.
inline VariantRecord random_record(Random& random, const ElasticModel& model = table_model(),
                                   uint64_t changes = 4) {
  VariantRecord r;
  r.images = random.below(3) == 0 ? 100 : 2000;
  r.group = {random.below(3) == 0 ? "cpu/4 threads" : "cpu/1 thread", fmt::format("{} images", r.images)};
  r.variant = original_variant(model);
  for (uint64_t i = 0; i < changes; ++i)
    r.variant.choices[random.below(model.blocks.size())] = static_cast<int>(random.below(5));
  if (random.below(4) == 0) r.variant.exit = static_cast<int>(random.below(3));
  if (random.below(4) == 0) r.variant.confidence = 0.25 * static_cast<double>(1 + random.below(4));
  r.variant = canonical(model, r.variant);
  r.predicted_s = 0.001 * static_cast<double>(1 + random.below(40));
  if (random.below(2) == 0) r.measured_s = 0.001 * static_cast<double>(1 + random.below(40));
  r.accuracy = 0.01 * static_cast<double>(random.below(101));
  r.memory_bytes = 1000 * random.below(50);
  r.parameter_bytes = random.below(1 << 30);
  r.flops = 1e6 * static_cast<double>(random.below(50));
  if (random.below(3) == 0) r.energy_j = random.uniform();
  return r;
}

}  // namespace limber::test
