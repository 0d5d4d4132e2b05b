// A model that can change its shape: blocks with alternatives, and exits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/parameters.h"

namespace limber {

// One way to compute what one block, or a few consecutive ones, compute.
struct Alternative {
  std::string name;  // what it is: "original", "shrink50", "low_rank25" ...; unique in its block
  int span = 1;      // how many consecutive blocks it stands for, its own included
  Graph graph;       // one input, one output: of the types of its first block's input, its last one's output
  // How far its output is from that of what it stands for: mean square of the difference by the variance.
  double error = 0;
};

// What lies between two cut points of the model.
struct Block {
  std::string name;                       // of the value it ends with
  std::vector<Alternative> alternatives;  // the original is the first
};

// A classifier on what the first few blocks give.
struct Exit {
  std::string name;
  int after = 0;  // so many blocks run before it
  Graph graph;    // from the output of the last of them to the model's output
};

// Parameters of all graphs are in `params`, shared by name: the originals under the model's names, those of an
// alternative under a prefix of its own. Graphs have a symbolic batch where the model has one.
struct ElasticModel {
  Graph base;  // the model it was made from
  std::vector<Block> blocks;
  std::vector<Exit> exits;
  std::shared_ptr<Parameters> params;
};

// What is there of each block, and where it ends. Search, serving, scheduling, porting speak in variants.
struct Variant {
  static constexpr int kCovered = -1;  // by an alternative of an earlier block that spans several

  std::vector<int> choices;  // by block: which alternative
  int exit = -1;             // which exit ends it, always; -1: none, the last block does
  // Above 0: an input leaves at the first exit whose greatest probability is at least this.
  double confidence = 0;

  bool operator==(const Variant&) const = default;
};

Variant original_variant(const ElasticModel& model);
// kInvalidArgument naming the block when a choice is not there, or a block is covered by none or by two.
Status check_variant(const ElasticModel& model, const Variant& variant);

// The variant as a graph, without confidence. The original variant is the base: equal hash, so equal bits.
Result<Graph> materialize(const ElasticModel& model, const Variant& variant);

// "0.2.1.-.0", with "@1" for an exit and "?0.9" for a confidence behind it. parse(print) is the same variant.
std::string print(const Variant& variant);
Result<Variant> parse_variant(std::string_view text);

}  // namespace limber
