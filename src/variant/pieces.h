// A variant as the graphs that run one after the other.
#pragma once

#include <vector>

#include "variant/elastic_model.h"

namespace limber {

struct VariantPiece {
  static constexpr int kExit = -1;

  int block = 0;                 // where it starts; kExit: it is an exit
  int choice = 0;                // which alternative of the block, or which exit
  const Graph* graph = nullptr;  // the model's

  bool same_as(const VariantPiece& other) const { return block == other.block && choice == other.choice; }
};

// In the order they run; an exit is the last. Confidence is not looked at.
// kInvalidArgument naming the block when the model has no such variant.
Result<std::vector<VariantPiece>> pieces_of(const ElasticModel& model, const Variant& variant);

// "block 3 'layer1.2' low_rank25", for messages.
std::string describe(const ElasticModel& model, const VariantPiece& piece);

}  // namespace limber
