#include "supernet/latency_table.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/random.h"
#include "passes/splice.h"
#include "supernet/knapsack.h"
#include "supernet/pieces.h"

namespace limber {
namespace {

// Counts what is measured, and looks at the stop flag.
class Meter {
 public:
  Meter(const ElasticModel& model, const std::vector<std::shared_ptr<Backend>>& backends,
        const LatencyOptions& options)
      : model_(model), backends_(backends), options_(options) {
    for (const Block& block : model.blocks) {
      std::set<int> spans;
      for (const Alternative& alternative : block.alternatives) spans.insert(alternative.span);
      count_ += static_cast<int>(block.alternatives.size() + spans.size());
    }
    count_ = (count_ + static_cast<int>(model.exits.size()) + options.samples) * options.rounds;
  }

  Result<double> graph(const Graph& graph) {
    LIMBER_TRY(check_stop());
    LIMBER_ASSIGN(const double seconds, measure_latency(graph, model_.params, backends_, options_.measure));
    report();
    return seconds;
  }
  Result<double> variant(const Variant& variant) {
    LIMBER_TRY(check_stop());
    MeasureOptions whole = options_.measure;
    whole.seconds *= 4;  // few, and everything is scaled by them
    LIMBER_ASSIGN(const double seconds, measure_variant(model_, variant, backends_, whole));
    report();
    return seconds;
  }

 private:
  Status check_stop() const {
    if (options_.stop == nullptr || !options_.stop->load()) return {};
    return error(Code::kResourceExhausted, "stopped after {} of {} measurements", done_, count_);
  }
  void report() {
    ++done_;
    if (options_.progress) options_.progress(done_, count_);
  }

  const ElasticModel& model_;
  const std::vector<std::shared_ptr<Backend>>& backends_;
  const LatencyOptions& options_;
  int done_ = 0, count_ = 0;
};

constexpr double kUnknown = std::numeric_limits<double>::infinity();

void keep_least(double& least, double seconds) { least = std::min(least, seconds); }

// Seconds as they are measured.
struct Timings {
  explicit Timings(const ElasticModel& model)
      : alone(model.blocks.size(), kUnknown),
        whole(model.blocks.size()),
        exits(model.exits.size(), kUnknown) {
    for (const Block& block : model.blocks) amid.emplace_back(block.alternatives.size(), kUnknown);
  }
  std::vector<double> alone;              // by block: the original by itself
  std::vector<std::vector<double>> amid;  // by block and alternative: between the original neighbours
  // By block and number of blocks: so many originals between the original neighbours.
  std::vector<std::map<int, double>> whole;
  std::vector<double> exits;
};

// The graphs given, with the originals of the blocks before and behind them.
Result<Graph> between_neighbours(const ElasticModel& model, size_t block, size_t end,
                                 std::vector<const Graph*> graphs) {
  if (block > 0) graphs.insert(graphs.begin(), &model.blocks[block - 1].alternatives[0].graph);
  if (end < model.blocks.size()) graphs.push_back(&model.blocks[end].alternatives[0].graph);
  return chain(graphs);
}

Status measure_block(const ElasticModel& model, size_t b, Meter& meter, Timings& times) {
  const auto& alternatives = model.blocks[b].alternatives;
  LIMBER_ASSIGN(const double alone, meter.graph(alternatives[0].graph));
  keep_least(times.alone[b], alone);
  for (size_t a = 0; a < alternatives.size(); ++a) {
    const size_t end = b + static_cast<size_t>(alternatives[a].span);
    LIMBER_ASSIGN(const Graph graph, between_neighbours(model, b, end, {&alternatives[a].graph}));
    LIMBER_ASSIGN(const double seconds, meter.graph(graph));
    keep_least(times.amid[b][a], seconds);
  }
  times.whole[b][1] = times.amid[b][0];
  std::vector<const Graph*> originals;
  std::set<int> spans;
  for (const Alternative& alternative : alternatives) spans.insert(alternative.span);
  for (const int span : spans) {
    const size_t end = b + static_cast<size_t>(span);
    while (b + originals.size() < end)
      originals.push_back(&model.blocks[b + originals.size()].alternatives[0].graph);
    if (span == 1) continue;
    LIMBER_ASSIGN(const Graph graph, between_neighbours(model, b, end, originals));
    LIMBER_ASSIGN(const double seconds, meter.graph(graph));
    keep_least(times.whole[b].try_emplace(span, kUnknown).first->second, seconds);
  }
  return {};
}

// Everything once; what is there already becomes less or stays.
Status measure_all(const ElasticModel& model, Meter& meter, Timings& times) {
  for (size_t b = 0; b < model.blocks.size(); ++b)
    LIMBER_TRY(measure_block(model, b, meter, times).in(fmt::format("block '{}'", model.blocks[b].name)));
  for (size_t e = 0; e < model.exits.size(); ++e) {
    LIMBER_ASSIGN(const double seconds, meter.graph(model.exits[e].graph));
    keep_least(times.exits[e], seconds);
  }
  return {};
}

// What the originals take, and what it changes to put an alternative in their place.
void fill_table(const ElasticModel& model, const Timings& times, LatencyTable& table) {
  constexpr double kLeast = 1e-8;
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    auto& row = table.blocks.emplace_back();
    for (const Alternative& alternative : model.blocks[b].alternatives) {
      double seconds = times.amid[b][row.size()] - times.whole[b].at(alternative.span);
      for (size_t i = 0; i < static_cast<size_t>(alternative.span); ++i) seconds += times.alone[b + i];
      row.push_back(std::max(seconds, kLeast));
    }
  }
  for (size_t e = 0; e < model.exits.size(); ++e)
    table.exits.push_back({model.exits[e].after, times.exits[e]});
}

SearchSpace space_of(const ElasticModel& model, const LatencyTable& table) {
  SearchSpace space;
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    auto& costs = space.blocks.emplace_back();
    for (const Alternative& alternative : model.blocks[b].alternatives)
      costs.push_back({.span = alternative.span, .seconds = table.blocks[b][costs.size()]});
  }
  return space;
}

// The original, the fastest, then random ones. At most `count`; each once.
Result<std::vector<Variant>> sample_variants(const SearchSpace& space, int count, uint64_t seed) {
  std::vector<Variant> variants = {space.original()};
  const auto add = [&](Variant variant) {
    const bool room = static_cast<int>(variants.size()) < count;
    if (room && std::find(variants.begin(), variants.end(), variant) == variants.end())
      variants.push_back(std::move(variant));
  };
  Prices nothing;
  for (const auto& block : space.blocks) nothing.emplace_back(block.size(), 0.0);
  LIMBER_ASSIGN(const auto front, price_front(space, nothing, space.cost(space.original()).seconds));
  add(front.front().variant);
  Random random(seed);
  for (int i = 0; i < 2 * count; ++i) add(random_variant(space, random));
  return variants;
}

// Mean square of how far predictions are off, as shares, with the best correction for this border.
double fit_with_border(double border, LatencyTable& table) {
  table.border = border;
  table.correction = 1;
  std::vector<double> ratios;
  double mean = 0;
  for (const LatencyTable::Sample& sample : table.samples) {
    const double predicted = table.predict(sample.variant);
    if (!(predicted > 0)) return std::numeric_limits<double>::infinity();
    ratios.push_back(sample.seconds / predicted);
    mean += ratios.back() / static_cast<double>(table.samples.size());
  }
  table.correction = mean;
  double off = 0;
  for (const double ratio : ratios) off += (ratio / mean - 1) * (ratio / mean - 1);
  return off / static_cast<double>(ratios.size());
}

double median_original(const LatencyTable& table) {
  std::vector<double> originals;
  for (const auto& block : table.blocks) originals.push_back(block[0]);
  const auto middle = originals.begin() + static_cast<std::ptrdiff_t>(originals.size() / 2);
  std::nth_element(originals.begin(), middle, originals.end());
  return *middle;
}

}  // namespace

double LatencyTable::predict(const Variant& variant) const {
  LIMBER_ASSERT(variant.choices.size() == blocks.size());
  const ExitTime* exit = variant.exit < 0 ? nullptr : &exits[static_cast<size_t>(variant.exit)];
  const size_t end = exit == nullptr ? blocks.size() : static_cast<size_t>(exit->after);
  double sum = exit == nullptr ? 0 : inside(exit->seconds);
  for (size_t b = 0; b < end; ++b) {
    if (variant.choices[b] != Variant::kCovered) sum += seconds(b, static_cast<size_t>(variant.choices[b]));
  }
  return sum;
}

double LatencyTable::original() const {
  double sum = 0;
  for (const auto& block : blocks) sum += inside(block[0]);
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
  if (options.samples < 1)
    return invalid("{} whole variants to measure, expected 1 or more", options.samples);
  if (options.rounds < 1) return invalid("{} rounds of measuring, expected 1 or more", options.rounds);
  Meter meter(model, backends, options);
  LatencyTable table{.threads = options.measure.threads};
  Timings times(model);
  for (int round = 0; round < options.rounds; ++round) LIMBER_TRY(measure_all(model, meter, times));
  fill_table(model, times, table);
  LIMBER_ASSIGN(const auto variants, sample_variants(space_of(model, table), options.samples, options.seed));
  for (const Variant& variant : variants) table.samples.push_back({variant, kUnknown});
  for (int round = 0; round < options.rounds; ++round) {
    for (LatencyTable::Sample& sample : table.samples) {
      LIMBER_ASSIGN(const double seconds, meter.variant(sample.variant));
      sample.seconds = std::min(sample.seconds, seconds);
    }
  }
  fit_correction(table);
  return table;
}

Result<double> measure_variant(const ElasticModel& model, const Variant& variant,
                               const std::vector<std::shared_ptr<Backend>>& backends,
                               const MeasureOptions& options) {
  LIMBER_ASSIGN(const auto pieces, pieces_of(model, variant));
  std::vector<const Graph*> graphs;
  for (const VariantPiece& piece : pieces) graphs.push_back(piece.graph);
  LIMBER_ASSIGN(const Graph whole, chain(graphs));
  return measure_latency(whole, model.params, backends, options);
}

void fit_correction(LatencyTable& table) {
  if (table.samples.empty()) return;
  constexpr int kSteps = 20;
  const double most = median_original(table) / 2;
  // A border must explain more than the noise of measuring does.
  const double needed = 0.8 * fit_with_border(0, table);
  double best = needed, border = 0;
  for (int i = 1; i <= kSteps; ++i) {
    const double off = fit_with_border(most * i / kSteps, table);
    if (off < best) best = off, border = table.border;
  }
  fit_with_border(border, table);
}

}  // namespace limber
