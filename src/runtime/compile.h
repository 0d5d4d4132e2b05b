#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/plan.h"

namespace limber {

struct CompileOptions {
  int threads = 1;
  bool optimize = true;                    // run the inference passes first
  std::map<std::string, int64_t> symbols;  // what each symbolic dimension is
  // The Plan::assignment of a plan for a similar graph: choices are then made in the same way, and nothing
  // is compared. Negative: not given.
  int assignment = -1;
  // Largest single tensor and largest arena that are accepted; hostile shapes stop here.
  size_t max_bytes = size_t{64} << 30;
};

// Binds symbols, transforms, chooses a backend (the first of `backends` that supports a node), an
// implementation and layouts for every node, and lays out memory. Fails naming every node that no
// backend supports. Only the first backend may have layouts of its own.
Result<std::shared_ptr<const Plan>> compile(const Graph& graph, std::shared_ptr<Parameters> params,
                                            std::vector<std::shared_ptr<Backend>> backends,
                                            const CompileOptions& options);

// The Plan::assignment that compile() chooses for the graph when nothing is measured. Needs no parameters.
Result<int> estimate_assignment(const Graph& graph, std::vector<std::shared_ptr<Backend>> backends,
                                const CompileOptions& options);

}  // namespace limber
