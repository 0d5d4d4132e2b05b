// A model that can change its shape: blocks with alternatives, and exits.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
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

// Alternatives that are an original with parameters of its own: "copy1", "copy2" .. of one block, for parts
// of the tuned variants; "tuned" of the blocks before an exit. They go with what they were trained with.
inline constexpr std::string_view kCopyAlternative = "copy", kTunedAlternative = "tuned";
bool is_copy(const Alternative& alternative);

// What lies between two cut points of the model.
struct Block {
  std::string name;                       // of the value it ends with
  std::vector<Alternative> alternatives;  // the original, of span 1, is the first
};

// A classifier on what the first few blocks give.
struct Exit {
  std::string name;
  int after = 0;  // so many blocks run before it; fewer than all
  Graph graph;    // from the output of the last of them to the model's output
};

// Parameters of all graphs are in `params`, shared by name: the originals under the model's names, those of
// an alternative under a prefix of its own. Graphs have a symbolic batch where the model has one.
struct ElasticModel {
  Graph base;  // the model it was made from: one input, one output
  std::vector<Block> blocks;
  std::vector<Exit> exits;
  std::shared_ptr<Parameters> params;
};

// All of the above that can be checked: graphs verify, types fit, names are unique, parameters are there.
// kInvalidArgument naming the graph and what is wrong with it.
Status check_elastic(const ElasticModel& model);

// What is there of each block, and where it ends. Search, serving, scheduling, porting speak in variants.
// Positions are for speed and hold for one model as it is: stored and shown are names, see print().
struct Variant {
  static constexpr int kCovered = -1;  // by an alternative of an earlier block that spans several

  std::vector<int> choices;  // by block: which alternative
  int exit = -1;             // which exit ends it, always; -1: none, the last block does
  // Above 0: an input leaves at the first exit whose greatest probability is at least this.
  double confidence = 0;

  bool operator==(const Variant&) const = default;
};

Variant original_variant(const ElasticModel& model);
// kInvalidArgument naming the block when a choice is not there, when a block is covered by none or by two,
// or when the exit lies inside an alternative that spans it. Blocks behind the exit have choices too.
Status check_variant(const ElasticModel& model, const Variant& variant);
// The same with the originals behind the exit, which do not run: variants that compute the same are equal.
// REQUIRES: check_variant(model, variant)
Variant canonical(const ElasticModel& model, Variant variant);
// How many canonical variants there are, confidence aside. A double, as there may be 10^30.
double count_variants(const ElasticModel& model);

// The variant as a graph, without confidence: name, input and output are called as the base's. The original
// variant is the base: equal hash, so equal bits.
Result<Graph> materialize(const ElasticModel& model, const Variant& variant);
// Blocks [from, to) of it alone, exits aside. The input and the output are called as those of the graphs.
// kInvalidArgument when there are none, or an alternative in use lies across either end.
Result<Graph> materialize_blocks(const ElasticModel& model, const Variant& variant, int from, int to);
// The graphs that it is a chain of, the exit's last. They belong to the model.
Result<std::vector<const Graph*>> graphs_of(const ElasticModel& model, const Variant& variant);

// Parameters and states that a graph, or any graph of the variant, reads; sorted, each once.
std::vector<std::string> parameters_of(const Graph& graph);
Result<std::vector<std::string>> parameters_of(const ElasticModel& model, const Variant& variant);

struct GraphCost {
  size_t parameter_bytes = 0;  // states included; what two graphs share counts once
  double flops = 0;            // of one run; a multiply-add counts two
  double moved_bytes = 0;      // of one run: what nodes read and write, each value once a node
};
// Every symbolic dimension is `batch`. Costs of blocks add up to the variant's, but for shared parameters.
Result<GraphCost> cost_of(const Graph& graph, int64_t batch = 1);
Result<GraphCost> cost_of(const ElasticModel& model, const Variant& variant, int64_t batch = 1);

// "layer1.0=shrink50,layer2.1=skip", with "@EXIT" for an exit and "?0.9" for a confidence behind it: what is
// not the original, by names, since positions shift when alternatives come and go. This is what is stored and
// shown; parse(print) is the same variant. Characters of names that have a meaning here are written as %XX.
// Of a variant that the model does not have, for messages, what is known.
std::string print(const ElasticModel& model, const Variant& variant);
// Untrusted: at most kMaxVariantText characters. kInvalidArgument naming what the model does not have.
Result<Variant> parse_variant(const ElasticModel& model, std::string_view text);
// Bounds for files and requests that somebody made up: networks have some hundred blocks, each with a name of
// some ten characters in the text of a variant.
inline constexpr size_t kMaxBlocks = 4096, kMaxVariantText = size_t{1} << 20;

// As folders of format version 1 hold variants: "0.2.1.-.0@1?0.9". Nothing when the model has no such
// variant.
std::optional<Variant> parse_positions(const ElasticModel& model, std::string_view text);

}  // namespace limber
