#include "variant/latency_table.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/median.h"
#include "base/random.h"
#include "passes/splice.h"
#include "variant/pieces.h"

namespace limber {
namespace {

// It takes what the original takes, and need not be timed.
bool like_original(const Alternative& alternative) { return is_copy(alternative) && alternative.span == 1; }

// How often each alternative, and each exit, is among the variants.
struct Coverage {
  explicit Coverage(const ElasticModel& model) : exits(model.exits.size(), 0) {
    for (const Block& block : model.blocks) {
      auto& counts = blocks.emplace_back();
      for (const Alternative& alternative : block.alternatives)
        counts.push_back(like_original(alternative) ? std::numeric_limits<int>::max() : 0);
    }
  }
  int least() const {
    int least = std::numeric_limits<int>::max();
    for (const auto& block : blocks) least = std::min(least, *std::min_element(block.begin(), block.end()));
    for (const int count : exits) least = std::min(least, count);
    return least;
  }
  void add(const VariantPiece& piece) {
    const auto choice = static_cast<size_t>(piece.choice);
    ++(piece.block == VariantPiece::kExit ? exits[choice] : blocks[static_cast<size_t>(piece.block)][choice]);
  }
  std::vector<std::vector<int>> blocks;
  std::vector<int> exits;
};

// From block to block the alternative that is there least often, any of them where several are, among those
// that end at block `end` or before it.
Variant least_seen(const ElasticModel& model, const Coverage& seen, size_t end, Random& random) {
  Variant variant = original_variant(model);
  for (size_t b = 0; b < end;) {
    const auto& alternatives = model.blocks[b].alternatives;
    std::vector<size_t> least;
    for (size_t c = 0; c < alternatives.size(); ++c) {
      if (b + static_cast<size_t>(alternatives[c].span) > end) continue;
      const int count = seen.blocks[b][c], before = least.empty() ? count : seen.blocks[b][least[0]];
      if (count < before) least.clear();
      if (count <= before) least.push_back(c);
    }
    const size_t chosen = least[random.below(least.size())];
    variant.choices[b] = static_cast<int>(chosen);
    const auto span = static_cast<size_t>(alternatives[chosen].span);
    std::fill_n(variant.choices.begin() + static_cast<std::ptrdiff_t>(b + 1), span - 1, Variant::kCovered);
    b += span;
  }
  return variant;
}

// The original first, then variants until everything is there `cover` times.
Result<std::vector<Variant>> covering_variants(const ElasticModel& model, const LatencyOptions& options) {
  Coverage seen(model);
  Random random(options.seed);
  std::vector<Variant> variants;
  const auto add = [&](Variant variant) -> Status {
    LIMBER_ASSIGN(const auto pieces, pieces_of(model, variant));
    for (const VariantPiece& piece : pieces) seen.add(piece);
    variants.push_back(std::move(variant));
    return {};
  };
  LIMBER_TRY(add(original_variant(model)));
  for (size_t e = 0; e < model.exits.size(); ++e) {
    while (seen.exits[e] < options.cover) {
      Variant variant = least_seen(model, seen, static_cast<size_t>(model.exits[e].after), random);
      variant.exit = static_cast<int>(e);
      LIMBER_TRY(add(std::move(variant)));
    }
  }
  while (seen.least() < options.cover) LIMBER_TRY(add(least_seen(model, seen, model.blocks.size(), random)));
  return variants;
}

Result<Graph> whole_graph(const std::vector<VariantPiece>& pieces) {
  std::vector<const Graph*> graphs;
  for (const VariantPiece& piece : pieces) graphs.push_back(piece.graph);
  return chain(graphs);
}

// The same with the number of the piece before the names of its nodes and values, so that the steps of a plan
// say whose they are.
Result<Graph> marked_graph(std::vector<VariantPiece> pieces) {
  std::vector<Graph> marked;
  marked.reserve(pieces.size());
  for (size_t p = 0; p < pieces.size(); ++p) {
    Graph& graph = marked.emplace_back(*pieces[p].graph);
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      Node& node = graph.mutable_node(NodeId{n});
      node.name = fmt::format("{}/{}", p, node.name);
    }
    for (uint32_t v = 0; v < graph.num_values(); ++v) {
      if (graph.value(ValueId{v}).role == Role::kActivation)
        graph.rename(ValueId{v}, fmt::format("{}/{}", p, graph.value(ValueId{v}).name));
    }
    pieces[p].graph = &graph;
  }
  return whole_graph(pieces);
}

// What each piece's steps take. A step that says nothing belongs where the one before it does.
std::vector<double> piece_seconds(const Plan& plan, const std::vector<double>& steps, size_t pieces) {
  std::vector<double> seconds(pieces, 0);
  size_t at = 0;
  for (size_t k = 0; k < steps.size(); ++k) {
    const std::string& name = plan.steps[k].name;
    size_t piece = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), piece);
    if (failure == std::errc() && end != name.data() + name.size() && *end == '/' && piece < pieces)
      at = piece;
    seconds[at] += steps[k];
  }
  return seconds;
}

// Collects what alternatives took in several variants.
class Collector {
 public:
  explicit Collector(const ElasticModel& model) : exits_(model.exits.size()) {
    for (const Block& block : model.blocks) blocks_.emplace_back(block.alternatives.size());
  }
  void add(const VariantPiece& piece, double seconds) {
    const auto choice = static_cast<size_t>(piece.choice);
    (piece.block == VariantPiece::kExit ? exits_[choice] : blocks_[static_cast<size_t>(piece.block)][choice])
        .push_back(seconds);
  }
  void fill(const ElasticModel& model, LatencyTable& table) const {
    for (const auto& block : blocks_) {
      auto& row = table.blocks.emplace_back();
      for (const auto& seconds : block) row.push_back(seconds.empty() ? row[0] : median(seconds));
    }
    for (size_t e = 0; e < exits_.size(); ++e)
      table.exits.push_back({model.exits[e].after, median(exits_[e])});
  }

 private:
  std::vector<std::vector<std::vector<double>>> blocks_;
  std::vector<std::vector<double>> exits_;
};

// Compiles the variants.
Status make_ready(const ElasticModel& model, std::span<const Variant> variants, const LatencyOptions& options,
                  TurnMeter& meter) {
  for (const Variant& variant : variants) {
    if (options.stop != nullptr && options.stop->load())
      return error(Code::kResourceExhausted, "stopped after {} of {} variants", meter.size(),
                   variants.size());
    LIMBER_ASSIGN(auto pieces, pieces_of(model, variant));
    LIMBER_ASSIGN(const Graph graph, marked_graph(std::move(pieces)));
    LIMBER_TRY(meter.add(graph).in(fmt::format("variant {}", print(model, variant))));
    if (options.progress) options.progress(static_cast<int>(meter.size()), static_cast<int>(variants.size()));
  }
  return {};
}

// Sums then fit the samples: between steps there is a little time too.
void scale_to_samples(LatencyTable& table) {
  std::vector<double> ratios;
  for (const LatencyTable::Sample& sample : table.samples)
    ratios.push_back(sample.seconds / table.predict(sample.variant));
  const double scale = median(ratios);
  for (auto& block : table.blocks) {
    for (double& seconds : block) seconds *= scale;
  }
  for (LatencyTable::ExitTime& exit : table.exits) exit.seconds *= scale;
}

}  // namespace

double LatencyTable::predict(const Variant& variant) const {
  LIMBER_ASSERT(variant.choices.size() == blocks.size());
  const ExitTime* exit = variant.exit < 0 ? nullptr : &exits[static_cast<size_t>(variant.exit)];
  const size_t end = exit == nullptr ? blocks.size() : static_cast<size_t>(exit->after);
  double sum = exit == nullptr ? 0 : exit->seconds;
  for (size_t b = 0; b < end; ++b) {
    if (variant.choices[b] != Variant::kCovered) sum += seconds(b, static_cast<size_t>(variant.choices[b]));
  }
  return sum;
}

double LatencyTable::original() const {
  double sum = 0;
  for (const auto& block : blocks) sum += block[0];
  return sum;
}

Status LatencyTable::check(const ElasticModel& model) const {
  if (blocks.size() != model.blocks.size() || exits.size() != model.exits.size())
    return invalid("the latency table has {} blocks and {} exits, the model {} and {}", blocks.size(),
                   exits.size(), model.blocks.size(), model.exits.size());
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (blocks[b].size() != model.blocks[b].alternatives.size())
      return invalid("the latency table has {} alternatives of block {} '{}', the model {}", blocks[b].size(),
                     b, model.blocks[b].name, model.blocks[b].alternatives.size());
  }
  return {};
}

Result<LatencyTable> measure_latency_table(const ElasticModel& model,
                                           const std::vector<std::shared_ptr<Backend>>& backends,
                                           const LatencyOptions& options) {
  if (options.cover < 1)
    return invalid("{} variants for each alternative, expected 1 or more", options.cover);
  LIMBER_ASSIGN(const auto variants, covering_variants(model, options));
  TurnMeter meter(model.params, backends, options.measure);
  LIMBER_TRY(make_ready(model, variants, options, meter));
  LIMBER_TRY(meter.run(options.stop));
  LatencyTable table{.threads = options.measure.threads};
  Collector collector(model);
  for (size_t v = 0; v < variants.size(); ++v) {
    LIMBER_ASSIGN(const auto pieces, pieces_of(model, variants[v]));
    const auto seconds = piece_seconds(meter.plan(v), meter.step_seconds(v), pieces.size());
    for (size_t p = 0; p < pieces.size(); ++p) collector.add(pieces[p], seconds[p]);
    table.samples.push_back({variants[v], meter.seconds(v)});
  }
  collector.fill(model, table);
  scale_to_samples(table);
  return table;
}

Result<std::vector<double>> measure_variants(const ElasticModel& model, std::span<const Variant> variants,
                                             const std::vector<std::shared_ptr<Backend>>& backends,
                                             const MeasureOptions& options) {
  TurnMeter meter(model.params, backends, options);
  for (const Variant& variant : variants) {
    LIMBER_ASSIGN(const auto pieces, pieces_of(model, variant));
    LIMBER_ASSIGN(const Graph graph, whole_graph(pieces));
    LIMBER_TRY(meter.add(graph).in(fmt::format("variant {}", print(model, variant))));
  }
  LIMBER_TRY(meter.run());
  std::vector<double> seconds;
  for (size_t v = 0; v < variants.size(); ++v) seconds.push_back(meter.seconds(v));
  return seconds;
}

Result<double> measure_variant(const ElasticModel& model, const Variant& variant,
                               const std::vector<std::shared_ptr<Backend>>& backends,
                               const MeasureOptions& options) {
  LIMBER_ASSIGN(const auto seconds, measure_variants(model, std::span(&variant, 1), backends, options));
  return seconds[0];
}

}  // namespace limber
