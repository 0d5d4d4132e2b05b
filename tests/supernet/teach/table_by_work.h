// Latencies that no neighbour of the test can move.
#pragma once

#include "supernet/operators/work.h"
#include "variant/elastic_model.h"
#include "variant/latency_table.h"

namespace limber::test {

// Blocks that take as long as their operations at 1 GFLOP/s. Networks as small as those of tests take
// microseconds: what a busy machine measures of them says little about which is faster.
inline LatencyTable table_by_work(const ElasticModel& model) {
  constexpr double kSecondsPerOperation = 1e-9;
  LatencyTable table;
  for (const Block& block : model.blocks) {
    auto& times = table.blocks.emplace_back();
    for (const Alternative& alternative : block.alternatives)
      times.push_back(*graph_flops(alternative.graph) * kSecondsPerOperation);
  }
  return table;
}

}  // namespace limber::test
