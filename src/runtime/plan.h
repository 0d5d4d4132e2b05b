// What a graph compiles to: kernels chosen, layouts chosen, every buffer at a fixed offset.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/parameters.h"
#include "runtime/backend.h"
#include "runtime/kernel.h"

namespace limber {

enum class Storage : uint8_t {
  kArena,      // at an offset in the session's arena
  kInput,      // a graph input; the session owns it, the caller fills it
  kOutput,     // a graph output; the session owns it
  kStatic,     // computed from constants and parameters only, again when one of these changed
  kParameter,  // the parameter itself, which this plan updates
};

// Where a value in one layout lives. Slots that share memory (views, in-place results) have one root.
struct Slot {
  ValueId value;  // kNoValue for scratch memory
  TensorType type;
  Layout layout;
  Storage storage = Storage::kArena;
  size_t bytes = 0;
  int root = -1;      // index of the slot whose memory this is; itself when it has its own
  size_t offset = 0;  // arena only
  int leaf = -1;      // index in Plan::leaves when this is a parameter or state as it is stored
};

struct Step {
  NodeId node;  // kNoNode for a reorder or copy
  std::shared_ptr<const Kernel> kernel;
  std::vector<int> inputs, outputs;  // slots; -1 for absent
  int scratch = -1;                  // slot, or -1
  std::string name;                  // of the node or the value that is reordered
  std::string op;                    // "Conv", "Reorder" ...
  std::string impl;                  // "jit_1x1:avx512_core"
  std::string reason;                // why a reorder or copy is there
  double flops = 0, bytes = 0;       // of one execution
};

// How a kStatic slot is made; see Plan::statics.
struct StaticStep {
  Step step;
  std::vector<int> leaves;  // in Plan::leaves: the parameters it depends on
  std::string key;          // says how output 0 was made, whatever the plan: see DerivedWeights
};

// Immutable after compile(): may be shared by sessions on any thread.
struct Plan {
  Graph graph;                         // bound and transformed: what the steps execute
  std::shared_ptr<Parameters> params;  // its working set; nullptr when sessions bring a snapshot each
  std::vector<std::shared_ptr<Backend>> backends;  // keeps layouts and kernels alive
  int threads = 1;

  std::vector<Slot> slots;
  std::vector<std::string> leaves;   // names of the parameters and states it reads
  std::vector<std::string> packed;   // by leaf: the key it is held packed under, empty when it is plain
  std::vector<std::string> updates;  // names of those it writes
  std::vector<StaticStep> statics;   // run when a plan gets its first session and when a leaf changes
  std::vector<Step> steps;           // run every time
  std::vector<int> input_slots;      // as graph.inputs()
  std::vector<int> output_slots;     // as graph.outputs()
  std::vector<int> row_slots;        // as graph.outputs(): the row count, or -1
  size_t arena_bytes = 0;
  size_t live_bytes = 0;  // the largest live set: the least any arena could be
  double predicted_seconds = 0;
  int assignment = 0;  // how its kernels and layouts were chosen: see CompileSettings

  size_t num_reorders() const;
  // What a session holds: arena, inputs and outputs, parameters and state it updates, packed weights, and an
  // estimate of what kernels with their code take.
  size_t memory_bytes() const;
  std::string text() const;  // one line per step, with layouts, implementation and reasons
};

// Whether the set has every parameter and state that the graph names, with the type it wants.
Status check_parameters(const Graph& graph, const Parameters& params);

}  // namespace limber
