#include "variant/elastic_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "ops/op_def.h"
#include "passes/splice.h"

namespace limber {
namespace {

int num_blocks(const ElasticModel& model) { return static_cast<int>(model.blocks.size()); }
const Block& block_at(const ElasticModel& model, int b) { return model.blocks[static_cast<size_t>(b)]; }
const Exit& exit_at(const ElasticModel& model, int e) { return model.exits[static_cast<size_t>(e)]; }
int choice_at(const Variant& variant, int b) { return variant.choices[static_cast<size_t>(b)]; }

// REQUIRES: a valid choice that is not kCovered
const Alternative& chosen(const ElasticModel& model, const Variant& variant, int b) {
  return block_at(model, b).alternatives[static_cast<size_t>(choice_at(variant, b))];
}

// How many blocks run.
int end_of(const ElasticModel& model, const Variant& variant) {
  return variant.exit < 0 ? num_blocks(model) : exit_at(model, variant.exit).after;
}

std::string label(const ElasticModel& model, int b) {
  return fmt::format("block {} '{}'", b, block_at(model, b).name);
}

bool is_stored(const Value& value) { return value.role == Role::kParameter || value.role == Role::kState; }

// --- checks ---------------------------------------------------------------------------------------------

Status check_choice(const ElasticModel& model, const Variant& variant, int b) {
  const int choice = choice_at(variant, b);
  const auto& alternatives = block_at(model, b).alternatives;
  if (choice == Variant::kCovered) {
    return invalid("{} is covered by no alternative before it; choose one of its {}", label(model, b),
                   alternatives.size());
  }
  if (choice < 0 || static_cast<size_t>(choice) >= alternatives.size())
    return invalid("{} has {} alternatives, there is no {}", label(model, b), alternatives.size(), choice);
  const Alternative& alternative = chosen(model, variant, b);
  if (alternative.span < 1 || alternative.span > num_blocks(model) - b) {
    return invalid("{}: alternative '{}' spans {} blocks, {} are left", label(model, b), alternative.name,
                   alternative.span, num_blocks(model) - b);
  }
  for (int k = b + 1; k < b + alternative.span; ++k) {
    if (choice_at(variant, k) == Variant::kCovered) continue;
    return invalid("{} is covered by alternative '{}' of {}, yet its choice is {}, expected none",
                   label(model, k), alternative.name, label(model, b), choice_at(variant, k));
  }
  const int end = end_of(model, variant);
  if (b < end && b + alternative.span > end) {
    return invalid("exit {} '{}' comes after {} blocks, inside alternative '{}' of {}", variant.exit,
                   exit_at(model, variant.exit).name, end, alternative.name, label(model, b));
  }
  return {};
}

Status check_ending(const ElasticModel& model, const Variant& variant) {
  if (variant.exit < -1 || variant.exit >= static_cast<int>(model.exits.size()))
    return invalid("there is no exit {}; the model has {}", variant.exit, model.exits.size());
  if (variant.exit >= 0) {
    const int after = exit_at(model, variant.exit).after;
    if (after < 0 || after >= num_blocks(model))
      return invalid("exit {} comes after {} blocks of {}", variant.exit, after, num_blocks(model));
  }
  if (!(variant.confidence >= 0 && variant.confidence <= 1))
    return invalid("confidence {} is not in 0..1", variant.confidence);
  if (variant.confidence > 0 && model.exits.empty())
    return invalid("confidence {}, but the model has no exits", variant.confidence);
  return {};
}

// What a graph of the model must read and give; nullptr: anything.
Status check_graph(const ElasticModel& model, const Graph& graph, const TensorType* from,
                   const TensorType* to) {
  LIMBER_TRY(verify(graph));
  if (graph.inputs().size() != 1 || graph.outputs().size() != 1) {
    return invalid("{} inputs and {} outputs, expected one of each", graph.inputs().size(),
                   graph.outputs().size());
  }
  const Output& output = graph.outputs()[0];
  if (output.rows != kNoValue || output.into != kNoValue)
    return invalid("output '{}' is an update or has a row count, expected plain", output.name);
  const TensorType &in = graph.type(graph.inputs()[0]), &out = graph.type(output.value);
  if (from != nullptr && in != *from)
    return invalid("its input is {}, expected {}", in.to_string(), from->to_string());
  if (to != nullptr && out != *to)
    return invalid("its output is {}, expected {}", out.to_string(), to->to_string());
  for (const Value& value : graph.values()) {
    if (!is_stored(value)) continue;
    LIMBER_ASSIGN(const TensorType type, model.params->type(value.name));
    if (type != value.type) {
      return invalid("parameter '{}' is {}, the graph has {}", value.name, type.to_string(),
                     value.type.to_string());
    }
  }
  return {};
}

const TensorType& input_of(const Graph& graph) { return graph.type(graph.inputs()[0]); }
const TensorType& output_of(const Graph& graph) { return graph.type(graph.outputs()[0].value); }
// REQUIRES: the originals have been checked
const TensorType& type_before(const ElasticModel& model, int b) {
  return b == 0 ? input_of(model.base) : output_of(block_at(model, b - 1).alternatives[0].graph);
}

Status check_name(std::string_view what, const std::string& name, std::set<std::string>& names) {
  if (name.empty()) return invalid("{} has no name", what);
  if (!names.insert(name).second) return invalid("{} '{}' is there twice", what, name);
  return {};
}

// The originals are a chain from the base's input to its output.
Status check_originals(const ElasticModel& model) {
  std::set<std::string> names;
  for (int b = 0; b < num_blocks(model); ++b) {
    const Block& block = block_at(model, b);
    LIMBER_TRY(check_name("block", block.name, names));
    if (block.alternatives.empty() || block.alternatives[0].span != 1)
      return invalid("{}: its first alternative is not an original of span 1", label(model, b));
    const TensorType* to = b + 1 == num_blocks(model) ? &output_of(model.base) : nullptr;
    LIMBER_TRY(
        check_graph(model, block.alternatives[0].graph, &type_before(model, b), to).in(label(model, b)));
  }
  return {};
}

Status check_alternatives(const ElasticModel& model, int b) {
  std::set<std::string> names;
  for (const Alternative& alternative : block_at(model, b).alternatives) {
    LIMBER_TRY(check_name("alternative", alternative.name, names));
    const auto where = fmt::format("alternative '{}'", alternative.name);
    if (alternative.span < 1 || alternative.span > num_blocks(model) - b) {
      return invalid("{} spans {} blocks, {} are left", where, alternative.span, num_blocks(model) - b);
    }
    if (!(alternative.error >= 0)) return invalid("{} has error {}", where, alternative.error);
    LIMBER_TRY(check_graph(model, alternative.graph, &type_before(model, b),
                           &type_before(model, b + alternative.span))
                   .in(where));
  }
  return {};
}

Status check_exits(const ElasticModel& model) {
  std::set<std::string> names;
  for (const Exit& exit : model.exits) {
    LIMBER_TRY(check_name("exit", exit.name, names));
    const auto where = fmt::format("exit '{}'", exit.name);
    if (exit.after < 0 || exit.after >= num_blocks(model))
      return invalid("{} comes after {} blocks, expected 0..{}", where, exit.after, num_blocks(model) - 1);
    LIMBER_TRY(
        check_graph(model, exit.graph, &type_before(model, exit.after), &output_of(model.base)).in(where));
  }
  return {};
}

// --- graphs ---------------------------------------------------------------------------------------------

std::vector<const Graph*> chosen_graphs(const ElasticModel& model, const Variant& variant, int from, int to) {
  std::vector<const Graph*> graphs;
  for (int b = from; b < to; b += chosen(model, variant, b).span)
    graphs.push_back(&chosen(model, variant, b).graph);
  return graphs;
}

// Gives its input: puts name and input of the base before whatever block comes first.
Graph entrance(const Graph& base) {
  Graph graph;
  graph.name = base.name;
  const ValueId input = base.inputs()[0];
  graph.add_output(graph.add_input(base.value(input).name, base.type(input)), base.value(input).name);
  return graph;
}

Result<Graph> checked(Graph graph) {
#ifdef LIMBER_CHECKS
  LIMBER_TRY(verify(graph));
#endif
  return graph;
}

// Adds to `bytes` what is not in it yet.
void add_parameters(const Graph& graph, std::map<std::string, size_t>& bytes) {
  for (const Value& value : graph.values()) {
    if (is_stored(value)) bytes.emplace(value.name, value.type.bytes());
  }
}

Result<GraphCost> sum_costs(std::span<const Graph* const> graphs, int64_t batch) {
  GraphCost cost;
  std::map<std::string, size_t> bytes;
  for (const Graph* graph : graphs) {
    add_parameters(*graph, bytes);
    std::map<std::string, int64_t> dims;
    for (const std::string& symbol : symbols(*graph)) dims[symbol] = batch;
    LIMBER_ASSIGN(const Graph bound, limber::bind(*graph, dims));
    for (uint32_t n = 0; n < bound.num_nodes(); ++n) {
      cost.flops += node_flops(bound, NodeId{n});
      cost.moved_bytes += node_bytes(bound, NodeId{n});
    }
  }
  for (const auto& [name, size] : bytes) cost.parameter_bytes += size;
  return cost;
}

}  // namespace

Status check_elastic(const ElasticModel& model) {
  if (model.params == nullptr) return invalid("the model has no parameters");
  if (model.blocks.empty() || model.blocks.size() > kMaxBlocks)
    return invalid("{} blocks, expected 1..{}", model.blocks.size(), kMaxBlocks);
  LIMBER_TRY(check_graph(model, model.base, nullptr, nullptr).in("the base"));
  LIMBER_TRY(check_originals(model));
  for (int b = 0; b < num_blocks(model); ++b) LIMBER_TRY(check_alternatives(model, b).in(label(model, b)));
  return check_exits(model);
}

bool is_copy(const Alternative& alternative) {
  return alternative.name.starts_with(kCopyAlternative) || alternative.name == kTunedAlternative;
}

Variant original_variant(const ElasticModel& model) { return {std::vector<int>(model.blocks.size(), 0)}; }

Status check_variant(const ElasticModel& model, const Variant& variant) {
  if (variant.choices.size() != model.blocks.size())
    return invalid("{} choices for {} blocks; is it a variant of another model?", variant.choices.size(),
                   model.blocks.size());
  LIMBER_TRY(check_ending(model, variant));
  for (int b = 0; b < num_blocks(model); b += chosen(model, variant, b).span)
    LIMBER_TRY(check_choice(model, variant, b));
  return {};
}

Variant canonical(const ElasticModel& model, Variant variant) {
  std::fill(variant.choices.begin() + end_of(model, variant), variant.choices.end(), 0);
  return variant;
}

double count_variants(const ElasticModel& model) {
  std::vector<double> ways(model.blocks.size() + 1, 0);  // by number of blocks: to get so far
  ways[0] = 1;
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    for (const Alternative& alternative : model.blocks[b].alternatives)
      ways[b + static_cast<size_t>(alternative.span)] += ways[b];
  }
  double count = ways.back();
  for (const Exit& exit : model.exits) count += ways[static_cast<size_t>(exit.after)];
  return count;
}

Result<std::vector<const Graph*>> graphs_of(const ElasticModel& model, const Variant& variant) {
  LIMBER_TRY(check_variant(model, variant));
  auto graphs = chosen_graphs(model, variant, 0, end_of(model, variant));
  if (variant.exit >= 0) graphs.push_back(&exit_at(model, variant.exit).graph);
  return graphs;
}

Result<Graph> materialize(const ElasticModel& model, const Variant& variant) {
  LIMBER_ASSIGN(std::vector<const Graph*> graphs, graphs_of(model, variant));
  if (variant.exit < 0 && variant.choices == original_variant(model).choices) return model.base;
  const Graph first = entrance(model.base);
  graphs.insert(graphs.begin(), &first);
  LIMBER_ASSIGN(Graph graph, chain(graphs));
  graph.mutable_outputs()[0].name = model.base.outputs()[0].name;
  return checked(std::move(graph));
}

Result<Graph> materialize_blocks(const ElasticModel& model, const Variant& variant, int from, int to) {
  LIMBER_TRY(check_variant(model, variant));
  if (from < 0 || from >= to || to > num_blocks(model))
    return invalid("blocks {}..{} of {}, expected at least one", from, to, num_blocks(model));
  for (const int end : {from, to}) {
    if (end == num_blocks(model) || choice_at(variant, end) != Variant::kCovered) continue;
    return invalid("{} is covered by an alternative of an earlier block: nothing can start there",
                   label(model, end));
  }
  LIMBER_ASSIGN(Graph graph, chain(chosen_graphs(model, variant, from, to)));
  return checked(std::move(graph));
}

std::vector<std::string> parameters_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Value& value : graph.values()) {
    if (is_stored(value)) names.push_back(value.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<std::string>> parameters_of(const ElasticModel& model, const Variant& variant) {
  LIMBER_ASSIGN(const auto graphs, graphs_of(model, variant));
  std::set<std::string> names;
  for (const Graph* graph : graphs) {
    for (std::string& name : parameters_of(*graph)) names.insert(std::move(name));
  }
  return std::vector<std::string>(names.begin(), names.end());
}

Result<GraphCost> cost_of(const Graph& graph, int64_t batch) {
  const Graph* one = &graph;
  return sum_costs(std::span(&one, 1), batch);
}

Result<GraphCost> cost_of(const ElasticModel& model, const Variant& variant, int64_t batch) {
  LIMBER_ASSIGN(const auto graphs, graphs_of(model, variant));
  return sum_costs(graphs, batch);
}

}  // namespace limber
