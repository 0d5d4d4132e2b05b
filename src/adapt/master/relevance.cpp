#include "adapt/master/relevance.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "passes/channel_rank.h"
#include "passes/classifier.h"
#include "runtime/compile.h"

namespace limber::adapt {
namespace {

// The logits and the value of each gate.
Graph read_graph(const Graph& master) {
  Graph graph = logits_of(master);
  for (const FilterGate& gate : find_gates(graph)) graph.add_output(gate.value, gate.layer);
  return graph;
}

}  // namespace

UnitRelevance mean_relevance(const std::vector<UnitRelevance>& images) {
  LIMBER_ASSERT(!images.empty());
  UnitRelevance mean = images[0];
  for (size_t g = 0; g < mean.size(); ++g) {
    for (size_t u = 0; u < mean[g].size(); ++u) {
      for (size_t i = 1; i < images.size(); ++i) mean[g][u] += images[i][g][u];
      mean[g][u] /= static_cast<double>(images.size());
    }
  }
  return mean;
}

std::vector<std::vector<int64_t>> most_relevant(const UnitRelevance& relevance, double share) {
  LIMBER_ASSERT(share >= 0 && share <= 1);
  std::vector<std::vector<int64_t>> kept;
  for (const std::vector<double>& group : relevance) {
    const auto count = static_cast<size_t>(std::lround(share * static_cast<double>(group.size())));
    kept.push_back(best_units(group, std::max<size_t>(1, count)));
  }
  return kept;
}

Result<std::unique_ptr<MasterReader>> MasterReader::create(const AdaptedModel& model) {
  LIMBER_ASSIGN(Master master, open_master(model.graph));
  std::unique_ptr<MasterReader> reader(new MasterReader(model, std::move(master)));
  reader->model_.graph = read_graph(model.graph);
  return reader;
}

UnitRelevance MasterReader::relevance_of(const Session& session, int64_t image) const {
  UnitRelevance relevance;
  for (size_t g = 0; g < master_.spans.size(); ++g) {
    std::vector<double>& units = relevance.emplace_back();
    for (int64_t unit = 0; unit < master_.groups.groups[g].units; ++unit) {
      double sum = 0, count = 0;
      for (const GatedSpan& span : master_.spans[g]) {
        const Tensor gate = session.output(1 + span.gate);
        const auto row = gate.data<float>().subspan(static_cast<size_t>(image * gate.shape().dim(1)),
                                                    static_cast<size_t>(gate.shape().dim(1)));
        for (const int64_t filter : span.of(unit))
          sum += static_cast<double>(row[static_cast<size_t>(filter)]);
        count += static_cast<double>(span.per_unit);
      }
      units.push_back(sum / count);
    }
  }
  return relevance;
}

Result<MasterReading> MasterReader::read(const Tensor& images) {
  const int64_t count = images.shape().dim(0);
  LIMBER_ASSIGN(Session * session, sessions_.get(count, [&]() -> Result<std::unique_ptr<Session>> {
    LIMBER_ASSIGN(auto plan, compile(model_.graph, model_.weights, model_.backends,
                                     batch_settings(model_.graph, count, model_.threads)));
    return Session::create(std::move(plan));
  }));
  std::memcpy(session->input(0).raw(), images.raw(), images.bytes());
  LIMBER_TRY(session->run());
  for (size_t i = 0; i < master_.gates.size(); ++i) {
    for (const float x : session->output(1 + i).data<float>()) {
      if (!std::isfinite(x)) {
        return error(Code::kInternal,
                     "the gate of '{}' is {} for one of {} images; they may hold what is no number",
                     master_.gates[i].layer, x, count);
      }
    }
  }
  MasterReading reading;
  const auto logits = session->output(0).data<float>();
  const size_t width = logits.size() / static_cast<size_t>(count);
  for (int64_t i = 0; i < count; ++i) {
    reading.relevance.push_back(relevance_of(*session, i));
    const auto row = logits.subspan(static_cast<size_t>(i) * width, width);
    reading.logits.emplace_back(row.begin(), row.end());
  }
  return reading;
}

}  // namespace limber::adapt
