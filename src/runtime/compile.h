// From a graph to a plan: the one way to bind open dimensions and compile.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/plan.h"

namespace limber {

// What a caller may choose about a compile. Whoever has settings of its own embeds this or is made of it.
struct CompileSettings {
  int threads = 1;    // 0: every core this process may use
  int64_t batch = 1;  // value of open first dimensions of inputs that `symbols` does not name; 0: 1
  std::map<std::string, int64_t> symbols;  // what each symbolic dimension is
  bool optimize = true;                    // run the inference passes first
  // The Plan::assignment of a plan for a similar graph: choices are then made in the same way, and nothing
  // is compared. Negative: not given.
  int assignment = -1;
  // Largest single tensor and largest arena that are accepted; hostile shapes stop here.
  size_t max_bytes = size_t{64} << 30;
};

// For graphs in which only the batch is open, wherever it stands: inside a model it need not come first.
CompileSettings batch_settings(const Graph& graph, int64_t batch, int threads);

int thread_count(const CompileSettings& settings);  // at least 1

// A value for every open dimension of the inputs, or which one has none. Values of dimensions that the graph
// does not have are left out.
Result<std::map<std::string, int64_t>> bind_dimensions(const Graph& graph, const CompileSettings& settings);

// Binds symbols, transforms, chooses a backend (the first of `backends` that supports a node), an
// implementation and layouts for every node, and lays out memory. Fails naming every node that no
// backend supports. Only the first backend may have layouts of its own. Thread-safe, also with backends that
// other threads compile with.
Result<std::shared_ptr<const Plan>> compile(const Graph& graph, std::shared_ptr<Parameters> params,
                                            std::vector<std::shared_ptr<Backend>> backends,
                                            const CompileSettings& settings);
// For a graph that updates nothing: its sessions are given a snapshot each, this one or another with the same
// types. The plan holds none.
Result<std::shared_ptr<const Plan>> compile(const Graph& graph, const WeightSnapshot& weights,
                                            std::vector<std::shared_ptr<Backend>> backends,
                                            const CompileSettings& settings);

// The Plan::assignment that compile() chooses for the graph when nothing is measured. Needs no parameters.
Result<int> estimate_assignment(const Graph& graph, std::vector<std::shared_ptr<Backend>> backends,
                                const CompileSettings& settings);

}  // namespace limber
